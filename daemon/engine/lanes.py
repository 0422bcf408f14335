"""Does blocking work on folders, in threads: one piece at a time in each folder, the most urgent first.

A disk that hangs holds up its own folder and no other. The thread that waits for it is let go of after
``SLOW_S``, so that another one can work; after ``HUNG_S`` whoever put the work is told. Nothing more is begun
in that folder until the disk answers, and then it goes on. No thread keeps the process from ending.

Bounded (I44): of each urgency so many pieces may wait; beyond that the oldest is dropped and told.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from .threads import Threads

SLOW_S: Final = 1.0
HUNG_S: Final = 10.0
THREADS: Final = 3
LOST_MOST: Final = 32  # threads that wait for slow disks; with more of them no other is let go of
Key = tuple[str, str]
Outcome = Callable[[Exception | None], Awaitable[None]]
"""Told what went wrong in the thread, on the loop."""


@dataclass(frozen=True, slots=True)
class Work:
    """``do`` runs in a thread, then ``done`` on the loop. ``done`` must not raise."""

    do: Callable[[], object]
    done: Outcome


@dataclass(slots=True, eq=False)
class _Lane:
    folder: str
    queues: tuple[OrderedDict[Key, Work], ...]
    task: asyncio.Task[None] | None = None
    hung: bool = False


@dataclass(slots=True, order=True)
class _Turn:
    """A folder that waits for a free thread."""

    urgency: int
    number: int
    free: asyncio.Future[None] = field(compare=False)


class Lanes:
    """``put`` work; ``run`` until cancelled. All methods belong to the loop's thread."""

    def __init__(
        self,
        limits: tuple[int, ...],
        hung: Callable[[str], None],
        dropped: Callable[[int], None],
        *,
        hung_s: float = HUNG_S,
    ) -> None:
        """``limits``: how many pieces of each urgency may wait, in all folders together; 0 is the most
        urgent. ``hung`` is told a folder, ``dropped`` an urgency.
        """
        self._limits = limits
        self._hung = hung
        self._dropped = dropped
        self._hung_s = hung_s
        self._lanes: dict[str, _Lane] = {}
        self._oldest: tuple[OrderedDict[tuple[str, Key], None], ...] = tuple(OrderedDict() for _ in limits)
        self._threads = Threads("reflectd-files")
        self._free = THREADS
        self._lost = 0
        self._turns: list[_Turn] = []
        self._count = itertools.count()
        self._moved = asyncio.Event()
        self._closed = False

    def put(self, folder: str, key: Key, urgency: int, work: Work) -> None:
        """Do this in the folder. Of one key only the newest is done, at the most urgent place it ever had."""
        lane = self._lanes.get(folder)
        if lane is None:
            lane = self._lanes[folder] = _Lane(folder, tuple(OrderedDict() for _ in self._limits))
        had = next((n for n, queue in enumerate(lane.queues) if key in queue), None)
        if had is not None and had > urgency:
            self._forget(lane, key, had)
            had = None
        place = urgency if had is None else had
        lane.queues[place][key] = work
        self._oldest[place][folder, key] = None
        if len(self._oldest[place]) > self._limits[place]:
            (where, oldest), _ = next(iter(self._oldest[place].items()))
            self._forget(self._lanes[where], oldest, place)
            self._dropped(place)
        if lane.task is None and not self._closed:
            lane.task = asyncio.get_running_loop().create_task(self._empty(lane), name=f"lane {folder}")

    @property
    def busy(self) -> bool:
        """Something is still to be done, on a disk that answers."""
        return any(not lane.hung for lane in self._lanes.values())

    def waiting(self, urgency: int) -> int:
        """How many pieces of this urgency wait."""
        return len(self._oldest[urgency])

    async def run(self) -> None:
        """Ends by cancellation, and then no work is begun any more."""
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self._closed = True
            for lane in self._lanes.values():
                if lane.task is not None:
                    lane.task.cancel()

    async def drain(self) -> None:
        """Returns when nothing is to be done but on disks that hang."""
        while self.busy and not self._closed:
            self._moved.clear()
            await self._moved.wait()

    async def _empty(self, lane: _Lane) -> None:
        """Do what the folder has, until there is nothing more."""
        try:
            while (urgency := self._urgency(lane)) is not None:
                await self._turn(urgency)
                urgency = self._urgency(lane)  # something more urgent may have come, or all was dropped
                if urgency is None:
                    self._give_back()
                    return
                key, work = next(iter(lane.queues[urgency].items()))
                self._forget(lane, key, urgency)
                await self._do(lane, work)
        finally:
            lane.task = None
            if self._urgency(lane) is None:
                self._lanes.pop(lane.folder, None)
            self._moved.set()

    async def _do(self, lane: _Lane, work: Work) -> None:
        """One piece of work, however long its disk takes."""
        holds = True
        try:
            answer = self._threads.ask(work.do)
            await asyncio.wait([answer], timeout=SLOW_S)
            if not answer.done() and self._lost < LOST_MOST:
                self._lost += 1
                holds = False
                self._give_back()
            if not answer.done():
                await asyncio.wait([answer], timeout=max(0.0, self._hung_s - SLOW_S))
            if not answer.done():
                lane.hung = True
                self._moved.set()
                self._hung(lane.folder)
                await asyncio.wait([answer])
        finally:
            lane.hung = False
            if holds:
                self._give_back()
            else:
                self._lost -= 1
        error = answer.exception()
        if error is not None and not isinstance(error, Exception):
            raise error
        await work.done(error)

    def _urgency(self, lane: _Lane) -> int | None:
        """That of the most urgent work of the folder."""
        return next((n for n, queue in enumerate(lane.queues) if queue), None)

    def _forget(self, lane: _Lane, key: Key, urgency: int) -> None:
        del lane.queues[urgency][key]
        del self._oldest[urgency][lane.folder, key]

    async def _turn(self, urgency: int) -> None:
        """Wait for a free thread; the most urgent folder gets the next one."""
        if self._free:
            self._free -= 1
            return
        turn = _Turn(urgency, next(self._count), asyncio.get_running_loop().create_future())
        heapq.heappush(self._turns, turn)
        try:
            await turn.free
        except asyncio.CancelledError:
            if turn.free.done() and not turn.free.cancelled():
                self._give_back()
            raise

    def _give_back(self) -> None:
        while self._turns:
            turn = heapq.heappop(self._turns)
            if not turn.free.done():
                turn.free.set_result(None)
                return
        self._free += 1
