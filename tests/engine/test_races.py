"""Watches and nudges against what happens between a question and its answer, and over restarts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.engine.features.test_stuck import answer
from tests.support.hosts.opencode_sim import SimHost, bash
from tests.support.hosts.world import INCOMPLETE, World


async def _ignored(w: World) -> None:
    """Feedback went out, and the agent did not begin."""
    await w.host.types("ses_a")
    w.host.ignores = True
    w.llm.add(INCOMPLETE)
    await w.goes_on(says="Half done.", tools=(bash("ls"),))


# --- a watch is never lost ----------------------------------------------------------------------------


@pytest.mark.shows("I35")
@pytest.mark.parametrize("killed", [True, False], ids=["daemon killed", "stream broke"])
async def test_a_working_session_is_watched_again(w: World, killed: bool) -> None:
    """An agent that worked when the daemon died, or the stream broke, is noticed when it stalls."""
    await w.host.types("ses_a")
    await w.host.answers("ses_a", "I am about", finish="")
    await w.sim.settle()
    await w.host.disconnect()
    if killed:
        await w.sim.kill()
        await w.sim.start()
    w.llm.add(answer("genuinely_stuck"))
    await w.host.connect(w.sim.daemon)
    await w.sim.settle()
    await w.sim.later(36)
    assert (len(w.host.toasts), w.verdict()["state"]) == (1, "stuck")


@pytest.mark.shows("I40")
@pytest.mark.parametrize("target", ["session", "directory"])
async def test_switched_on_while_it_works(w: World, target: str) -> None:
    """A session that became busy while switched off is watched once it is switched on again."""
    where: dict[str, Any] = {"session": "ses_a"} if target == "session" else {"directory": str(w.workspace)}
    await w.host.create("ses_a")
    await w.sim.daemon.engine.intake.switch(on=False, **where)
    await w.host.types("ses_a")
    await w.host.answers("ses_a", "I am about", finish="")
    await w.sim.later(100)
    assert (w.llm.prompts, w.host.toasts) == ([], [])
    await w.sim.daemon.engine.intake.switch(on=True, **where)
    w.llm.add(answer("genuinely_stuck"))
    await w.sim.later(36)
    assert len(w.host.toasts) == 1


@pytest.mark.shows("I13")
async def test_the_late_error_of_an_older_answer(w: World) -> None:
    """Esc on the task before says nothing about this one, which is watched as ever."""
    await w.host.types("ses_a")
    old = await w.host.answers("ses_a", "", finish="")
    await w.host.idle("ses_a")
    await w.host.types("ses_a", "Another thing")
    await w.host.answers("ses_a", "I am about", finish="")
    error = {"name": "MessageAbortedError", "message": "Aborted"}
    await w.host.emit("message.error", sessionID="ses_a", messageID=old, error=error)
    await w.sim.settle()
    w.llm.add(answer("genuinely_stuck"))
    await w.sim.later(36)
    assert len(w.host.toasts) == 1


# --- what happens while the messages are read, or while a model thinks --------------------------------


class SlowHost(SimHost):
    """Its answer to a read comes late: ``then`` happens between the two, and is heard first."""

    then: Callable[[], Awaitable[object]] | None = None

    async def _do(self, order: dict[str, Any]) -> dict[str, Any]:
        found = json.loads(json.dumps(await super()._do(order)))
        if order["kind"] == "read" and self.then is not None:
            then, self.then = self.then, None
            await then()
        return dict(found)


@pytest.fixture
async def slow(w: World) -> AsyncIterator[SlowHost]:
    await w.host.disconnect()
    w.host = host = SlowHost(str(w.workspace), w.clock, "slow")
    await host.connect(w.sim.daemon)
    yield host
    await host.disconnect()


@pytest.mark.shows("I10", "I14")
@pytest.mark.parametrize("what", ["a person types", "the agent goes on"])
async def test_what_happens_while_the_messages_are_read(w: World, slow: SlowHost, what: str) -> None:
    """Messages read before it do not bring the old task back or make the agent look idle; nothing is sent."""
    await _ignored(w)

    async def happens() -> None:
        await (slow.types("ses_a", "Something else") if what == "a person types" else slow.busy("ses_a"))

    slow.then = happens
    await w.sim.later(31)
    s = w.sim.daemon.world.sessions.get("ses_a")
    assert s is not None
    assert (s.task, s.busy, s.nudges) == (slow.human("ses_a"), True, 0)
    assert not [o for o in slow.orders if o["kind"] == "nudge"]


@pytest.mark.shows("I14", "I40")
@pytest.mark.parametrize("when", ["off", "person types"])
async def test_what_happens_while_a_model_thinks_about_silence(w: World, when: str) -> None:
    """An answer about a session that was switched off, or has a new task, is not told."""
    await w.host.types("ses_a")
    await w.host.answers("ses_a", "I am about", finish="")
    w.llm.add(answer("genuinely_stuck"))
    w.llm.hold = asyncio.Event()
    w.clock.advance(36)
    w.sim.daemon.engine.timers.wake()
    await w.until_asked()
    if when == "off":
        await w.sim.daemon.engine.intake.switch(on=False, session="ses_a")
    else:
        await w.host.types("ses_a", "Something else")
    await w.answered()
    assert w.host.toasts == []


# --- what is bounded ----------------------------------------------------------------------------------


@pytest.mark.shows("I8", "I41")
async def test_a_silent_session_is_asked_about_a_few_times_only(w: World) -> None:
    """A session that is silent all day and never called stuck costs a bounded number of calls."""
    await w.host.types("ses_a")
    await w.host.answers("ses_a", "I am about", finish="")
    w.llm.add(*[answer("working") for _ in range(200)])
    for _ in range(150):
        await w.sim.later(601)
    assert 4 <= len(w.llm.prompts) <= 8
    w.llm.prompts.clear()
    await w.host.emit("activity", sessionID="ses_a", bytes=10)
    await w.sim.later(601)
    assert len(w.llm.prompts) == 1, "the next silence is another one"


@pytest.mark.shows("I44")
@pytest.mark.parametrize("told", [True, False])
async def test_hosts_that_died_leave_no_watches(w: World, told: bool) -> None:
    """Sessions whose host went away while they worked are not looked at for ever."""
    for n in range(30):
        await w.host.types(f"ses_{n:03}")
    w.llm.add(*[answer("genuinely_stuck") for _ in range(30)])
    await w.sim.later(36 if told else 1)
    assert len(w.host.toasts) == (30 if told else 0)
    await w.host.disconnect()
    await w.sim.later(601)
    assert w.sim.daemon.engine.timers.watched == 0


async def test_switched_off_loops_are_not_named(tmp_path: Path) -> None:
    """`stuck.enabled = false`: repetition is neither named nor a reason to stop."""
    async with World(tmp_path, "[stuck]\nenabled = false\n").running() as w:
        await w.host.types("ses_a")
        for _ in range(2):
            w.llm.add(INCOMPLETE)
            calls = tuple(bash("npm test", 1, "boom") for _ in range(8))
            await w.goes_on(says="Still failing, trying again", tools=calls)
        assert w.host.prompts
        assert not [p for p in w.host.prompts if "You repeat yourself" in p.text]
        s = w.sim.daemon.world.sessions.get("ses_a")
        assert s is not None
        assert s.loop == ""


@pytest.mark.shows("I42")
@pytest.mark.parametrize(("away_s", "prompts"), [(120, 1), (1200, 0)])
async def test_a_prompt_that_waited_too_long_is_dropped(w: World, away_s: int, prompts: int) -> None:
    """Feedback without an outcome is carried out when its host comes back, but not much later."""
    await w.host.types("ses_a")
    w.host.deaf_to = "feedback"
    w.llm.add(INCOMPLETE)
    await w.host.works("ses_a", "Half done.", tools=(bash("ls"),))
    await w.until(lambda: w.sim.daemon.world.outbox.open("ses_a"))
    await w.killed()
    w.clock.advance(away_s)
    w.host.deaf_to = ""
    await w.host.connect(await w.sim.start())
    await w.sim.settle()
    assert len(w.host.prompts) == prompts


@pytest.mark.shows("I8")
async def test_feedback_that_was_not_stored_named_no_loop(w: World) -> None:
    """With a full disk the agent is not told of its loop, so the loop does not end the task later."""
    await w.host.types("ses_a")
    w.llm.add(INCOMPLETE)
    w.llm.hold = asyncio.Event()
    calls = tuple(bash("npm test", 1, "boom") for _ in range(8))
    await w.host.works("ses_a", "Still failing, trying again", tools=calls)
    await w.until_asked()
    w.sim.daemon.db._conn.execute("PRAGMA query_only = 1")
    await w.answered()
    s = w.sim.daemon.world.sessions.get("ses_a")
    assert s is not None
    assert (w.host.prompts, s.loop, s.attempts) == ([], "", 0)
    w.sim.daemon.db._conn.execute("PRAGMA query_only = 0")


@pytest.mark.shows("I52")
async def test_a_clock_that_is_set_back(w: World) -> None:
    """A deadline counts from now when the clock was set back: no nudge hours later, out of the blue."""
    await _ignored(w)
    w.clock.jump(-7200)
    w.sim.daemon.engine.intake.recheck_all()
    await w.sim.settle()
    assert w.nudges == []
    await w.sim.later(31)
    assert len(w.nudges) == 1
