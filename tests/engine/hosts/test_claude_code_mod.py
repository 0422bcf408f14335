"""What the mod adds to the hooks of Claude Code: the real engine, a simulated host whose mod runs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from daemon.engine.hosts import claude_code
from daemon.engine.hosts.claude_code import HOLDING, JUDGING
from tests.engine.hosts.test_claude_code import COMPLETE, INCOMPLETE, World
from tests.support.hosts.claude_code_sim import ClaudeSim, bash, until, write

MOD: dict[str, Any] = {"reflectd_mod": 1}


@pytest.fixture
async def w(tmp_path: Path) -> AsyncIterator[World]:
    world = World(tmp_path)
    await world.sim.start()
    yield world
    await world.sim.stop()


async def types(c: ClaudeSim, text: str, origin: str = "composer") -> str:
    """A prompt, with what the mod adds to its hook; the id of the task."""
    c.prompt_id = c.id()
    c.heard = await c.hook("UserPromptSubmit", prompt=text, reflectd_origin=origin, **MOD)
    kind = "human" if origin == "composer" else origin
    c.line("user", message={"role": "user", "content": text}, origin={"kind": kind})
    return c.prompt_id


async def watch(c: ClaudeSim) -> dict[str, Any]:
    """What the mod is answered when it asks what to show."""
    heard = await c.hook("ModWatch")
    found: dict[str, Any] = json.loads(heard.text or "{}")
    return found


async def escapes(c: ClaudeSim, turn: str, prompt: str | None = None) -> None:
    """Esc while the agent works, as the mod tells of it."""
    c.interrupted()
    await c.hook("ModAborted", turn_id=turn, prompt_id=prompt or c.prompt_id)


async def test_the_judgement_is_shown_while_it_lasts_and_when_it_is_over(w: World) -> None:
    """Judging is a line as long as it lasts; what became of it is shown once, and not again with the next
    prompt; then the mod need not ask again.
    """
    w.llm.hold = asyncio.Event()
    w.add(COMPLETE)
    c = await w.begin()
    await types(c, "Do the thing")
    assert await watch(c) == {}
    stop = asyncio.create_task(c.works())
    await until(lambda: w.llm.prompts)
    assert await watch(c) == {"status": JUDGING, "again_ms": 1000}
    assert "send a message to take over" in JUDGING, "typed is not sent"
    w.llm.hold.set()
    assert (await stop).status == 204
    await w.sim.settle()
    assert await watch(c) == {"toasts": ["Task complete"], "status": "Task complete"}
    assert await watch(c) == {}
    w.add(COMPLETE)
    await types(c, "And again")
    assert c.heard.status == 204


@pytest.mark.shows("I34")
async def test_what_nobody_asked_for_is_told_with_the_next_prompt(w: World) -> None:
    """A mod that broke hides nothing. What it did not show is of the old turn: it is not shown later."""
    w.add(COMPLETE)
    c = await w.begin()
    await types(c, "Do the thing")
    await c.works()
    await w.sim.settle()
    await types(c, "Do the next thing")
    assert c.heard.json == {"systemMessage": "reflectd, on the last turn: Task complete"}
    assert await watch(c) == {}


async def test_the_persons_turn_is_shown_too(w: World) -> None:
    """A message that only informs is not worth a line with the next prompt; the mod shows it at once."""
    w.add(
        {"complete": False, "severity": "NONE", "requires_human_action": True, "missing": [], "feedback": ""}
    )
    c = await w.begin()
    await types(c, "Do the thing")
    await c.works("Which of the two colours do you want?")
    await w.sim.settle()
    assert await watch(c) == {"toasts": ["Awaiting user input"], "status": "Awaiting user input"}


async def test_a_shell_that_is_waited_for_is_shown(w: World) -> None:
    """While a command in the background holds up the judgement, the mod says so, and asks seldom; when the
    time is up the turn is judged, and nothing is said of the command any more.
    """
    c = await w.begin()
    await types(c, "Run the slow tests")
    c.leaves("make slow", "b1")
    c.answers("The tests run.")
    stop = asyncio.create_task(c.stops(shells={"b1": "make slow"}))
    sessions = w.sim.daemon.world.sessions
    await until(lambda: (s := sessions.get("s1")) is not None and s.background)
    assert await watch(c) == {"status": HOLDING, "again_ms": 5000}
    w.add(COMPLETE)
    w.clock.advance(601)
    assert (await stop).status == 204
    await w.sim.settle()
    assert (await watch(c))["toasts"] == ["Task complete"]
    assert await watch(c) == {}


@pytest.mark.shows("I14", "GUARD-1")
async def test_a_rewind_that_the_mod_saw(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mod looks once a second, and a wake waits for its next look: feedback about a conversation that the
    person went back from does not leave, also when it was decided already. A session without the mod is woken
    meanwhile.
    """
    monkeypatch.setattr(claude_code, "LOOK_S", 60.0)
    w.add(INCOMPLETE, INCOMPLETE)
    c = await w.begin()
    await types(c, "Do the thing")
    stop = asyncio.create_task(c.works())
    outbox = w.sim.daemon.world.outbox
    await until(lambda: outbox.open("s1"))
    other = await w.begin("s2")
    await other.types()
    assert (await other.works()).status == 422
    assert not stop.done()
    await c.hook("ModAborted", turn_id="rewound u-1", prompt_id=c.prompt_id, reason="rewind")
    assert (await asyncio.wait_for(stop, 5)).status == 204
    await w.sim.settle()
    assert c.wakes == []
    assert [o for o in outbox.open("s1") if o.status == "done"] == []


async def test_the_mod_has_looked(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then feedback leaves at once."""
    monkeypatch.setattr(claude_code, "LOOK_S", 60.0)
    w.add(INCOMPLETE)
    c = await w.begin()
    await types(c, "Do the thing")
    stop = asyncio.create_task(c.works())
    await until(lambda: w.sim.daemon.world.outbox.open("s1"))
    async with asyncio.timeout(30):
        while not stop.done():
            await watch(c)
            await asyncio.sleep(0.01)
    assert (await stop).status == 422


@pytest.mark.shows("I11", "I13")
async def test_esc_while_the_agent_works(w: World) -> None:
    """No hook tells of it, the mod does: the task is over at once, and no model is asked."""
    c = await w.begin()
    await types(c, "Do the thing")
    c.answers("Half of it", tools=(bash("pytest", 1, "1 failed"),))
    await escapes(c, "turn-1")
    await w.sim.settle()
    assert w.verdict()["state"] == "stopped"
    assert not w.llm.prompts
    w.add(COMPLETE)
    task = await types(c, "Now the other half")
    await c.works("All of it.", tools=(write("a.py"),))
    await w.sim.settle()
    assert (w.verdict()["state"], w.verdict()["task"]) == ("complete", task)


@pytest.mark.shows("I13", "I21")
async def test_esc_that_the_file_shows_late(w: World) -> None:
    """The mod is faster than the transcript: the turn that was stopped gets its verdict, and the one before
    it keeps its own.
    """
    w.add(INCOMPLETE)
    c = await w.begin()
    await types(c, "Do the thing")
    assert (await c.works()).status == 422
    await c.hook("UserPromptSubmit", prompt=c.wakes[-1], **MOD)
    c.line("user", message={"role": "user", "content": c.wakes[-1]}, isMeta=True)
    await w.sim.settle()
    await c.hook("ModAborted", turn_id="turn-2", prompt_id=c.prompt_id)
    looking = w.sim.daemon.engine.schedule.task("s1")
    assert looking is not None
    done, _ = await asyncio.wait([looking], timeout=0.5)
    assert not done
    c.answers("Half of it", tools=(bash("pytest", 1, "1 failed"),))
    c.interrupted()
    await w.sim.settle()
    assert w.verdict()["state"] == "stopped"


@pytest.mark.shows("I13", "I21")
@pytest.mark.parametrize("ends", [False, True])
async def test_who_hangs_up_is_heard_all_the_same(w: World, ends: bool) -> None:
    """On a busy machine the mod, and a Claude Code that ends, give up on their request while it is being
    stored. The turn gets its verdict all the same.
    """
    c = await w.begin()
    await types(c, "Do the thing")
    c.answers("Half of it", tools=(bash("pytest", 1, "1 failed"),))
    c.interrupted()
    await w.sim.settle()
    with contextlib.closing(sqlite3.connect(w.sim.daemon.paths.database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        if ends:
            told = asyncio.create_task(c.hook("SessionEnd"))
        else:
            told = asyncio.create_task(c.hook("ModAborted", turn_id="turn-1", prompt_id=c.prompt_id))
        await asyncio.wait((told,), timeout=0.05)
        told.cancel()
        await asyncio.wait((told,))
        other.execute("ROLLBACK")
    await w.sim.settle()
    assert w.verdict()["state"] == "stopped"


@pytest.mark.shows("I13", "I21")
async def test_a_process_that_is_gone_before_its_turn_is_looked_at(w: World) -> None:
    """Esc, and the program ends while the store is slow: the turn gets its verdict all the same."""
    with subprocess.Popen(["sleep", "600"]) as process:
        c = await w.begin()
        c.headers["X-CC-Pid"] = str(process.pid)
        await types(c, "Do the thing")
        c.answers("Half of it", tools=(bash("pytest", 1, "1 failed"),))
        c.interrupted()
        await w.sim.settle()
        process.kill()
    with contextlib.closing(sqlite3.connect(w.sim.daemon.paths.database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        told = asyncio.create_task(c.hook("ModAborted", turn_id="turn-1", prompt_id=c.prompt_id))
        await asyncio.wait((told,), timeout=0.05)
        w.sim.daemon.engine.hooked["claude-code"].sweep()
        other.execute("ROLLBACK")
    await told
    await w.sim.settle()
    assert w.verdict()["state"] == "stopped"
    instance = w.sim.daemon.engine.instances.get("claude-code-s1")
    assert instance is not None
    assert not instance.connected


@pytest.mark.shows("I13")
async def test_esc_told_late_or_twice_is_not_about_the_new_task(w: World) -> None:
    """An Esc belongs to the prompt that it ended, and each is heard once."""
    c = await w.begin()
    old = await types(c, "Do the thing")
    new = await types(c, "Do another thing")
    await c.hook("ModAborted", turn_id="turn-1", prompt_id=old)
    s = w.sim.daemon.world.sessions.get("s1")
    assert s is not None
    assert (s.task, s.aborted, s.busy) == (new, False, True)
    await escapes(c, "turn-2")
    await w.sim.settle()
    heard = w.sim.daemon.engine.intake.events
    await c.hook("ModAborted", turn_id="turn-2", prompt_id=new)
    assert w.sim.daemon.engine.intake.events == heard


@pytest.mark.shows("I4")
async def test_a_prompt_of_another_plugin_is_no_task(w: World) -> None:
    """Its text looks as if a person had typed it; only the mod knows who submitted it."""
    w.add(INCOMPLETE)
    c = await w.begin()
    task = await types(c, "Do the thing")
    await types(c, "The build is red, look at it", "plugin")
    s = w.sim.daemon.world.sessions.get("s1")
    assert s is not None
    assert s.task == task


async def test_whether_the_mod_runs(tmp_path: Path) -> None:
    """It is known from what the hooks carry: it runs, it is missing, or (2.1.197, `claude -p`, switched off)
    it is not expected.
    """

    def runs(world: World, session: str) -> bool | None:
        found = world.sim.daemon.engine.instances.get(f"claude-code-{session}")
        assert found is not None
        return found.mod

    w = World(tmp_path)
    await w.sim.start()
    c = await w.begin("with")
    await types(c, "Hello")
    c = await w.begin("without")
    assert runs(w, "without") is None
    await c.types()
    c = await w.begin("old")
    del c.headers["X-CC-Attended"]
    await c.types()
    assert [runs(w, name) for name in ("with", "without", "old")] == [True, False, None]
    await w.sim.stop()


async def test_nothing_is_shown_where_nothing_may_be(tmp_path: Path) -> None:
    """`toasts = false`, a session that nobody told of, and one that has ended: no answer."""
    w = World(tmp_path, "toasts = false\n")
    await w.sim.start()
    w.add(COMPLETE)
    c = await w.begin()
    await types(c, "Do the thing")
    await c.works()
    await w.sim.settle()
    assert await watch(c) == {}
    c.session = "unknown"
    assert await watch(c) == {}
    await c.hook("ModAborted", turn_id="t", prompt_id="p")
    assert w.sim.daemon.world.sessions.get("unknown") is None
    await w.sim.stop()
