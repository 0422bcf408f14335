"""Background work: stored until done, in order within a lane, tried again, bounded, safe from kill -9."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from daemon.app import FEATURES, Daemon
from daemon.core.errors import Unavailable
from daemon.engine.engine import Engine
from daemon.engine.feature import Feature
from daemon.engine.jobs import FIRST_PAUSE_MS, HOUR_MS, RETENTION, TRIES
from daemon.store import jobs as rows
from daemon.store import ledger
from daemon.store.db import Statement
from daemon.store.jobs import Job
from daemon.store.retention import DAY_MS
from daemon.testing import FakeClock, ScriptedLLM
from tests.support.hosts.opencode_sim import SimDaemon
from tests.support.hosts.world import COMPLETE, World

COUNT = ("INSERT INTO instances (id, seq, updated) VALUES (?, 1, 1)", [("done",)])


class Worker(Feature):
    """Notes what it did; what it is to do can be set."""

    name: ClassVar = "worker"
    job_kinds: ClassVar = frozenset({"dig", "haul"})

    def __init__(self, parts: Engine) -> None:
        super().__init__(parts)
        self.parts = parts
        self.did: list[str] = []
        self.fails = 0
        self.steps = 0
        self.gate: asyncio.Event | None = None

    async def work(self, job: Job) -> None:
        self.did.append(f"{job.kind} {job.key}{job.cursor}")
        if self.gate is not None:
            await self.gate.wait()
        if self.fails and (not self.steps or job.cursor):
            self.fails -= 1
            raise Unavailable("no spade")
        step = int(job.cursor or 0) + 1 if self.steps else 0
        if step < self.steps:
            await self.work(await self.parts.jobs.keep(job, cursor=str(step)))
        elif self.steps:
            await self.parts.jobs.finish(job)


class Site:
    """A daemon with the worker."""

    def __init__(self, folder: Path) -> None:
        self.clock = FakeClock()
        self.sim = SimDaemon(folder, self.clock, ScriptedLLM(), features=(*FEATURES, self._hire))
        self.worker: Worker = None  # type: ignore[assignment]

    def _hire(self, parts: Engine) -> Feature:
        self.worker = Worker(parts)
        return self.worker

    @property
    def daemon(self) -> Daemon:
        return self.sim.daemon

    async def add(self, key: str, kind: str = "dig", lane: str = "pit", **body: Any) -> None:
        jobs = self.daemon.engine.jobs
        await self.daemon.db.commit(jobs.statement(kind, key, body, lane=lane))
        jobs.wake()

    async def until(self, true: Callable[[], bool]) -> None:
        for _ in range(5_000):
            if true():
                return
            await asyncio.sleep(0.001)
        raise AssertionError(f"it did {self.worker.did}")

    def left(self) -> dict[str, int]:
        found = rows.waiting(self.daemon.db)
        found.pop(RETENTION, None)
        return found


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    found = Site(tmp_path)
    await found.sim.start()
    await found.sim.settle()
    yield found
    await found.sim.stop()


async def test_a_lane_goes_in_order_and_lanes_beside_each_other(site: Site) -> None:
    """One lane that waits holds up no other."""
    site.worker.gate = asyncio.Event()
    await site.add("1")
    await site.add("2")
    await site.add("3", "haul", "road")
    await site.until(lambda: len(site.worker.did) == 2)
    assert sorted(site.worker.did) == ["dig 1", "haul 3"]
    site.worker.gate.set()
    await site.until(lambda: not site.left())
    assert [d for d in site.worker.did if d.startswith("dig")] == ["dig 1", "dig 2"]


@pytest.mark.shows("I30", "I44")
async def test_a_job_that_fails_is_tried_again_and_then_given_up(site: Site) -> None:
    """Ever later, and not for ever."""
    site.worker.fails = TRIES + 1
    await site.add("1")
    for tries in range(1, TRIES + 1):
        await site.until(lambda tries=tries: len(site.worker.did) == tries)  # type: ignore[misc]
        await site.sim.settle()
        assert site.left() == ({"dig": 1} if tries < TRIES else {})
        await site.sim.later(FIRST_PAUSE_MS * 2**tries / 1000)
    assert site.worker.did == ["dig 1"] * TRIES


@pytest.mark.shows("I48")
async def test_a_database_that_takes_nothing_is_not_asked_all_the_time(site: Site) -> None:
    """The job stays, its lane pauses, and `status` says why; when the database works the job is done."""
    with sqlite3.connect(site.daemon.paths.database) as c:
        for what in ("UPDATE", "DELETE"):
            c.execute(f"CREATE TRIGGER no_{what} BEFORE {what} ON jobs BEGIN SELECT raise(ABORT, 'no'); END")
    c.close()
    await site.add("1")
    await site.until(lambda: "database" in site.daemon.world.health.faults)
    await site.sim.settle()
    await site.add("2")
    await site.sim.settle()
    assert site.worker.did == ["dig 1"]
    with sqlite3.connect(site.daemon.paths.database) as c:
        c.execute("DROP TRIGGER no_UPDATE")
        c.execute("DROP TRIGGER no_DELETE")
    c.close()
    await site.sim.later(FIRST_PAUSE_MS / 1000)
    await site.until(lambda: not site.left())
    assert site.worker.did == ["dig 1", "dig 1", "dig 2"]


async def test_work_waits_for_judging(tmp_path: Path) -> None:
    """A turn that is judged comes first; the job is done when it has its verdict."""
    hired: list[Worker] = []
    async with World(
        tmp_path, features=(*FEATURES, lambda parts: hired.append(Worker(parts)) or hired[0])
    ).running() as w:
        await w.sim.settle()
        w.llm.hold = asyncio.Event()
        w.llm.add(COMPLETE)
        await w.host.types("ses_a")
        await w.host.works("ses_a")
        await w.until_asked()
        jobs = w.sim.daemon.engine.jobs
        await w.sim.daemon.db.commit(jobs.statement("dig", "1", lane="pit"))
        jobs.wake()
        while "pit" not in jobs._lanes:
            await asyncio.sleep(0.001)
        assert hired[0].did == []
        w.llm.hold.set()
        await w.sim.settle()
        assert hired[0].did == ["dig 1"]
        assert w.verdict()["state"] == "complete"


@pytest.mark.shows("I42")
async def test_killed_in_the_middle_it_goes_on_from_its_cursor(site: Site) -> None:
    """What was stored with the cursor is there once; the rest is done after the restart."""
    await site.add("1")
    await site.until(lambda: not site.left())
    site.worker.did.clear()
    site.worker.gate = asyncio.Event()
    await site.add("2")
    await site.until(lambda: site.worker.did == ["dig 2"])
    (job,) = [j for j in rows.next_of_each_lane(site.daemon.db) if j.kind == "dig"]
    await site.daemon.engine.jobs.keep(job, COUNT, cursor=" half")
    await site.sim.kill()
    await site.sim.start()
    await site.until(lambda: site.worker.did == ["dig 2 half"])
    await site.sim.settle()
    assert site.left() == {}
    assert site.daemon.db.read("SELECT count(*) FROM instances WHERE id = 'done'") == [(1,)]


@pytest.mark.shows("I42")
async def test_the_end_of_a_job_and_what_it_changes_are_one(site: Site) -> None:
    """When the change is refused the job stays."""
    site.worker.gate = asyncio.Event()
    await site.add("1")
    await site.until(lambda: bool(site.worker.did))
    (job,) = [j for j in rows.next_of_each_lane(site.daemon.db) if j.kind == "dig"]
    with pytest.raises(Unavailable):
        await site.daemon.engine.jobs.finish(job, COUNT, COUNT)
    assert site.left() == {"dig": 1}
    assert site.daemon.db.read("SELECT count(*) FROM instances WHERE id = 'done'") == [(0,)]
    site.worker.gate.set()


@pytest.mark.shows("I44")
async def test_a_lane_is_bounded(site: Site) -> None:
    """A feature that stores jobs without end fills no disk: the oldest go."""
    site.worker.gate = asyncio.Event()
    await site.daemon.db.commit(
        *(site.daemon.engine.jobs.statement("dig", str(n), lane="pit") for n in range(rows.KEPT + 100))
    )
    await site.daemon.db.commit(rows.drop_oldest("pit"))
    assert site.left() == {"dig": rows.KEPT}
    oldest = site.daemon.db.read("SELECT key FROM jobs WHERE lane = 'pit' ORDER BY id LIMIT 1")
    assert oldest == [("100",)]
    with sqlite3.connect(site.daemon.paths.database) as c:
        c.execute("DELETE FROM jobs WHERE lane = 'pit'")
    c.close()
    site.worker.gate.set()


async def test_a_dear_month_is_warned_of_once(site: Site) -> None:
    """When it is expected to cost more than ``MONTH_EUR``. Two currencies are not added up."""
    daemon = site.daemon

    def paid(cost: float, currency: str) -> Statement:
        return ledger.add(
            ledger.Entry(
                site.clock.ms, "judge", "s", "anthropic", "m", 1, 1, cost, 1, "ok", currency=currency
            )
        )

    def warned() -> list[tuple[str]]:
        return daemon.db.read("SELECT what FROM told_once WHERE what LIKE 'month %'")

    await daemon.db.commit(paid(6.0, "USD"), paid(6.0, "EUR"))
    months = {m.currency: m.so_far for m in daemon.world.ledger.month(site.clock.ms)}
    assert months == {"USD": 6.0, "EUR": 6.0}
    await daemon.db.commit(paid(20.0, "USD"))
    await site.sim.later(HOUR_MS / 1000)
    await site.until(lambda: bool(warned()))
    first = warned()
    await site.sim.later(HOUR_MS / 1000)
    await site.sim.settle()
    assert warned() == first


async def test_retention_comes_once_an_hour_and_after_a_restart_only_when_due(site: Site) -> None:
    """Retention is a job: it says when it is next due, and a restart does not bring that forward."""
    due = site.daemon.db.read("SELECT due FROM jobs WHERE kind = ?", (RETENTION,))
    assert due == [(site.clock.ms + HOUR_MS,)]
    await site.sim.stop()
    site.clock.advance(60)
    await site.sim.start()
    await site.sim.settle()
    assert site.daemon.db.read("SELECT due FROM jobs WHERE kind = ?", (RETENTION,)) == due


def _instances(site: Site) -> int:
    return int(site.daemon.db.read("SELECT count(*) FROM instances WHERE id LIKE 'old%'")[0][0])


async def _with_one_a_day(site: Site, days: int) -> None:
    """So many rows, one for each of the last days."""
    rows = [(f"old{n}", site.clock.ms - n * DAY_MS) for n in range(days)]
    await site.daemon.db.commit(("INSERT INTO instances (id, seq, updated) VALUES (?, 1, ?)", rows))
    for _ in range(25):  # the first day of a database deletes nothing
        await site.sim.later(HOUR_MS / 1000)
        await site.sim.settle()


@pytest.mark.shows("I52")
async def test_at_most_a_days_worth_is_deleted_in_a_day(site: Site) -> None:
    """The oldest day of each table goes first, and the next one a day later."""
    await _with_one_a_day(site, 120)
    left = _instances(site)
    assert left == 119
    for _ in range(48):
        await site.sim.later(HOUR_MS / 1000)
        await site.sim.settle()
    assert _instances(site) == left - 2


@pytest.mark.shows("I52")
async def test_a_clock_that_jumps_deletes_nothing(site: Site) -> None:
    """Five years ahead for a moment and back, with a restart in between: nothing is too old for a day, also
    for what comes again and again; a clock that stays ahead deletes a day's worth a day.
    """
    await _with_one_a_day(site, 80)
    for _ in range(3):
        site.clock.jump(5 * 365 * 86_400)
        await site.sim.later(HOUR_MS / 1000)
        await site.sim.settle()
        await site.sim.stop()
        await site.sim.start()
        await site.sim.later(HOUR_MS / 1000)
        await site.sim.settle()
        assert _instances(site) == 80
        site.clock.jump(-5 * 365 * 86_400)
        await site.sim.later(HOUR_MS / 1000)
        await site.sim.settle()
        assert _instances(site) == 80
    ((due,),) = site.daemon.db.read("SELECT due FROM jobs WHERE kind = ?", (RETENTION,))
    assert due <= site.clock.ms + HOUR_MS
    site.clock.jump(5 * 365 * 86_400)
    for _ in range(50):
        await site.sim.later(HOUR_MS / 1000)
        await site.sim.settle()
    assert 76 <= _instances(site) < 80
