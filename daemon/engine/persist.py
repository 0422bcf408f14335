"""Write-through of session state with group commit: while one commit runs, the next one gathers.

Memory is ahead of the file only until ``flush`` returns; what could not be stored stays unsaved and goes
with the next try.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from daemon.core.errors import Unavailable
from daemon.store import sessions

if TYPE_CHECKING:
    from daemon.engine.world import World
    from daemon.store.db import Statement


class Persist:
    """``flush`` for events (no disk sync), ``commit`` for decisions (synced, one transaction)."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._marks: dict[str, int] = {}
        self._extra: list[Statement] = []
        self._waiting: list[asyncio.Future[None]] = []
        self._active = False

    def mark(self, instance: str, seq: int) -> None:
        """The highest event of the instance that is folded; stored with the state."""
        self._marks[instance] = seq

    def add(self, statement: Statement) -> None:
        """Store this with the next flush."""
        self._extra.append(statement)

    async def flush(self) -> None:
        """Returns when everything put so far is stored. Raises ``Unavailable``."""
        stored = asyncio.get_running_loop().create_future()
        self._waiting.append(stored)
        if not self._active:
            self._active = True
            self._world.spawn(self._loop(), "persist")
        await stored

    async def commit(self, *statements: Statement) -> None:
        """State and ``statements`` in one durable transaction. ``Unavailable``: nothing is stored."""
        states = self._world.sessions.unsaved()
        now = self._world.clock.now_ms()
        aside, upsert = self._world.sessions.aside(now), self._world.sessions.statement(states, now)
        await self._world.db.commit(aside, upsert, *statements, durable=True)
        self._world.sessions.saved(states)

    async def _loop(self) -> None:
        try:
            while self._waiting:
                waiting, self._waiting = self._waiting, []
                failure: Unavailable | None = None
                try:
                    await self._write()
                except Unavailable as e:
                    failure = e
                except Exception as e:
                    self._world.log.exception("bug", task="persist")
                    failure = Unavailable(f"the database could not be written: {e}")
                if failure is not None:
                    self._world.degraded = str(failure)
                for stored in waiting:
                    if stored.done():  # its request was cancelled; what it put is stored all the same
                        continue
                    if failure is None:
                        stored.set_result(None)
                    else:
                        stored.set_exception(failure)
        finally:
            self._active = False

    async def _write(self) -> None:
        world = self._world
        states, marks, extra = world.sessions.unsaved(), self._marks, self._extra
        if not (states or marks or extra):
            return
        self._marks, self._extra = {}, []
        now = world.clock.now_ms()
        try:
            aside, upsert = world.sessions.aside(now), world.sessions.statement(states, now)
            statements = [aside, upsert, sessions.mark(marks, now), *extra]
            await world.db.commit(*(s for s in statements if s[1]))
        except BaseException:
            self._marks = marks | self._marks
            self._extra = extra + self._extra
            raise
        world.sessions.saved(states)
        if world.degraded.startswith("the database"):
            world.log.info("the database can be written again")
            world.degraded = ""
