"""Background work that survives a restart: each job is stored until it is done (I42).

Jobs of one lane are done one after the other, oldest first. Lanes work beside each other, and wait while a
turn is judged. A job that fails is tried again, ever later; after ``TRIES`` it is given up with a line in the
log. A lane holds at most ``store.jobs.KEPT`` jobs; beyond that the oldest are dropped.

Kill -9 loses nothing and does nothing twice, if the work makes its changes of the database through ``finish``
or ``keep``, in one transaction with the job's own row. Other effects may be repeated.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from ..core.errors import Unavailable
from ..store import jobs as rows
from .world import DATABASE

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from ..store.db import Statement
    from ..store.jobs import Job
    from .world import World

UPKEEP: Final = "upkeep"
"""The lane of what comes again and again: it is never given up."""
TRIES: Final = 5
FIRST_PAUSE_MS: Final = 30_000
LONGEST_PAUSE_MS: Final = 3_600_000
DAY_MS: Final = 86_400_000
LONGEST_S: Final = 60.0
YIELD_S: Final = 0.25  # between looks at whether a turn is still being judged
PATIENCE_S: Final = 120.0  # then a job is done beside the judging


class Jobs:
    """``run`` works; ``statement`` makes a job that is stored with what it follows from."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._news = asyncio.Event()
        self._lanes: dict[str, asyncio.Task[None]] = {}
        self._done: dict[int, Job | None] = {}
        self._held: dict[str, int] = {}

    def statement(
        self, kind: str, key: str, body: dict[str, Any] | None = None, *, lane: str, due_ms: int = 0
    ) -> Statement:
        """Stores a job, unless one with this kind and key waits already. Commit it, then call ``wake``."""
        return rows.add(kind, key, lane, due_ms or self._world.clock.now_ms(), body or {})

    def wake(self) -> None:
        """There may be something to do: a job was stored, or the clock moved."""
        self._news.set()

    async def finish(self, job: Job, *statements: Statement) -> None:
        """The job is done: its row goes, and then what it changes is stored, in one transaction."""
        await self._world.db.commit(rows.remove(job), *statements)
        self._done[job.id] = None

    async def keep(self, job: Job, *statements: Statement, cursor: str = "", due_ms: int = 0) -> Job:
        """The job goes on, from ``cursor``, not before ``due_ms``. Returns it as it is stored now."""
        later = replace(job, cursor=cursor, due=due_ms or job.due, tries=0)
        await self._world.db.commit(*statements, rows.put(later))
        self._done[job.id] = later
        return later

    def waiting(self) -> dict[str, int]:
        """How many jobs of each kind are stored."""
        return rows.waiting(self._world.db)

    async def run(self, work: Callable[[Job], Coroutine[Any, Any, None]], busy: Callable[[], bool]) -> None:
        """Do jobs as they become due. ``busy``: a turn is being judged. Ends by cancellation."""
        while True:
            self._news.clear()
            try:
                wait_s = self._start(work, busy)
            except Exception:  # the database can't be read: look again, rather than never
                self._world.log.exception("bug", task="jobs")
                wait_s = LONGEST_S
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._news.wait()

    def _start(self, work: Callable[[Job], Coroutine[Any, Any, None]], busy: Callable[[], bool]) -> float:
        """Start what is due in each free lane. Returns the seconds until the next job is due."""
        now, wait_s = self._world.clock.now_ms(), LONGEST_S
        for job in rows.next_of_each_lane(self._world.db):
            if job.lane in self._lanes:
                continue
            due = max(job.due, self._held.get(job.lane, 0))
            if job.lane == UPKEEP and due > now + DAY_MS:  # what comes again does so within a day
                due = now  # the clock was set back
            if due > now:
                wait_s = min(wait_s, (due - now) / 1000)
                continue
            task = self._world.spawn(self._do(job, work, busy), f"job {job.kind}", "look")
            self._lanes[job.lane] = task
            task.add_done_callback(partial(self._free, job.lane))
        return wait_s

    def _free(self, lane: str, _: object) -> None:
        self._lanes.pop(lane, None)
        self._news.set()

    async def _do(
        self, job: Job, work: Callable[[Job], Coroutine[Any, Any, None]], busy: Callable[[], bool]
    ) -> None:
        world = self._world
        end = world.clock.monotonic() + PATIENCE_S
        while busy() and world.clock.monotonic() < end:  # noqa: ASYNC110
            await asyncio.sleep(YIELD_S)
        self._done.pop(job.id, None)
        try:
            await work(job)
            if job.id not in self._done:
                await self.finish(job)
            await world.db.commit(rows.drop_oldest(job.lane))
        except Unavailable as e:
            await self._again(self._done.get(job.id) or job, str(e))
        except Exception as e:
            world.log.exception("bug", job=job.kind, key=job.key)
            await self._again(self._done.get(job.id) or job, f"a bug of reflectd: {type(e).__name__}")
        finally:
            self._done.pop(job.id, None)

    async def _again(self, job: Job, why: str) -> None:
        """Try later: after 30 s, 1 min, 2 min …; in the end give it up."""
        world, tries = self._world, job.tries + 1
        due = world.clock.now_ms() + min(FIRST_PAUSE_MS * 2 ** min(job.tries, TRIES), LONGEST_PAUSE_MS)
        try:
            if tries >= TRIES and job.lane != UPKEEP:
                await world.db.commit(rows.remove(job))
                world.log.warning("job given up", kind=job.kind, key=job.key, tries=tries, error=why)
                return
            await world.db.commit(rows.put(replace(job, due=due, tries=tries)))
            world.log.info("job failed, it is tried again", kind=job.kind, key=job.key, error=why)
        except Unavailable as e:  # nothing can be stored: that is not the job's fault, and no reason to hurry
            world.health.failed(DATABASE, str(e))
            self._held[job.lane] = world.clock.now_ms() + FIRST_PAUSE_MS
