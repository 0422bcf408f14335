"""Writes session state through to the database with group commit: while one commit runs, the next one
gathers.

Memory is ahead of the database only until ``flush`` returns. What could not be stored stays unsaved and goes
with the next try.

A decision and the state that it leads to are stored in one transaction, never apart: ``decide`` takes both in
the same step of the loop, and only one write runs at a time. So no other session's write can store a decided
state without its verdict (I21, I42).

A decision is over when it is synced too. That takes as long as the disk takes, so the next write does not
wait for it: an event never waits for a sync.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..core.errors import Unavailable
from ..store import sessions
from ..store.db import ConflictError
from .health import DATABASE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..core.session import Session
    from ..store.db import Statement
    from .world import World


@dataclass(frozen=True, slots=True, eq=False)
class _Decided:
    """A decision that waits to be stored. ``undo`` puts the state back when that fails."""

    after: Session
    statements: Sequence[Statement]
    undo: Callable[[], None]
    done: asyncio.Future[None]


class Persist:
    """``flush`` stores what events changed (no disk sync), ``decide`` a decision (synced)."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._marks: dict[str, int] = {}
        self._extra: list[Statement] = []
        self._decided: list[_Decided] = []
        self._waiting: list[asyncio.Future[None]] = []
        self._active = False

    def mark(self, instance: str, seq: int) -> None:
        """The highest event of the instance that is folded; stored with the state."""
        self._marks[instance] = seq

    def add(self, *statements: Statement) -> None:
        """Store these with the next flush."""
        self._extra.extend(statements)

    async def flush(self) -> None:
        """Returns when everything put so far is stored. Raises ``Unavailable``."""
        stored = asyncio.get_running_loop().create_future()
        self._waiting.append(stored)
        self._start()
        await stored

    def decide(
        self, after: Session, *statements: Statement, undo: Callable[[], None] = lambda: None
    ) -> asyncio.Future[None]:
        """The session moves on now; its state and ``statements`` are stored in one transaction, then synced.

        The future fails with ``Unavailable`` when that could not be stored; ``undo`` was called then, before
        any other write, and nothing of the decision is in the database. It fails too when the disk refuses
        the sync. Then the decision is in the database and stays, as after a crash at this point.
        """
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._world.sessions.put(after)
        self._decided.append(_Decided(after, statements, undo, done))
        self._start()
        return done

    def _start(self) -> None:
        if not self._active:
            self._active = True
            self._world.spawn(self._loop(), "persist")

    async def _loop(self) -> None:
        try:
            while self._waiting or self._decided:
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
                    self._world.health.failed(DATABASE, str(failure))
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
        decided, self._decided = self._decided, []
        try:
            await self._store(decided)
        except ConflictError:  # one statement is refused: each decision alone, so that only its own fails
            for each in decided:
                try:
                    await self._store_alone(each)
                except Unavailable as e:
                    _fail([each], e)
                else:
                    self._sync([each])
            await self._write()  # the rest, with what was decided meanwhile
        except BaseException as e:
            error = (
                e if isinstance(e, Unavailable) else Unavailable(f"the database could not be written: {e}")
            )
            _fail(decided, error)
            raise
        else:
            self._sync(decided)

    def _sync(self, decided: Sequence[_Decided]) -> None:
        if decided:
            self._world.spawn(self._synced(decided), "sync")

    async def _synced(self, decided: Sequence[_Decided]) -> None:
        """They are stored; now the disk has to keep them."""
        try:
            await self._world.db.synced()
        except Unavailable as e:
            self._world.health.failed(DATABASE, str(e))
            for each in decided:
                _refuse(each.done, e)
        else:
            for each in decided:
                if not each.done.done():
                    each.done.set_result(None)

    async def _store(self, decided: Sequence[_Decided]) -> None:
        """One transaction with every unsaved state and what was decided."""
        world = self._world
        states, marks, extra = world.sessions.unsaved(), self._marks, self._extra
        if not (states or marks or extra or decided):
            return
        self._marks, self._extra = {}, []
        now = world.clock.now_ms()
        try:
            aside, upsert = world.sessions.aside(now), world.sessions.statement(states, now)
            statements = [aside, upsert, sessions.mark(marks, now), *extra]
            statements += [statement for each in decided for statement in each.statements]
            await world.db.commit(*(s for s in statements if s[1]))
        except BaseException:
            self._marks = marks | self._marks
            self._extra = extra + self._extra
            raise
        world.sessions.saved(states)
        world.health.works(DATABASE)

    async def _store_alone(self, decided: _Decided) -> None:
        """One transaction with one decision and the state that it led to, nothing newer."""
        world, states = self._world, {decided.after.id: decided.after}
        now = world.clock.now_ms()
        upsert = world.sessions.statement(states, now)
        await world.db.commit(upsert, *decided.statements)
        world.sessions.saved(states)


def _fail(decided: Sequence[_Decided], error: Unavailable) -> None:
    for each in decided:
        each.undo()
        _refuse(each.done, error)


def _refuse(done: asyncio.Future[None], error: Unavailable) -> None:
    if not done.done():
        done.set_exception(error)
        done.exception()  # whoever decided may be gone
