"""The engine's own jobs: tells features that a task is over, deletes what is too old to keep, and warns of a
month that becomes dear.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

import msgspec

from ..core.errors import Unavailable
from ..core.task import ClosedTask
from ..store import ledger, outbox, retention, sessions, verdicts
from .commit import CLOSED
from .jobs import FACTS, UPKEEP

if TYPE_CHECKING:
    from ..store.db import Statement
    from ..store.jobs import Job
    from .features.registry import Features
    from .jobs import Jobs
    from .world import World

RETENTION: Final = "retention"
HOUR_MS: Final = 3_600_000


async def aged_ms(world: World, what: str) -> int:
    """The time by which rows are too old: now, once a day, else ``NOTHING``. Raises ``Unavailable``."""
    now = world.clock.now_ms()
    may, following, off_ms = retention.next_time(world.db, what, now)
    await world.db.commit(retention.set_next(what, following))
    if off_ms:
        days = round(off_ms / retention.DAY_MS)
        world.log.warning(
            "nothing is deleted for a day: the clock jumped, or no daemon ran", days=days, of=what
        )
    return now if may else retention.NOTHING


class Upkeep:
    """Does its own jobs and hands the others to the features."""

    def __init__(self, world: World, jobs: Jobs, features: Features) -> None:
        self._world = world
        self._jobs = jobs
        self._features = features

    def first_jobs(self) -> list[Statement]:
        """What must be stored when the daemon starts."""
        return [self._jobs.statement(RETENTION, "", lane=UPKEEP), *self._features.first_jobs()]

    async def work(self, job: Job) -> None:
        """Do one job. Raises ``Unavailable`` when it is to be tried again."""
        if job.kind == CLOSED:
            await self._closed(job)
        elif job.kind == RETENTION:
            await self._prune(job)
        else:
            await self._features.work(job)

    async def _closed(self, job: Job) -> None:
        """Make one job of this for each feature, so that one that fails holds up no other; then tell it."""
        name = job.body.get("feature")
        if name is None:
            each = [{**job.body, "feature": f.name} for f in self._features]
            await self._jobs.finish(
                job, *(self._jobs.statement(CLOSED, f"{job.key} {b['feature']}", b, lane=FACTS) for b in each)
            )
            return
        try:
            task = msgspec.convert({k: v for k, v in job.body.items() if k != "feature"}, ClosedTask)
        except msgspec.ValidationError as e:
            self._world.log.warning("job not understood", kind=job.kind, key=job.key, error=str(e))
            return
        task = replace(task, reward=self._world.verdicts.lowest_reward(task.session, task.task))
        await self._jobs.finish(job, *self._features.closed(str(name), task))

    async def _prune(self, job: Job) -> None:
        """What is too old or above a bound goes. One table after the other, so that nothing waits long; the
        job's cursor says how far it got.

        What can't be deleted is logged and left for the next time: it must not keep the rest.
        """
        now = self._world.clock.now_ms()
        aged = await aged_ms(self._world, "rows")
        statements = (
            *sessions.prune(aged),
            *outbox.prune(aged),
            verdicts.prune(aged),
            ledger.prune(aged),
            *self._features.prune(aged),
        )
        done = int(job.cursor) if job.cursor.isdecimal() and len(job.cursor) < 10 else 0
        for i, statement in enumerate(statements[done:], done + 1):
            try:
                job = await self._jobs.keep(job, statement, cursor=str(i))
            except Unavailable as e:
                self._world.log.warning("not deleted", statement=statement[0][:80], error=str(e))
                job = await self._jobs.keep(job, cursor=str(i))
        await self._warn_of_month(now)
        await self._jobs.keep(job, cursor="", due_ms=now + HOUR_MS)

    async def _warn_of_month(self, now: int) -> None:
        """Once a month: it is expected to cost more than ``spend.cents_per_month``."""
        world = self._world
        limit = world.settings.spend.cents_per_month / 100
        over = [m for m in world.ledger.month(now) if limit and m.expected > limit]
        if not over:
            return
        name = f"month {datetime.fromtimestamp(now / 1000).astimezone():%Y-%m}"
        if world.db.read("SELECT 1 FROM told_once WHERE what = ?", (name,)):
            return
        await world.db.commit(("INSERT OR IGNORE INTO told_once (what, at) VALUES (?, ?)", [(name, now)]))
        world.log.warning(
            "this month is expected to cost more than spend.cents_per_month; nothing is stopped",
            limit_eur=limit,
            **{m.currency: f"{m.so_far:.2f} so far, {m.expected:.2f} expected" for m in over},
        )
