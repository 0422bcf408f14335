"""Deadlines by the wall clock, in one heap with one sleeping task.

Two sorts. A pending action of a session is stored and survives a restart; an action that is overdue by more
than its length is dropped. A watch over a session that works only says when to look; it is not stored, and is
made anew after a restart. Nothing here decides anything: the features do what is due.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from ..store import timers as rows
from ..store.timers import RANK, Pending, PendingKind

if TYPE_CHECKING:
    from ..store.db import Statement
    from .commit import Commit
    from .world import World

LONGEST_S: Final = 60.0
HOLD_MS: Final = 5_000
Look = Callable[[str], Coroutine[Any, Any, None]]
"""Looks at a session, by its id."""


Drop = Callable[[Pending], None]
"""Is told of one that is overdue."""


class Timers:
    """``run`` fires what is due. All methods belong to the loop's thread."""

    def __init__(self, world: World, commit: Commit) -> None:
        self._world = world
        self._commit = commit
        self._pending: dict[tuple[str, PendingKind], Pending] = {p.key: p for p in rows.stored(world.db)}
        self._acting: set[Pending] = set()
        self._watched: dict[str, tuple[int, Look]] = {}
        self._count = itertools.count()
        self._heap: list[tuple[int, int, str, PendingKind | None]] = []
        self._news = asyncio.Event()
        for p in self._pending.values():
            self._push(p.due, p.session, p.kind)

    def arm(self, p: Pending) -> None:
        """Set a pending action; an earlier one of the same kind goes."""
        self._pending[p.key] = p
        self._store(rows.put(p))
        self._push(p.due, p.session, p.kind)

    def pending(self, session: str, kind: PendingKind) -> Pending | None:
        """The session's pending action of this kind."""
        return self._pending.get((session, kind))

    def cancel(self, session: str, *kinds: PendingKind) -> None:
        """Something else happened first: pending actions of these kinds are off."""
        for kind in kinds:
            p = self._pending.pop((session, kind), None)
            if p is not None:
                self._store(rows.remove(p))

    def watch(self, session: str, at_ms: int, look: Look) -> None:
        """``look`` at the session then; a later call for the same session takes the place of this one."""
        self._watched[session] = (at_ms, look)
        self._push(at_ms, session, None)

    def unwatch(self, session: str) -> None:
        self._watched.pop(session, None)

    @property
    def watched(self) -> int:
        return len(self._watched)

    def wake(self) -> None:
        """The clock jumped, or a host is back. A deadline put too far off counts from now."""
        now = self._world.clock.now_ms()
        for p in list(self._pending.values()):
            if p.due - now > p.length:
                self.arm(replace(p, due=now + p.length))
            elif p.due <= now:
                self._push(now, p.session, p.kind)
        self._news.set()

    def hold(self, p: Pending) -> None:
        """Its host is away, so it can't be done now. The deadline stays, so that it is dropped in time."""
        if p.key not in self._pending:
            self._pending[p.key] = p
            self._store(rows.put(p))
            self._push(self._world.clock.now_ms() + HOLD_MS, p.session, p.kind)

    async def run(self, drop: Drop) -> None:
        """Sleep until something is due, and have it done. Ends by cancellation."""
        while True:
            self._news.clear()
            self._fire(drop)
            with suppress(TimeoutError):
                async with asyncio.timeout(self._sleep_s()):
                    await self._news.wait()

    def _store(self, statement: Statement) -> None:
        """Written with the next flush, which nobody waits for."""
        self._commit.add(statement)
        self._world.spawn(self._commit.flush(), "timer")

    def _push(self, at_ms: int, session: str, kind: PendingKind | None) -> None:
        earliest = not self._heap or at_ms < self._heap[0][0]
        heapq.heappush(self._heap, (at_ms, next(self._count), session, kind))
        if earliest:
            self._news.set()

    def _sleep_s(self) -> float | None:
        """None: nothing waits. At most a minute, since a machine that slept does not tell."""
        if not self._heap:
            return None
        return min(LONGEST_S, max(0.0, (self._heap[0][0] - self._world.clock.now_ms()) / 1000))

    def _fire(self, drop: Drop) -> None:
        now = self._world.clock.now_ms()
        while self._heap and self._heap[0][0] <= now:
            _, _, session, kind = heapq.heappop(self._heap)
            if kind is None:
                at_ms, look = self._watched.get(session, (now + 1, None))
                if look is not None and at_ms <= now:
                    del self._watched[session]
                    self._world.spawn(look(session), f"look at {session}", "look")
                continue
            p = self._pending.get((session, kind))
            if p is not None and p.due <= now:
                self._act(p, now, drop)

    def _act(self, p: Pending, now: int, drop: Drop) -> None:
        if now - p.due > p.length:  # the machine slept, or no daemon ran
            self.cancel(*p.key)
            self._world.log.info("timer dropped", session=p.session, kind=p.kind, late_ms=now - p.due)
            drop(p)
            return
        others = (o for o in (*self._pending.values(), *self._acting) if o.session == p.session)
        first = [o for o in others if RANK[o.kind] < RANK[p.kind]]
        if first:  # it waits: what ranks higher may make it needless
            self.arm(replace(p, due=max(now, *(o.due for o in first)) + HOLD_MS))
            return
        self.cancel(*p.key)
        self._acting.add(p)
        self._world.spawn(self._do(p), f"{p.kind} {p.session}", "look")

    async def _do(self, p: Pending) -> None:
        try:
            await self._world.features.due(p)
        finally:
            self._acting.discard(p)
