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
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field, to_builtins
from msgspec.structs import replace

from ..core.errors import Unavailable
from ..core.policy import MONTH_EUR
from ..store import jobs as rows
from ..store import ledger, outbox, retention, sessions, verdicts
from ..store.readonly import ReadOnly
from .world import DATABASE, DAY_MS, World

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from pathlib import Path

    from ..store.db import Statement
    from ..store.jobs import Job

UPKEEP: Final = "upkeep"
"""The lane of what comes again and again: it is never given up."""
TRIES: Final = 5
FIRST_PAUSE_MS: Final = 30_000
LONGEST_PAUSE_MS: Final = 3_600_000
HOUR_MS: Final = 3_600_000
RETENTION: Final = "retention"
LONGEST_S: Final = 60.0
YIELD_S: Final = 0.25  # between looks at whether a turn is still being judged
PATIENCE_S: Final = 120.0  # then a job is done beside the judging


class Jobs(Struct, eq=False):
    """``run`` works; ``statement`` makes a job that is stored with what it follows from."""

    _world: World
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _lanes: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _done: dict[int, Job | None] = field(default_factory=dict)
    _held: dict[str, int] = field(default_factory=dict)

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


class Upkeep(Struct, eq=False):
    """The engine's own job: deletes what is too old, and warns of a dear month."""

    _world: World
    _jobs: Jobs

    async def work(self, job: Job) -> None:
        """Do one job. Raises ``Unavailable`` when it is to be tried again."""
        if job.kind == RETENTION:
            await self._prune(job)
        else:
            await self._world.features.work(job)

    async def _prune(self, job: Job) -> None:
        """Old rows go, a table at a time: the job's cursor has the progress. A failure stops no other."""
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
            *self._world.features.prune(aged),
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
