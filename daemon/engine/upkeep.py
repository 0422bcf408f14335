"""The engine's own jobs: deletes what is too old to keep, and warns of a month that becomes dear."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from msgspec import to_builtins

from ..core.errors import Unavailable
from ..core.policy import MONTH_EUR
from ..store import jobs as rows
from ..store import ledger, outbox, retention, sessions, verdicts
from ..store.readonly import ReadOnly
from .jobs import UPKEEP

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ..store.db import Statement
    from ..store.jobs import Job
    from .feature import Features
    from .jobs import Jobs
    from .world import World

RETENTION: Final = "retention"
HOUR_MS: Final = 3_600_000


async def aged_ms(world: World, what: str) -> int:
    """The time by which rows are too old: now, once a day, else ``NOTHING``. Raises ``Unavailable``."""
    now = world.clock.now_ms()
    look = retention.look(world.db, what, now)
    await world.db.commit(*look.kept)
    if look.off_ms:
        days = round(look.off_ms / retention.DAY_MS)
        world.log.warning(
            "nothing is deleted for a day: the clock jumped, or no daemon ran", days=days, of=what
        )
    return now if look.may else retention.NOTHING


def standstills(world: World) -> list[dict[str, Any]]:
    """Of what nothing is deleted because of the clock: each a ``retention.Standstill``."""
    now = world.clock.now_ms()
    found = (retention.standstill(world.db, what, now) for what in retention.KINDS)
    return [to_builtins(stands) for stands in found if stands is not None]


def _count(database: Path, statements: Sequence[Statement]) -> dict[str, int]:
    """How many rows of each table the statements would delete. It blocks: call it in a thread."""
    found: dict[str, int] = {}
    with ReadOnly(database) as db:
        for sql, parameters in statements:
            if sql.startswith("DELETE FROM "):
                counted = sql.replace("DELETE", "SELECT count(*)", 1)
                ((number,),) = db.read(counted, parameters[0])
                table = sql.split()[2]
                found[table] = found.get(table, 0) + int(number)
    return {table: number for table, number in found.items() if number}


class Upkeep:
    """Does its own jobs and hands the others to the features."""

    def __init__(self, world: World, jobs: Jobs, features: Features) -> None:
        self._world = world
        self._jobs = jobs
        self._features = features

    def first_jobs(self) -> list[Statement]:
        """The jobs to store when the daemon starts."""
        return [self._jobs.statement(RETENTION, "", lane=UPKEEP)]

    async def work(self, job: Job) -> None:
        """Do one job. Raises ``Unavailable`` when it is to be tried again."""
        if job.kind == RETENTION:
            await self._prune(job)
        else:
            await self._features.work(job)

    async def _prune(self, job: Job) -> None:
        """Old rows, and rows above a bound, go. One table after the other, so that nothing waits long; the
        job's cursor has the progress.

        A failure is logged and left for the next time: it must not keep the rest.
        """
        now = self._world.clock.now_ms()
        statements = self._statements(await aged_ms(self._world, "rows"))
        done = int(job.cursor) if job.cursor.isdecimal() and len(job.cursor) < 10 else 0
        for i, statement in enumerate(statements[done:], done + 1):
            try:
                job = await self._jobs.keep(job, statement, cursor=str(i))
            except Unavailable as e:
                self._world.log.warning("not deleted", statement=statement[0][:80], error=str(e))
                job = await self._jobs.keep(job, cursor=str(i))
        await self._warn_of_month(now)
        await self._jobs.keep(job, cursor="", due_ms=now + HOUR_MS)

    def _statements(self, aged: int) -> tuple[Statement, ...]:
        """They delete what is too old at that time, or above a bound."""
        return (
            *sessions.prune(aged),
            *outbox.prune(aged),
            verdicts.prune(aged),
            ledger.prune(aged),
            *self._features.prune(aged),
        )

    async def prune(self, *, trust: bool) -> dict[str, Any]:
        """``POST /v1/prune``: what would be deleted by this clock, and whether that stands still. Raises
        ``Unavailable``.

        ``trust``: a person says that the clock is right, which ends a standstill (``ended``).
        """
        world, now = self._world, self._world.clock.now_ms()
        stands = standstills(world)
        ends = {s["what"]: retention.trust_clock(world.db, s["what"], now) for s in stands} if trust else {}
        old = await asyncio.to_thread(_count, world.db.path, self._statements(now))
        if any(ends.values()):
            marks = [statement for each in ends.values() for statement in each]
            await world.db.commit(*marks, rows.hasten_lane(UPKEEP, now), durable=True)
            self._jobs.wake()
            world.log.warning("a person says that the clock is right", of=[k for k, v in ends.items() if v])
        return {"now": now, "standstill": stands, "old": old, "ended": [k for k, v in ends.items() if v]}

    async def _warn_of_month(self, now: int) -> None:
        """Once a month: it is expected to cost more than ``MONTH_EUR``."""
        world = self._world
        over = [m for m in world.ledger.month(now) if m.expected > MONTH_EUR]
        if not over:
            return
        name = f"month {datetime.fromtimestamp(now / 1000).astimezone():%Y-%m}"
        if world.db.read("SELECT 1 FROM told_once WHERE what = ?", (name,)):
            return
        await world.db.commit(("INSERT OR IGNORE INTO told_once (what, at) VALUES (?, ?)", [(name, now)]))
        world.log.warning(
            "this month is expected to cost more than usual; nothing is stopped",
            limit_eur=MONTH_EUR,
            **{m.currency: f"{m.so_far:.2f} so far, {m.expected:.2f} expected" for m in over},
        )
