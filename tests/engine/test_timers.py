"""Pending actions and watches: several at once, in their order, over restarts and clocks that jump."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from daemon.engine.engine import Engine
from daemon.engine.feature import Feature
from daemon.engine.timers import HOLD_MS
from daemon.store.timers import Pending, PendingKind
from daemon.testing import FakeClock, ScriptedLLM
from tests.support.hosts.opencode_sim import SimDaemon

KINDS: tuple[PendingKind, ...] = ("compaction", "nudge", "idle")


class Notes(Feature):
    """Every kind of timer is its own; it writes down what came due."""

    name = "notes"
    timer_kinds = frozenset(KINDS)

    def __init__(self, parts: Engine) -> None:
        super().__init__(parts)
        self.parts = parts

    did: list[str]

    away: tuple[PendingKind, ...] = ()

    async def due(self, p: Pending) -> None:
        if p.kind in self.away:
            self.parts.timers.hold(p)
        else:
            self.did.append(p.kind)


class Box:
    """A daemon with nothing but timers."""

    def __init__(self, folder: Path) -> None:
        self.clock = FakeClock()
        self.did: list[str] = []
        self.sim = SimDaemon(folder, self.clock, ScriptedLLM(), features=(self._make,))

    def _make(self, parts: Engine) -> Feature:
        self.notes = Notes(parts)
        self.notes.did = self.did
        return self.notes

    def arm(self, kind: PendingKind, seconds: float) -> Pending:
        ms = int(seconds * 1000)
        p = Pending("ses_a", kind, "task", "turn", self.clock.ms + ms, ms)
        self.sim.daemon.engine.timers.arm(p)
        return p


@pytest.fixture
async def box(tmp_path: Path) -> AsyncIterator[Box]:
    found = Box(tmp_path)
    await found.sim.start()
    await found.sim.settle()
    yield found
    await found.sim.stop()


@pytest.mark.shows("I32")
async def test_a_session_may_have_one_of_each_kind(box: Box) -> None:
    """What ranks higher goes first; what ranks lower waits for it and is not forgotten."""
    box.arm("nudge", 10)
    box.arm("compaction", 15)
    await box.sim.later(12)
    assert box.did == [], "the nudge waits for the compaction"
    await box.sim.later(4)
    assert box.did == ["compaction"]
    await box.sim.later(HOLD_MS / 1000)
    assert box.did == ["compaction", "nudge"]


@pytest.mark.shows("I32", "I44")
async def test_what_waits_for_a_held_action_waits_without_a_loop(box: Box) -> None:
    """The compaction's host is away, so its deadline is past; the nudge behind it waits, asleep."""
    box.notes.away = ("compaction",)
    box.sim.daemon.engine.timers.arm(Pending("ses_a", "compaction", "task", "", box.clock.ms + 2_000, 15_000))
    box.sim.daemon.engine.timers.arm(Pending("ses_a", "nudge", "task", "turn", box.clock.ms + 9_000, 60_000))
    for seconds in (2, 5, 2, 5):
        await box.sim.later(seconds)
    assert box.did == []
    for seconds in (5, 5, 5):
        await box.sim.later(seconds)
    assert box.did == ["nudge"], "the compaction was overdue and dropped"


async def test_a_new_one_takes_the_place_of_its_own_kind_only(box: Box) -> None:
    """The later deadline counts; other kinds stay."""
    box.arm("nudge", 10)
    box.arm("idle", 10)
    box.arm("nudge", 30)
    await box.sim.later(11)
    timers = box.sim.daemon.engine.timers
    assert box.did == []
    assert timers.pending("ses_a", "nudge") is not None
    timers.cancel("ses_a", "nudge")
    await box.sim.later(30)
    assert box.did == ["idle"], "it waited for the nudge"


@pytest.mark.shows("I42")
async def test_they_survive_a_restart(box: Box) -> None:
    """Both kinds are there again, with their deadlines."""
    armed = [box.arm("nudge", 60), box.arm("idle", 90)]
    await box.sim.settle()
    await box.sim.kill()
    await box.sim.start()
    timers = box.sim.daemon.engine.timers
    assert [timers.pending("ses_a", p.kind) for p in armed] == armed
    await box.sim.later(61)
    await box.sim.later(30 + HOLD_MS / 1000)
    assert box.did == ["nudge", "idle"]


async def test_one_that_is_overdue_is_dropped(box: Box) -> None:
    """The machine slept for longer than the action was set for."""
    box.arm("nudge", 10)
    await box.sim.later(25)
    assert box.did == []
    assert box.sim.daemon.engine.timers.pending("ses_a", "nudge") is None


@pytest.mark.shows("I52")
async def test_a_clock_that_was_set_back_puts_nothing_off_for_hours(box: Box) -> None:
    """An action is never further away than it was set for."""
    p = box.arm("nudge", 10)
    box.clock.jump(-3_600)
    await box.sim.later(0)
    assert box.sim.daemon.engine.timers.pending("ses_a", "nudge") == replace(p, due=box.clock.ms + 10_000)
    await box.sim.later(10)
    assert box.did == ["nudge"]


async def test_a_watch_looks_once_and_is_replaced(box: Box) -> None:
    """The newest call for a session counts; a session that stopped is not looked at."""
    looked: list[str] = []

    async def look(session: str) -> None:
        looked.append(session)

    timers = box.sim.daemon.engine.timers
    timers.watch("ses_a", box.clock.ms + 1_000, look)
    timers.watch("ses_a", box.clock.ms + 5_000, look)
    timers.watch("ses_b", box.clock.ms + 1_000, look)
    timers.unwatch("ses_b")
    await box.sim.later(2)
    assert looked == []
    await box.sim.later(4)
    assert (looked, timers.watched) == (["ses_a"], 0)
