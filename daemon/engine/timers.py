"""Wall deadlines in one heap with one sleeping task (DESIGN §3).

Two sorts: a session's one pending action, which is stored and survives a restart, and a watch over a session
that works, which only says when to look and is made anew after one. A pending action that is overdue by
more than its length is dropped and told to ``on_dropped``. Nothing here decides anything: ``on_due`` and
``on_watch`` do, beside the loop.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from daemon.store import timers as rows

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from daemon.core.pending import Pending
    from daemon.engine.persist import Persist
    from daemon.engine.world import World
    from daemon.store.db import Statement

LONGEST_S = 60.0
HOLD_MS = 5_000


class Timers:
    """``run`` fires what is due. All methods belong to the loop's thread."""

    def __init__(self, world: World, persist: Persist) -> None:
        self._world = world
        self._persist = persist
        self._pending: dict[str, Pending] = {p.session: p for p in rows.stored(world.db)}
        self._watched: dict[str, int] = {}
        self._count = itertools.count()
        self._heap: list[tuple[int, int, str, bool]] = []
        self._news = asyncio.Event()
        self._firing: set[str] = set()
        self.on_due: Callable[[Pending], Coroutine[Any, Any, None]] = _nobody
        self.on_watch: Callable[[str], Coroutine[Any, Any, None]] = _nobody
        self.on_dropped: Callable[[Pending], None] = lambda _: None
        for p in self._pending.values():
            self._push(p.due, p.session, watch=False)

    def arm(self, p: Pending) -> bool:
        """Set the session's pending action, unless one that ranks higher waits."""
        if not p.outranks(self._pending.get(p.session)):
            return False
        self._pending[p.session] = p
        self._store(rows.put(p))
        self._push(p.due, p.session, watch=False)
        return True

    def pending(self, session: str) -> Pending | None:
        """What waits for this session."""
        return self._pending.get(session)

    def cancel(self, session: str, *, keep: str = "") -> None:
        """Something else happened first. ``keep``: a kind that stays."""
        p = self._pending.get(session)
        if p is not None and p.kind != keep:
            del self._pending[session]
            self._store(rows.remove(session))

    def watch(self, session: str, at_ms: int) -> None:
        """Look at the session then; a later call for the same session takes the place of this one."""
        self._watched[session] = at_ms
        self._push(at_ms, session, watch=True)

    def unwatch(self, session: str) -> None:
        """It stopped working."""
        self._watched.pop(session, None)

    @property
    def watched(self) -> int:
        """How many sessions are watched."""
        return len(self._watched)

    def wake(self) -> None:
        """Look at the clock again: it jumped, or a host came back, so that what was held may be done.

        An action that a clock set back has put further away than it was set for counts from now.
        """
        now = self._world.clock.now_ms()
        for session, p in self._pending.items():
            if p.due - now > p.length:
                self._pending[session] = later = replace(p, due=now + p.length)
                self._store(rows.put(later))
                self._push(later.due, session, watch=False)
            elif p.due <= now:
                self._push(now, session, watch=False)
        self._news.set()

    def hold(self, p: Pending) -> None:
        """It can't be done now (its host is away). The deadline stays, so it is dropped in time."""
        if self._pending.get(p.session) is None:
            self._pending[p.session] = p
            self._store(rows.put(p))
            self._push(self._world.clock.now_ms() + HOLD_MS, p.session, watch=False)

    async def run(self) -> None:
        """Sleep until something is due, and do it. Ends by cancellation."""
        while True:
            self._news.clear()
            self._fire()
            try:
                async with asyncio.timeout(self._sleep_s()):
                    await self._news.wait()
            except TimeoutError:
                pass

    def _store(self, statement: Statement) -> None:
        """Written with the next flush, which nobody waits for."""
        self._persist.add(statement)
        self._world.spawn(self._persist.flush(), "timer")

    def _push(self, at_ms: int, session: str, *, watch: bool) -> None:
        earliest = not self._heap or at_ms < self._heap[0][0]
        heapq.heappush(self._heap, (at_ms, next(self._count), session, watch))
        if earliest:
            self._news.set()

    def _sleep_s(self) -> float | None:
        """None: nothing waits. At most a minute, since a machine that slept does not tell."""
        if not self._heap:
            return None
        return min(LONGEST_S, max(0.0, (self._heap[0][0] - self._world.clock.now_ms()) / 1000))

    def _fire(self) -> None:
        now = self._world.clock.now_ms()
        while self._heap and self._heap[0][0] <= now:
            _, _, session, watch = heapq.heappop(self._heap)
            if watch:
                at = self._watched.get(session)
                if at is not None and at <= now:
                    del self._watched[session]
                    self._world.spawn(self.on_watch(session), f"look at {session}")
                continue
            p = self._pending.get(session)
            if p is None or p.due > now:
                continue
            del self._pending[session]
            self._store(rows.remove(session))
            if p.overdue(now):
                self._world.log.info("timer dropped", session=session, kind=p.kind, late_ms=now - p.due)
                self.on_dropped(p)
            else:
                self._world.spawn(self.on_due(p), f"{p.kind} {session}")


async def _nobody(_: object) -> None:
    """Before the engine is put together."""
