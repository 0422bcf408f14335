"""Claude Code through the engine: its hooks and its transcript file, the real daemon in one process."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from daemon import config
from daemon.app import FEATURES
from daemon.core.errors import BadReply
from daemon.core.offers import Moment, Offer
from daemon.core.session import Session
from daemon.engine.engine import MakeFeature
from daemon.engine.feature import Feature
from daemon.engine.hosts.claude_code import TAKEN_BACK
from daemon.files.verdict import Judging
from daemon.testing import FakeClock, ScriptedLLM
from tests.support.features.toy import Toy
from tests.support.hosts.claude_code_sim import ClaudeSim, bash, until, write
from tests.support.hosts.opencode_sim import SimDaemon, SimHost
from tests.support.hosts.world import COMPLETE, INCOMPLETE


class World:
    """A daemon, a scripted judge, a project."""

    def __init__(self, folder: Path, text: str = "", features: Sequence[MakeFeature] = FEATURES) -> None:
        self.clock = FakeClock()
        self.llm = ScriptedLLM()
        self.workspace = folder / "work"
        self.workspace.mkdir()
        self.sim = SimDaemon(folder, self.clock, self.llm, config.from_text(text), features)

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


@pytest.mark.shows("I2", "I5", "I21")
async def test_woken_with_feedback_then_complete(w: World) -> None:
    """The Stop hook's answer wakes the session; the next is judged; complete is silent."""
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


async def test_a_session_is_called_by_its_first_request(w: World) -> None:
    """Without secrets, on one line, and cut; feedback and later requests change nothing."""
    w.add(COMPLETE, COMPLETE)
    c = await w.begin()
    await c.types("Fix the login,\nthe key is sk-ant-api03-" + "a1B2" * 24 + " and more words of it")
    await c.works()
    await w.sim.settle()
    title = state(w).title
    assert title.startswith("Fix the login, the key is [redacted:")
    assert len(title) <= 60
    await c.types("Something else")
    assert state(w).title == title


@pytest.mark.shows("I4")
async def test_feedback_is_no_human_message(w: World) -> None:
    """What we said comes back as a user line; it opens no task and resets no counter."""
    w.add(INCOMPLETE, {**INCOMPLETE, "missing": [{"item": "other", "cites": "the thing"}]})
    c = await w.begin()
    task = await c.types()
    await c.works()
    await c.works(tools=(bash("ls"),))
    await w.sim.settle()
    s = w.sim.daemon.world.sessions.get("s1")
    assert s is not None
    assert (s.host, s.task, s.attempts) == ("claude-code", task, 2)


@pytest.mark.shows("I6")
async def test_the_same_words_again_are_a_new_task(w: World) -> None:
    """ "continue" twice is two tasks."""
    w.add(COMPLETE, COMPLETE)
    c = await w.begin()
    for _ in range(2):
        await c.types("continue")
        await c.works()
        await w.sim.settle()
    assert len(w.llm.prompts) == 2


@pytest.mark.shows("I5")
async def test_at_most_eight_wakes_for_a_prompt(w: World) -> None:
    """The ninth wake would empty the result of `-p`; it never comes. The next prompt counts anew."""
    c = await w.begin()
    await c.types()
    for n in range(9):
        w.add({**INCOMPLETE, "missing": [{"item": f"part.txt lacks {n}", "cites": "Do the thing"}]})
        await c.works(f"Part {n}.", tools=(bash(f"echo {n} > part.txt"),))
        await w.sim.settle()
    assert len(c.wakes) == 8
    assert (w.verdict()["state"], w.verdict()["reason"]) == ("stopped", "guard:max_attempts")
    w.llm.script.clear()
    w.add(INCOMPLETE)
    await c.types("Do the thing")
    await c.works()
    assert len(c.wakes) == 9


@pytest.mark.shows("I16")
async def test_background_tasks_are_no_idle(w: World) -> None:
    """A Stop while sub-agents run is not judged; the one after them is."""
    w.add(COMPLETE)
    c = await w.begin()
    await c.types()
    c.answers("Started an agent.")
    assert (await c.stops(background=1)).status == 204
    assert w.llm.prompts == []
    await c.works("All done.")
    assert len(w.llm.prompts) == 1


def state(w: World, session: str = "s1") -> Session:
    found = w.sim.daemon.world.sessions.get(session)
    assert found is not None
    return found


def order(w: World) -> tuple[str, str]:
    """Status and error text of the last prompt of ours."""
    rows = w.sim.daemon.world.db.read(
        "SELECT id, status FROM outbox WHERE kind = 'feedback' ORDER BY created"
    )
    return rows[-1]


@pytest.mark.shows("I16")
async def test_a_shell_of_this_turn_holds_its_judgement(w: World) -> None:
    """The turn waits for the tests that it left running; `status` and `why` name them. Told that they ended,
    the agent goes on, and that turn is judged.
    """
    w.add(COMPLETE)
    c = await w.begin()
    await c.types()
    c.leaves("npm test", "b7")
    c.answers("The tests run.")
    waiting = asyncio.create_task(c.stops(shells={"b7": "npm test"}))
    await until(lambda: state(w).background)
    assert (state(w).background, state(w).busy, w.llm.prompts) == (("npm test",), True, [])
    (listed,) = w.sim.daemon.status.sessions(5)
    assert listed["waits_for"] == ["npm test"]
    why = await w.sim.daemon.status.why("s1", "")
    assert why is not None
    assert why["session"]["waits_for"] == ["npm test"]
    await c.told("b7 completed")
    assert (await asyncio.wait_for(waiting, 5)).status == 204
    assert state(w).background == ()
    await c.works("They pass.")
    assert len(w.llm.prompts) == 1


@pytest.mark.shows("I16")
async def test_a_shell_that_never_ends_is_waited_for_so_long(w: World) -> None:
    """After the time of the setting the turn is judged, the judge reads that the call still runs, and the
    hook that waited all the time wakes the agent.
    """
    w.add(INCOMPLETE)
    c = await w.begin()
    await c.types()
    c.leaves("npm run dev", "b7")
    c.answers("The server runs.")
    waiting = asyncio.create_task(c.stops(shells={"b7": "npm run dev"}))
    await until(lambda: state(w).background)
    w.clock.advance(601)
    assert (await asyncio.wait_for(waiting, 10)).status == 422
    assert "A1 bash `npm run dev` → still running" in w.llm.prompts[0].text
    assert state(w).background == ()


@pytest.mark.shows("I16", "I21")
async def test_a_host_that_is_killed_while_a_shell_runs_ends_the_wait(w: World) -> None:
    """The answered turn gets its verdict, and nobody is woken."""
    w.add(INCOMPLETE)
    with subprocess.Popen(["sleep", "600"]) as process:
        c = await w.begin()
        c.headers["X-CC-Pid"] = str(process.pid)
        await c.types()
        c.leaves("npm test", "b7")
        c.answers("The tests run.")
        waiting = asyncio.create_task(c.stops(shells={"b7": "npm test"}))
        await until(lambda: state(w).background)
        process.kill()
    w.sim.daemon.engine.hooked["claude-code"].sweep()
    assert (await asyncio.wait_for(waiting, 5)).status == 204
    await w.sim.settle()
    assert (w.verdict()["state"], state(w).busy, c.wakes) == ("incomplete", False, [])


@pytest.mark.shows("I16")
async def test_a_server_of_an_earlier_turn_holds_nothing(w: World) -> None:
    """A shell that was there before is no reason to wait, unless the agent looked at it again."""
    w.add(COMPLETE, COMPLETE)
    c = await w.begin()
    await c.types("Start the server")
    c.leaves("npm run dev", "b7")
    c.answers("It runs.")
    server = {"b7": "npm run dev"}
    waiting = asyncio.create_task(c.stops(shells=server))
    await until(lambda: state(w).background)
    await c.types("Fix the bug")
    assert (await asyncio.wait_for(waiting, 5)).status == 204
    c.answers("Fixed.", (write("a.py"),))
    assert (await c.stops(shells=server)).status == 204
    assert len(w.llm.prompts) == 1
    await c.types("Is it up?")
    c.answers("Yes.", (bash("tail /t/b7.output"),))
    waiting = asyncio.create_task(c.stops(shells=server))
    await until(lambda: state(w).background)
    await c.hook("SessionEnd", reason="other")
    await asyncio.wait_for(waiting, 5)


@pytest.mark.shows("I10")
async def test_another_hook_sends_the_agent_on_while_the_judge_thinks(w: World) -> None:
    """The answer that was judged is not the last one any more: its judge is stopped, and the newest turn is
    judged instead.
    """
    w.add(INCOMPLETE, COMPLETE)
    w.llm.hold = asyncio.Event()
    c = await w.begin()
    await c.types()
    c.answers("Half done.")
    first = asyncio.create_task(c.stops())
    await until(lambda: w.llm.prompts)
    c.line("user", isMeta=True, message={"role": "user", "content": "Stop hook feedback:\nlint fails"})
    c.answers("All done now.", (write("a.py"),))
    second = asyncio.create_task(c.stops())
    assert (await asyncio.wait_for(first, 5)).status == 204
    w.llm.script.clear()
    w.add(COMPLETE)
    await until(lambda: len(w.llm.prompts) == 2)
    w.llm.hold.set()
    assert (await asyncio.wait_for(second, 5)).status == 204
    await w.sim.settle()
    assert "All done now." in w.llm.prompts[1].text
    assert (w.verdict()["state"], c.wakes) == ("complete", [])


@pytest.mark.shows("I10", "I14")
@pytest.mark.parametrize("what", ["a command", "another hook", "continue: false", "the next prompt", "Esc"])
async def test_a_prompt_leaves_only_if_the_file_ends_with_its_turn(w: World, what: str) -> None:
    """Before feedback leaves the transcript is read again; what no hook told of makes it stale."""
    w.add(INCOMPLETE)
    w.llm.hold = asyncio.Event()
    c = await w.begin()
    await c.types()
    c.answers()
    waiting = asyncio.create_task(c.stops())
    await until(lambda: w.llm.prompts)
    match what:
        case "a command":
            c.ran("ls")
        case "another hook":
            c.line("user", isMeta=True, message={"role": "user", "content": "Stop hook feedback:\nlint"})
        case "continue: false":
            c.line("system", subtype="stop_hook_summary", preventedContinuation=True)
        case "the next prompt":
            c.line("user", message={"role": "user", "content": "Wait"}, origin={"kind": "human"})
        case _:
            c.interrupted()
    w.llm.hold.set()
    assert (await asyncio.wait_for(waiting, 5)).status == 204
    await w.sim.settle()
    assert (c.wakes, order(w)[1]) == ([], "stale")


@pytest.mark.shows("I11", "GUARD-1")
@pytest.mark.parametrize("then", ["is over", "blocks", "continue: false", "Esc"])
async def test_a_wake_waits_for_the_persons_own_stop_hooks(w: World, then: str) -> None:
    """The judge is faster than a Stop hook of the person's, which may yet send the agent on or end the task:
    until then the turn is not over, and nothing leaves.
    """
    w.add(INCOMPLETE)
    c = await w.begin()
    await c.types()
    c.answers()
    waiting = asyncio.create_task(c.stops(alone=False))
    await until(lambda: w.sim.daemon.world.outbox.open("s1"))
    await asyncio.sleep(0.3)
    assert not waiting.done()
    match then:
        case "blocks":
            c.line("user", isMeta=True, message={"role": "user", "content": "Stop hook feedback:\nlint"})
        case "Esc":
            c.interrupted()
        case _:
            c.line("system", subtype="stop_hook_summary", preventedContinuation=then != "is over")
    heard = await asyncio.wait_for(waiting, 5)
    await w.sim.settle()
    assert (heard.status, len(c.wakes)) == ((422, 1) if then == "is over" else (204, 0))
    assert order(w)[1] == ("done" if then == "is over" else "stale")


@pytest.mark.shows("I14")
@pytest.mark.parametrize("then", ["gone", "as before", "edited"])
async def test_work_that_was_put_back_wakes_nobody(w: World, then: str) -> None:
    """A rewind puts files back and tells nobody. The feedback is about work that is gone: it does not leave,
    and the person reads why. A file that somebody goes on with, as a formatter does, holds nothing up.
    """
    w.add(INCOMPLETE)
    w.llm.hold = asyncio.Event()
    c = await w.begin()
    kept = c.file.parents[2] / "file-history" / "s1"
    kept.mkdir(parents=True)
    (kept / "0123456789abcdef@v1").write_text("before")
    file = w.workspace / "a.py"
    file.write_text("after")
    await c.types()
    c.answers(tools=(write(str(file)), write(str(w.workspace / "never.py"))))
    waiting = asyncio.create_task(c.stops())
    await until(lambda: w.llm.prompts)
    if then == "gone":
        file.unlink()
    else:
        file.write_text("before" if then == "as before" else "formatted")
    w.llm.hold.set()
    heard = await asyncio.wait_for(waiting, 5)
    await w.sim.settle()
    if then == "edited":
        assert (heard.status, len(c.wakes), order(w)[1]) == (422, 1, "done")
        return
    assert (heard.status, c.wakes, order(w)[1]) == (204, [], "stale")
    await c.types("Go on")
    assert c.heard.json == {"systemMessage": f"reflectd, on the last turn: {TAKEN_BACK}"}


@pytest.mark.shows("I5")
async def test_a_compaction_while_the_judge_thinks(w: World) -> None:
    """`/compact` is not the agent's work: the feedback still wakes the session."""
    w.add(INCOMPLETE)
    w.llm.hold = asyncio.Event()
    c = await w.begin()
    await c.types()
    c.answers()
    waiting = asyncio.create_task(c.stops())
    await until(lambda: w.llm.prompts)
    c.line("system", subtype="compact_boundary", compactMetadata={"trigger": "manual"})
    c.line("user", isCompactSummary=True, message={"role": "user", "content": "The thing was begun."})
    await c.start("compact")
    w.llm.hold.set()
    assert (await asyncio.wait_for(waiting, 5)).status == 422
    await w.sim.settle()
    assert (len(c.wakes), order(w)[1]) == (1, "done")


async def test_an_order_is_done_when_the_transcript_shows_it(w: World) -> None:
    """The hook's answer alone proves nothing: the host may drop it. Then `why` does not say that it came."""
    w.add(INCOMPLETE, INCOMPLETE)
    c = await w.begin()
    await c.types()
    await c.works()
    await w.sim.settle()
    assert order(w)[1] == "done"
    c.answers("Again.", (write("b.py"),))
    heard = await c.stops(dropped=True)
    assert heard.status == 422
    await asyncio.sleep(0.2)
    assert order(w)[1] == "sent"
    await c.hook("SessionEnd", reason="other")
    await until(lambda: order(w)[1] == "failed")
    why = await w.sim.daemon.status.why("s1", "")
    assert why is not None
    assert sorted(v["order"]["status"] for v in why["verdicts"]) == ["done", "failed"]


@pytest.mark.shows("I14")
async def test_typing_releases_the_waiting_hook_at_once(w: World) -> None:
    """A person who types while the judge thinks ends the wait, and the verdict is dropped."""
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


@pytest.mark.shows("I35")
async def test_a_hook_that_went_away_is_not_prompted(w: World) -> None:
    """The host killed the hook while the judge thought; the order is stale."""
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


async def given(w: World, session: str) -> tuple[ClaudeSim, str]:
    """Feedback that the hook was given and the transcript does not show yet; its file says so."""
    c = await w.begin(session)
    await c.types()
    c.answers()
    heard = await c.stops(dropped=True)
    assert heard.status == 422
    file = w.workspace / ".reflection" / f"verdict_{session}.json"
    while not file.exists() or w.verdict(session)["state"] != "incomplete":  # after the three seconds
        await asyncio.sleep(0.01)
    assert w.verdict(session[:8])["timestamp"] == 0
    return c, heard.text


async def reaches(w: World, c: ClaudeSim, text: str) -> None:
    """The wake stands in the transcript at last, and was seen there."""
    c.line("user", message={"role": "user", "content": text}, origin={"kind": "task-notification"})
    await until(lambda: not w.sim.daemon.world.outbox.open(c.session))
    await w.sim.settle()
    await w.sim.daemon.engine.filing.drain()


@pytest.mark.shows("I21", "I22")
async def test_feedback_that_a_killed_daemon_decided_answers_the_next_stop(w: World) -> None:
    """The hook asks the next daemon about the same turn: it is given what was decided, once."""
    w.add(INCOMPLETE)
    c, text = await given(w, "session-1")
    await w.sim.kill()
    c.daemon = await w.sim.start()
    again = await c.stops(dropped=True)
    assert (again.status, again.text) == (422, text)
    third = await c.stops(dropped=True)  # of the same daemon: the host dropped what it was given
    assert third.status == 204
    assert len(w.llm.prompts) == 1


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("then", ["sleeps", "restarts"])
async def test_a_prompt_that_the_file_does_not_show_yet_is_not_stale(
    tmp_path: Path, then: str, strict: bool
) -> None:
    """The agent works on it already. Then the machine sleeps, or another daemon begins."""
    w = World(tmp_path, f"[claude_code]\nstrict = {str(strict).lower()}\n")
    await w.sim.start()
    w.add(INCOMPLETE, COMPLETE)
    c = await w.begin("session-1")
    c.strict = strict
    await c.types()
    c.answers()
    heard = await c.stops(dropped=True)
    text = heard.json["reason"] if strict else heard.text
    if then == "restarts":
        await w.sim.kill()
        c.daemon = await w.sim.start()
    note = f"<task-notification>{text}</task-notification>"
    if strict:  # of a turn that goes on no hook tells but those of its calls, and of a compaction
        await c.hook("SessionStart", source="compact")
    else:
        await c.hook("UserPromptSubmit", prompt=note)
    w.sim.daemon.engine.intake.recheck_all()
    await until(lambda: not any(t.get_name().startswith("look after") for t in w.sim.daemon._tasks))
    assert order(w)[1] == "sent"
    if strict:
        said = f"Stop hook feedback:\n{text}"
        c.line("user", isMeta=True, message={"role": "user", "content": said})
    else:
        c.line("user", message={"role": "user", "content": note}, origin={"kind": "task-notification"})
    await c.works("Now it is done.")
    assert order(w)[1] == "done"
    await w.sim.stop()


@pytest.mark.shows("I22")
@pytest.mark.parametrize("newer", ["a turn that is judged", "a task"])
async def test_a_prompt_that_is_seen_late_leaves_newer_files_alone(w: World, newer: str) -> None:
    """The file is about the next turn by now, or a new task made it stale: it stays so."""
    w.add(INCOMPLETE)
    c, text = await given(w, "session-1")
    if newer == "a task":
        w.sim.daemon.engine.filing.outdated("session-1")
    else:
        judging = Judging("session-1", "t", "newer", w.clock.ms)
        w.sim.daemon.engine.filing.begun(judging, str(w.workspace))
    await w.sim.daemon.engine.filing.drain()
    before = w.verdict("session-1"), w.verdict("session-")
    await reaches(w, c, text)
    assert (w.verdict("session-1"), w.verdict("session-")) == before
    assert before[1]["timestamp"] == 0


@pytest.mark.shows("I11")
async def test_an_interrupt_is_not_judged(w: World) -> None:
    """No Stop comes after Esc; the interrupted answer is not judged when the next task ends."""
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


@pytest.mark.parametrize("entrypoint", ["sdk-cli", "sdk-py"])
async def test_headless_only_when_enabled(w: World, entrypoint: str) -> None:
    """`-p` and SDK sessions wait for us, so they are judged only when that is wanted: the turn itself waits,
    and nobody is told of it.
    """
    c = await w.begin(entrypoint=entrypoint)
    await c.types()
    assert (await c.works()).status == 204
    assert w.llm.prompts == []
    w.add(INCOMPLETE)
    c.headers["X-CC-Headless"] = "1"
    await c.types()
    woken = await c.works()
    assert (woken.status, woken.json["decision"]) == (200, "block")
    w.add(COMPLETE)
    await c.types()
    assert (await c.works("It is done.", tools=(write("a.py"),))).status == 204
    await w.sim.settle()
    assert w.verdict()["state"] == "complete"


async def test_a_headless_hook_that_ends_is_no_esc(w: World) -> None:
    """`claude -p` was killed, or its patience is over: no person said no, and the turn is judged."""
    w.add(INCOMPLETE)
    w.llm.hold = asyncio.Event()
    c = await w.begin(entrypoint="sdk-cli")
    c.headers["X-CC-Headless"] = "1"
    await c.types()
    c.answers()
    waiting = asyncio.create_task(c.stops())
    await until(lambda: w.llm.prompts)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    w.llm.hold.set()
    await w.sim.settle()
    assert w.verdict()["state"] == "incomplete"


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


async def test_the_next_prompt_tells_of_the_last_turn(w: World) -> None:
    """A hook in the background can't show anything: that a turn was complete, or given up, is read with the
    next prompt, once. A wake tells of itself, and where nobody sits nobody is told.
    """
    w.add(COMPLETE, INCOMPLETE, COMPLETE)
    c = await w.begin()
    await c.types()
    assert c.heard.status == 204
    await c.works()
    await w.sim.settle()
    await c.types("Do the thing again")
    assert c.heard.json == {"systemMessage": "reflectd, on the last turn: Task complete"}
    woken = await c.works("Half of it.")
    assert woken.status == 422
    again = f"<task-notification>\n{woken.text}</task-notification>"
    assert (await c.hook("UserPromptSubmit", prompt=again)).status == 204
    await c.works("All of it.", tools=(write("a.py"),))
    await w.sim.settle()
    c.headers["X-CC-Entrypoint"], c.headers["X-CC-Headless"] = "sdk-cli", "1"
    await c.types("And now?")
    assert c.heard.status == 204


@pytest.mark.shows("I12")
async def test_esc_while_strict_mode_waits(tmp_path: Path) -> None:
    """The host hangs up on the hook that it waited for: the judgement ends, the turn is "stopped"."""
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


@pytest.mark.shows("I7")
async def test_after_a_compaction_the_task_is_carried_over(w: World) -> None:
    """SessionStart(compact) is answered with what was asked and what is open, as facts."""
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


async def test_what_features_offer_reaches_the_agent_once(tmp_path: Path) -> None:
    """At the start of a session and with a prompt of the person; nothing is said twice."""
    w = World(tmp_path, features=(*FEATURES, Toy, Hints))
    await w.sim.start()
    c = ClaudeSim(w.sim.daemon, w.clock, w.workspace, "s1")
    at_start = (await c.start()).json["hookSpecificOutput"]
    assert at_start == {"hookEventName": "SessionStart", "additionalContext": "0 tasks were finished here."}
    c.prompt_id = c.id()
    found = (await c.hook("UserPromptSubmit", prompt="fix the parser")).json["hookSpecificOutput"]
    assert found == {"hookEventName": "UserPromptSubmit", "additionalContext": "About: fix the parser"}
    c.prompt_id = c.id()
    assert (await c.hook("UserPromptSubmit", prompt="and the lexer")).status == 204
    await w.sim.settle()
    await w.sim.stop()


class Hints(Feature):
    """Has a word to say to a prompt."""

    name: ClassVar = "hints"

    def context(self, s: Session, moment: Moment) -> Sequence[Offer]:
        return (Offer("hint", "lesson", f"About: {moment.text}"),) if moment.when == "prompt" else ()


@pytest.mark.shows("I9")
async def test_our_own_commands_are_no_work(w: World) -> None:
    """The turn of `/reflectd:status` is not judged, and opens no task."""
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


@pytest.mark.shows("I35")
async def test_two_hosts_in_one_folder(w: World) -> None:
    """A session is read by its own host only, not by the other one that works in the same folder."""
    w.add(COMPLETE)
    host = SimHost(str(w.workspace), w.clock)
    await host.connect(w.sim.daemon)
    c = await w.begin()
    await c.types()
    await c.hook("SessionEnd", reason="other")
    await w.sim.settle()
    w.sim.daemon.engine.schedule.request("s1")  # opencode would say that there is no such session
    await w.sim.settle()
    s = w.sim.daemon.world.sessions.get("s1")
    assert s is not None
    assert not s.deleted
    instances = w.sim.daemon.engine.instances
    await w.begin("s2")
    found = instances.connected("gone", str(w.workspace))
    assert found is not None
    assert found.host.name == "opencode"
    await host.disconnect()
    assert instances.connected("gone", str(w.workspace)) is None


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


@pytest.mark.shows("I36")
@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"session_id": 3}', b"\xff\xfe"])
async def test_what_is_no_hook(w: World, body: bytes) -> None:
    """A body that is no hook is refused, and nothing is kept of it."""
    with pytest.raises(BadReply):
        await w.sim.daemon.engine.hooked["claude-code"].hook("Stop", body, {}, strict=False)
    assert w.sim.daemon.world.sessions.in_memory() == []


@pytest.mark.shows("I21", "I36")
async def test_no_transcript_ends_in_error(w: World) -> None:
    """A transcript that is not there: nothing is sent, nothing breaks."""
    c = await w.begin()
    await c.types()
    c.file.unlink()
    assert (await c.stops()).status == 204
    await w.sim.settle()
    assert w.llm.prompts == []
