"""What is looked after when a host is back, among thousands of sessions; the rest is in ``test_round.py``."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from daemon.app import Daemon
from daemon.core.orders import SendFeedback
from daemon.core.session import Session
from daemon.engine.hosts.host import READS
from daemon.engine.recover import LOOKED_AFTER
from daemon.store import outbox
from daemon.testing import FakeClock, ScriptedLLM
from tests.support.hosts.claude_code_sim import ClaudeSim
from tests.support.hosts.opencode_sim import SimDaemon, SimHost
from tests.support.hosts.world import COMPLETE

MANY = 12_000
STARTS = 20


async def fill(sim: SimDaemon, work: Path) -> None:
    """A folder in which thousands of agents wait to be judged, each with an order that has no outcome."""
    world, now = sim.daemon.world, sim.clock.ms
    left = [
        Session(id=f"old{n:05d}", directory=str(work), recheck=True, idle_at=now, task="t", instance="gone")
        for n in range(MANY)
    ]
    orders = [
        outbox.Stored(f"rfl_{s.id}", s.id, "sent", "gone", now, SendFeedback(s.id, "t", "u", "Go on."))
        for s in left
    ]
    await world.db.commit(world.sessions.statement({s.id: s for s in left}, now), outbox.add(orders))


async def starts(sim: SimDaemon, work: Path, name: str) -> float:
    """CPU seconds for some sessions of Claude Code that begin and are prompted."""
    began = time.process_time()
    for n in range(STARTS):
        claude = ClaudeSim(sim.daemon, sim.clock, work, f"{name}{n}")
        await claude.start()
        await claude.types()
        await sim.settle()
    return time.process_time() - began


@pytest.mark.shows("I44")
async def test_thousands_of_open_sessions_do_not_slow_a_hook(sim: SimDaemon, tmp_path: Path) -> None:
    """A session of Claude Code is looked after alone, whatever else is open in its folder."""
    work = tmp_path / "work"
    await starts(sim, work, "warm")
    alone = await starts(sim, work, "alone")
    await fill(sim, work)
    assert await starts(sim, work, "among") < 3 * alone + 0.2


@pytest.mark.shows("I44")
async def test_of_thousands_the_newest_are_looked_after(sim: SimDaemon, tmp_path: Path) -> None:
    """A process of opencode that comes back reads the newest sessions of its folder, not all of them."""
    work = tmp_path / "work"
    await fill(sim, work)
    host = SimHost(str(work), sim.clock)
    await host.connect(sim.daemon)
    while len(host.orders) < LOOKED_AFTER:
        await sim.settle()
    await sim.settle()
    assert [o["kind"] for o in host.orders] == ["read"] * LOOKED_AFTER
    await host.disconnect()


async def test_a_toast_of_a_host_that_died_is_over(sim: SimDaemon, tmp_path: Path) -> None:
    """Killed while it showed a toast, opencode never says what became of it. The order does not stay open:
    nobody comes back for it.
    """
    assert isinstance(sim.provider, ScriptedLLM)
    sim.provider.script += [COMPLETE]
    host = SimHost(str(tmp_path / "work"), sim.clock)
    host.deaf_to = "toast"
    await host.connect(sim.daemon)
    await host.types("ses_a")
    await host.works("ses_a")
    while not sim.daemon.world.outbox.open("ses_a"):
        await asyncio.sleep(0.001)
    await host.disconnect()
    await sim.settle()
    assert sim.daemon.world.outbox.open() == []
    (status,) = {row[0] for row in sim.daemon.db.read("SELECT status FROM outbox WHERE kind = 'toast'")}
    assert status == "expired"


class Slow(SimHost):
    """Gives the messages of a session only when it is told to."""

    def __init__(self, directory: str, clock: FakeClock) -> None:
        super().__init__(directory, clock)
        self.asked: list[dict[str, Any]] = []

    async def _carry_out(self, daemon: Daemon, order: dict[str, Any]) -> None:
        if order["kind"] == "read":
            self.asked.append(order)
        else:
            await super()._carry_out(daemon, order)

    async def give(self, daemon: Daemon) -> None:
        """Answer what it was asked for by now."""
        asked, self.asked = self.asked, []
        for order in asked:
            await super()._carry_out(daemon, order)


@pytest.mark.shows("I21")
async def test_a_host_that_is_back_is_asked_for_a_few_sessions_at_once(
    sim: SimDaemon, tmp_path: Path
) -> None:
    """After a kill many turns wait. A host gives one after the other; none may run out of its time because
    the host was busy with the others, so each begins when it is its turn.
    """
    names = [f"s{n:02d}" for n in range(5 * READS)]
    host = Slow(str(tmp_path / "work"), sim.clock)
    await host.connect(sim.daemon)
    for name in names:
        await host.types(name)
    await host.disconnect()
    await sim.kill()
    for name in names:
        await host.works(name)
    assert isinstance(sim.provider, ScriptedLLM)
    sim.provider.script += [COMPLETE] * len(names)
    await sim.start()
    await host.connect(sim.daemon)
    most, same = 0, 0
    while sim.daemon._tasks:  # each time that nothing more is asked for, the host answers
        before = len(host.asked)
        await asyncio.sleep(0.001)
        same = same + 1 if before == len(host.asked) else 0
        if same == 10:
            most, same = max(most, before), 0
            await host.give(sim.daemon)
    await sim.settle()
    rows = sim.daemon.db.read("SELECT session, state FROM verdicts ORDER BY session")
    assert rows == [(name, "complete") for name in names]
    assert most <= READS, "the time of each begins when it is asked for"
    await host.disconnect()


async def test_who_waits_for_a_host_that_goes_away_is_not_kept(sim: SimDaemon, tmp_path: Path) -> None:
    """What was not asked for yet fails at once, without a verdict: the host may come back."""
    host = Slow(str(tmp_path / "work"), sim.clock)
    await host.connect(sim.daemon)
    for n in range(2 * READS):
        await host.types(f"s{n:02d}")
        await host.works(f"s{n:02d}")
    await host.disconnect()
    await sim.settle()
    assert sim.daemon.db.read("SELECT session FROM verdicts") == []
