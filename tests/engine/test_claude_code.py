"""Claude Code through the engine: its hooks and its transcript file, the real daemon in one process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from daemon import config
from daemon.core.errors import BadReply
from daemon.testing import FakeClock, ScriptedLLM
from tests.support.claude_sim import ClaudeSim, bash, until, write
from tests.support.sim import SimDaemon, SimHost

INCOMPLETE = {
    "complete": False,
    "severity": "HIGH",
    "missing": [{"item": "do it", "cites": "Do the thing"}],
    "feedback": "Do it.",
}
COMPLETE = {"complete": True, "severity": "NONE"}


class World:
    """A daemon, a scripted judge, a project."""

    def __init__(self, folder: Path, text: str = "") -> None:
        self.clock = FakeClock()
        self.llm = ScriptedLLM()
        self.workspace = folder / "work"
        self.workspace.mkdir()
        self.sim = SimDaemon(folder, self.clock, self.llm, config.from_text(text))

    async def begin(self, session: str = "s1", entrypoint: str = "cli") -> ClaudeSim:
        """A session that has started."""
        made = ClaudeSim(self.sim.daemon, self.clock, self.workspace, session, entrypoint=entrypoint)
        await made.start()
        return made

    def verdict(self, session: str = "s1") -> dict[str, Any]:
        found: dict[str, Any] = json.loads(
            (self.workspace / ".reflection" / f"verdict_{session}.json").read_text()
        )
        return found

    def add(self, *entries: dict[str, Any] | str | Exception) -> None:
        """What the judge says next."""
        self.llm.add(*entries)


@pytest.fixture
async def w(tmp_path: Path) -> AsyncIterator[World]:
    world = World(tmp_path)
    await world.sim.start()
    yield world
    await world.sim.stop()


async def test_woken_with_feedback_then_complete(w: World) -> None:
    """I2, I5, I21: the Stop hook's answer wakes the session; the next is judged; complete is silent."""
    w.add(INCOMPLETE, COMPLETE)
    c = await w.begin()
    task = await c.types()
    first = await c.works()
    assert first.status == 422
    assert first.text.startswith("## Reflection-3: Task Incomplete (HIGH)")
    assert "(reflectd rfl_" in first.text.splitlines()[-1]
    await w.sim.settle()
    found = w.verdict()
    assert (found["state"], found["task"], found["attempt"]) == ("incomplete", task, 1)
    second = await c.works("Now it is done.", tools=(write("a.py"),))
    assert (second.status, second.text) == (204, "")
    await w.sim.settle()
    assert (w.verdict()["state"], len(w.llm.prompts)) == ("complete", 2)


async def test_rules_judge_the_same_story_as_for_opencode(tmp_path: Path) -> None:
    """I24: a failed check after the last edit, read from the file, wakes the agent with the command."""
    world = World(tmp_path)
    world.sim.provider = None
    await world.sim.start()
    c = await world.begin()
    await c.types("Add a login page and run the tests")
    heard = await c.works(tools=(write("a.py"), bash("pytest -q", 1, "2 failed, 3 passed in 0.1s")))
    assert heard.status == 422
    assert "pytest -q" in heard.text
    await world.sim.stop()


async def test_feedback_is_no_human_message(w: World) -> None:
    """I4: what we said comes back as a user line; it opens no task and resets no counter."""
    w.add(INCOMPLETE, {**INCOMPLETE, "missing": [{"item": "other", "cites": "the thing"}]})
    c = await w.begin()
    task = await c.types()
    await c.works()
    await c.works(tools=(bash("ls"),))
    await w.sim.settle()
    s = w.sim.daemon.world.sessions.get("s1")
    assert s is not None
    assert (s.host, s.task, s.attempts) == ("claude-code", task, 2)


async def test_the_same_words_again_are_a_new_task(w: World) -> None:
    """I6: "continue" twice is two tasks."""
    w.add(COMPLETE, COMPLETE)
    c = await w.begin()
    for _ in range(2):
        await c.types("continue")
        await c.works()
        await w.sim.settle()
    assert len(w.llm.prompts) == 2


async def test_at_most_eight_wakes_for_a_prompt(w: World) -> None:
    """I5: the ninth wake would empty the result of `-p`; it never comes. The next prompt counts anew."""
    c = await w.begin()
    await c.types()
    for n in range(9):
        w.add({**INCOMPLETE, "missing": [{"item": f"part {n}", "cites": "Do the thing"}]})
        await c.works(f"Part {n}.", tools=(bash(f"ls {n}"),))
        await w.sim.settle()
    assert len(c.wakes) == 8
    assert (w.verdict()["state"], w.verdict()["reason"]) == ("stopped", "guard:max_attempts")
    w.llm.script.clear()
    w.add(INCOMPLETE)
    await c.types("Do the thing")
    await c.works()
    assert len(c.wakes) == 9


async def test_stop_hook_active_informs_and_never_skips(w: World) -> None:
    """I5: a Stop with `stop_hook_active` is judged like any other."""
    w.add(COMPLETE)
    c = await w.begin()
    await c.types()
    c.stop_hook_active = True
    await c.works()
    assert len(w.llm.prompts) == 1


async def test_background_tasks_are_no_idle(w: World) -> None:
    """I16: a Stop while sub-agents run is not judged; the one after them is."""
    w.add(COMPLETE)
    c = await w.begin()
    await c.types()
    c.answers("Started an agent.")
    assert (await c.stops(background=1)).status == 204
    assert w.llm.prompts == []
    await c.works("All done.")
    assert len(w.llm.prompts) == 1


async def test_typing_releases_the_waiting_hook_at_once(w: World) -> None:
    """I14: a person who types while the judge thinks ends the wait, and the verdict is dropped."""
    w.add(INCOMPLETE)
    w.llm.hold = asyncio.Event()
    c = await w.begin()
    await c.types()
    c.answers()
    waiting = asyncio.create_task(c.stops())
    await until(lambda: w.llm.prompts)
    await c.types("Something else")
    assert (await asyncio.wait_for(waiting, 2)).status == 204
    w.llm.hold.set()
    await w.sim.settle()
    assert c.wakes == []


async def test_a_hook_that_went_away_is_not_prompted(w: World) -> None:
    """I35: the host killed the hook while the judge thought; the order is stale."""
    w.add(INCOMPLETE)
    w.llm.hold = asyncio.Event()
    c = await w.begin()
    await c.types()
    c.answers()
    waiting = asyncio.create_task(c.stops())
    await until(lambda: w.llm.prompts)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    w.llm.hold.set()
    await w.sim.settle()
    assert c.wakes == []
    assert w.verdict()["state"] == "incomplete"
    alias = json.loads((w.workspace / ".reflection" / "verdict_s1.json").read_text())
    assert alias["state"] == "incomplete"
    assert w.sim.daemon.world.outbox.open() == []


async def test_an_interrupt_is_not_judged(w: World) -> None:
    """I11: no Stop comes after Esc; the interrupted answer is not judged when the next task ends."""
    w.add(COMPLETE)
    c = await w.begin()
    await c.types("First")
    c.answers("Working on")
    c.line(
        "user",
        message={"role": "user", "content": [{"type": "text", "text": "[Request interrupted by user]"}]},
    )
    await c.types("Second")
    await c.works()
    (prompt,) = w.llm.prompts
    assert "Second" in prompt.text


async def test_an_interrupted_turn_is_left_alone(w: World) -> None:
    """I11: a Stop whose answer was interrupted sends nothing."""
    c = await w.begin()
    await c.types()
    c.answers("Working on")
    c.line(
        "user",
        message={"role": "user", "content": [{"type": "text", "text": "[Request interrupted by user]"}]},
    )
    assert (await c.stops()).status == 204
    await w.sim.settle()
    assert w.llm.prompts == []
    assert w.verdict()["state"] == "stopped"


@pytest.mark.parametrize("entrypoint", ["sdk-cli", "sdk-py"])
async def test_headless_only_when_enabled(w: World, entrypoint: str) -> None:
    """`-p` and SDK sessions wait for us, so they are judged only when that is wanted."""
    c = await w.begin(entrypoint=entrypoint)
    await c.types()
    assert (await c.works()).status == 204
    assert w.llm.prompts == []
    w.add(INCOMPLETE)
    c.headers["X-CC-Headless"] = "1"
    await c.types()
    assert (await c.works()).status == 422


async def test_strict_mode(tmp_path: Path) -> None:
    """`claude_code.strict`: the turn itself waits; feedback is a block, "complete" a message."""
    w = World(tmp_path, "[claude_code]\nstrict = true\n")
    await w.sim.start()
    w.add(INCOMPLETE, COMPLETE)
    c = await w.begin()
    await c.types()
    assert (await c.works()).status == 204  # the asynchronous twin has nothing to say
    c.strict = True
    first = await c.stops()
    assert (first.status, first.json["decision"]) == (200, "block")
    assert first.json["reason"].startswith("## Reflection-3: Task Incomplete")
    second = await c.works("Now it is done.", tools=(write("a.py"),))
    assert second.json == {"systemMessage": "reflectd: Task complete"}
    await w.sim.stop()


async def test_esc_while_strict_mode_waits(tmp_path: Path) -> None:
    """I12: the host hangs up on the hook that it waited for: the judgement ends, the turn is "stopped"."""
    w = World(tmp_path, "[claude_code]\nstrict = true\n")
    await w.sim.start()
    w.add(INCOMPLETE)
    w.llm.hold = asyncio.Event()
    c = await w.begin()
    c.strict = True
    await c.types()
    c.answers()
    waiting = asyncio.create_task(c.stops())
    await until(lambda: w.llm.prompts)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await w.sim.settle()
    assert c.wakes == []
    assert w.verdict()["state"] == "stopped"
    await w.sim.stop()


async def test_after_a_compaction_the_task_is_carried_over(w: World) -> None:
    """I7: SessionStart(compact) is answered with what was asked and what is open, as facts."""
    w.add(INCOMPLETE)
    c = await w.begin()
    await c.types("Do the thing with the parser")
    await c.works()
    await w.sim.settle()
    await c.hook("PreCompact", trigger="manual", custom_instructions=None)
    found = (await c.start("compact")).json["hookSpecificOutput"]
    assert found["hookEventName"] == "SessionStart"
    assert "Do the thing with the parser" in found["additionalContext"]
    assert "do it" in found["additionalContext"]


async def test_a_complete_task_needs_no_carrying_over(w: World) -> None:
    """I2: after "complete" the compaction is answered with nothing."""
    w.add(COMPLETE)
    c = await w.begin()
    await c.types()
    await c.works()
    await w.sim.settle()
    assert (await c.start("compact")).status == 204


async def test_our_own_commands_are_no_work(w: World) -> None:
    """I9: the turn of `/reflectd:status` is not judged, and opens no task."""
    w.add(INCOMPLETE)
    c = await w.begin()
    task = await c.types()
    await c.works()
    await w.sim.settle()
    await c.hook("UserPromptSubmit", prompt="/reflectd:status")
    c.answers("It says incomplete.")
    assert (await c.stops()).status == 204
    await w.sim.settle()
    s = w.sim.daemon.world.sessions.get("s1")
    assert s is not None
    assert (s.task, len(w.llm.prompts), len(c.wakes)) == (task, 1, 1)


async def test_two_hosts_in_one_folder(w: World) -> None:
    """I35: a session is read by its own host only, not by the other one that works in the same folder."""
    w.add(COMPLETE)
    host = SimHost(str(w.workspace), w.clock)
    await host.connect(w.sim.daemon)
    c = await w.begin()
    await c.types()
    await c.hook("SessionEnd", reason="other")
    await w.sim.settle()
    w.sim.daemon.evaluations.request("s1")  # opencode would say that there is no such session
    await w.sim.settle()
    s = w.sim.daemon.world.sessions.get("s1")
    assert s is not None
    assert not s.deleted
    instances = w.sim.daemon.instances
    await w.begin("s2")
    found = instances.connected("gone", str(w.workspace))
    assert found is not None
    assert found.host == "opencode"
    await host.disconnect()
    assert instances.connected("gone", str(w.workspace)) is None


async def test_two_sessions_do_not_hear_each_other(w: World) -> None:
    """I40: the switch of one session is not the other's; each Stop gets its own answer."""
    w.add(INCOMPLETE)
    a, b = await w.begin("s1"), await w.begin("s2")
    await w.sim.daemon.intake.switch(on=False, session="s2")
    await a.types()
    await b.types()
    assert (await b.works()).status == 204
    assert (await a.works()).status == 422


async def test_restart_between_rounds(w: World) -> None:
    """I35, I42: killed between two Stops; attempts are kept and the next Stop is judged."""
    w.add(INCOMPLETE, COMPLETE)
    c = await w.begin()
    await c.types()
    await c.works()
    await w.sim.settle()
    await w.sim.kill()
    c.daemon = await w.sim.start()
    heard = await c.works("Now it is done.", tools=(write("a.py"),))
    assert heard.status == 204
    await w.sim.settle()
    assert w.verdict()["state"] == "complete"


async def test_the_final_text_may_come_late(w: World) -> None:
    """The file lags behind the hook: the turn is read when its text is there."""
    w.add(COMPLETE)
    c = await w.begin()
    await c.types()
    c._said = "All done."
    waiting = asyncio.create_task(c.stops())
    await asyncio.sleep(0.02)
    c.answers("All done.")
    assert (await waiting).status == 204
    assert "All done." in w.llm.prompts[0].text


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"session_id": 3}', b"\xff\xfe"])
async def test_what_is_no_hook(w: World, body: bytes) -> None:
    """I36: a body that is no hook is refused, and nothing is kept of it."""
    with pytest.raises(BadReply):
        await w.sim.daemon.claude.hook("Stop", body, {}, strict=False)
    assert w.sim.daemon.world.sessions.in_memory() == []


async def test_no_transcript_ends_in_error(w: World) -> None:
    """I21, I36: a transcript that is not there: nothing is sent, nothing breaks."""
    c = await w.begin()
    await c.types()
    c.file.unlink()
    assert (await c.stops()).status == 204
    await w.sim.settle()
    assert w.llm.prompts == []
