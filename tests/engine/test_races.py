"""Watches and nudges against what happens between a question and its answer, and over restarts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.engine.test_stuck import INCOMPLETE, UNREADABLE, World, answer, running
from tests.support.sim import SimHost, bash


@pytest.fixture
async def w(tmp_path: Path) -> AsyncIterator[World]:
    world = World(tmp_path)
    await world.host.connect(await world.sim.start())
    yield world
    await world.host.disconnect()
    await world.sim.stop()


async def _ignored(w: World) -> None:
    """Feedback went out, and the agent did not begin."""
    await w.begin()
    w.host.ignores = True
    w.llm.add(INCOMPLETE)
    await w.host.works("ses_a", "Half done.", tools=(bash("ls"),))
    await w.sim.settle()


# --- a watch is never lost ----------------------------------------------------------------------------


@pytest.mark.parametrize("killed", [True, False], ids=["daemon killed", "stream broke"])
async def test_a_working_session_is_watched_again(w: World, killed: bool) -> None:
    """I35: an agent that worked when the daemon died, or the stream broke, is still noticed when it stalls."""
    await w.begin()
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


@pytest.mark.parametrize("target", ["session", "directory"])
async def test_switched_on_while_it_works(w: World, target: str) -> None:
    """I40: a session that became busy while switched off is watched once it is switched on again."""
    where: dict[str, Any] = {"session": "ses_a"} if target == "session" else {"directory": str(w.workspace)}
    await w.host.create("ses_a")
    await w.sim.daemon.intake.switch(on=False, **where)
    await w.host.types("ses_a")
    await w.host.answers("ses_a", "I am about", finish="")
    await w.sim.later(100)
    assert (w.llm.prompts, w.host.toasts) == ([], [])
    await w.sim.daemon.intake.switch(on=True, **where)
    w.llm.add(answer("genuinely_stuck"))
    await w.sim.later(36)
    assert len(w.host.toasts) == 1


async def test_the_late_error_of_an_older_answer(w: World) -> None:
    """I13: Esc on the task before says nothing about this one, which is watched as ever."""
    await w.host.create("ses_a")
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


async def test_a_person_who_types_while_the_messages_are_read(w: World, slow: SlowHost) -> None:
    """I14: messages read before the person typed do not bring the old task back; nothing is sent."""
    await _ignored(w)

    async def types() -> None:
        await slow.types("ses_a", "Something else")

    slow.then = types
    await w.sim.later(31)
    s = w.sim.daemon.world.sessions.get("ses_a")
    assert s is not None
    assert (s.task, s.busy, s.nudges) == (slow.human("ses_a"), True, 0)
    assert not [o for o in slow.orders if o["kind"] == "nudge"]


async def test_work_that_begins_while_the_messages_are_read(w: World, slow: SlowHost) -> None:
    """I10: messages read before the agent went on do not make it look idle; no nudge leaves."""
    await _ignored(w)

    async def begins() -> None:
        await slow.busy("ses_a")

    slow.then = begins
    await w.sim.later(31)
    s = w.sim.daemon.world.sessions.get("ses_a")
    assert s is not None
    assert (s.busy, s.nudges) == (True, 0)
    assert not [o for o in slow.orders if o["kind"] == "nudge"]
