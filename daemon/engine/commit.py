"""Stores state and decisions: a decision with its state and its orders in one transaction.

``flush`` stores what events changed, with group commit: while one commit runs, the next one gathers. Memory
is ahead of the database only until it returns. A decision and its state are taken in the same step of the
loop, and only one write runs at a time, so no other session's write can store a decided state without its
verdict (I21, I42). An order leaves only after the transaction and its sync; when one fails, the state goes
back and nothing is sent. No write waits for a sync.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from ..core.errors import Unavailable
from ..core.orders import Prompting, StoredOrder
from ..core.session import Session, prompted, settled, taken_back
from ..store import outbox, sessions, verdicts
from ..store.db import ConflictError, Statement
from ..store.outbox import Stored
from .world import DATABASE, World

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..core.verdict import Verdict
    from ..judge.decide import Decision
    from .jobs import Jobs


class _Change(Struct, frozen=True, eq=False):
    """A state that waits to be stored with ``statements``. ``undo`` puts it back when that fails."""

    after: Session
    statements: Sequence[Statement]
    undo: Callable[[], None]
    done: asyncio.Future[None]

    def refuse(self, error: Unavailable) -> None:
        """The caller may be gone."""
        if not self.done.done():
            self.done.set_exception(error)
            self.done.exception()


class Commit(Struct, eq=False):
    """The only writer of sessions, verdicts and orders. All methods belong to the loop's thread."""

    _world: World
    _jobs: Jobs
    _marks: dict[str, int] = field(default_factory=dict)
    _extra: list[Statement] = field(default_factory=list)
    _changes: list[_Change] = field(default_factory=list)
    _waiting: list[asyncio.Future[None]] = field(default_factory=list)
    _active: bool = False

    def mark(self, instance: str, seq: int) -> None:
        """The highest event of the instance that is folded; stored with the state."""
        self._marks[instance] = seq

    def add(self, *statements: Statement) -> None:
        self._extra.extend(statements)

    async def flush(self) -> None:
        """Returns when everything put so far is stored. Raises ``Unavailable``."""
        stored = asyncio.get_running_loop().create_future()
        self._waiting.append(stored)
        self._start()
        await stored

    def decide(
        self, decision: Decision, instance: str, more: Sequence[Statement] = ()
    ) -> asyncio.Future[list[Stored] | None]:
        """As ``store``, with the turn's verdict."""
        verdict = decision.verdict
        statements = (verdicts.add(verdict, decision.session.directory), *more)
        return self.store(decision.session, decision.orders, verdict.turn, instance, statements, verdict)

    def store(
        self,
        after: Session,
        orders: Sequence[StoredOrder],
        turn: str,
        instance: str,
        more: Sequence[Statement] = (),
        verdict: Verdict | None = None,
    ) -> asyncio.Future[list[Stored] | None]:
        """The session moves on in this very step. Await the stored orders, which may be sent then; None:
        nothing was stored, so send nothing. Without a verdict the orders are nudges.
        """
        world, now = self._world, self._world.clock.now_ms()
        if any(isinstance(order, Prompting) for order in orders):
            after = prompted(after, now)
        before = world.sessions.get(after.id)
        rows = [
            Stored(outbox.order_id(o.session, turn, outbox.cause_of(o)), o.session, "sent", instance, now, o)
            for o in orders
        ]
        statements = [*more, *([outbox.add(rows)] if rows else ())]
        stored = self.change(after, *statements, undo=lambda: self._undo(after.id, before, verdict))
        answer: asyncio.Future[list[Stored] | None] = stored.get_loop().create_future()

        def settle(_: object) -> None:
            error = None if stored.cancelled() else stored.exception()
            if error is not None:
                log = world.log.bind(session=after.id)
                log.warning("decision not stored, nothing is sent", error=str(error))
            else:
                self._jobs.wake()
            if not answer.done():
                answer.set_result(rows if error is None else None)

        stored.add_done_callback(settle)
        return answer

    def change(
        self, after: Session, *statements: Statement, undo: Callable[[], None] = lambda: None
    ) -> asyncio.Future[None]:
        """The session moves on now; its state and ``statements`` are stored in one transaction, then synced.

        The future fails with ``Unavailable`` when that could not be stored; ``undo`` was called then, before
        any other write, and nothing of the decision is in the database. It fails too when the disk refuses
        the sync. Then the decision is in the database and stays, as after a crash at this point.
        """
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._world.sessions.put(after)
        self._changes.append(_Change(after, statements, undo, done))
        self._start()
        return done

    async def take_back(self, before: Session, verdict: Verdict, order: str) -> None:
        """A decision proved to be about a text that was not the last: it is as if it had not been."""
        now = self._world.sessions.get(before.id)
        if now is not None and now.task == before.task and now.turn == verdict.turn:
            restored = taken_back(now, before)
            now = replace(restored, final=before.final, turn=before.turn, phase="open", reason="")
        await self.change(now or before, outbox.forget(order), verdicts.remove(verdict.session, verdict.turn))

    def _undo(self, session: str, before: Session | None, verdict: Verdict | None) -> None:
        """Nothing was stored: the counters go back, and a turn that was judged ends in `error`."""
        sessions = self._world.sessions
        now = sessions.get(session)
        if before is None or now is None:
            return
        if now.task != before.task:
            if verdict is not None:
                sessions.put(replace(now, final=verdict.turn))
            return
        if verdict is not None:
            now = settled(now, verdict.turn, "error", "not_stored")
        sessions.put(taken_back(now, before))

    def _start(self) -> None:
        if not self._active:
            self._active = True
            self._world.spawn(self._loop(), "commit")

    async def _loop(self) -> None:
        try:
            while self._waiting or self._changes:
                waiting, self._waiting = self._waiting, []
                failure: Unavailable | None = None
                try:
                    await self._write()
                except Unavailable as e:
                    failure = e
                except Exception as e:
                    self._world.log.exception("bug", task="commit")
                    failure = _unwritten(e)
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
        changes, self._changes = self._changes, []
        try:
            await self._store(changes)
        except ConflictError:  # one statement is refused: each decision alone, so that only its own fails
            for each in changes:
                try:
                    await self._store_alone(each)
                except Unavailable as e:
                    each.undo()
                    each.refuse(e)
                else:
                    self._sync([each])
            await self._write()  # the rest, with what was decided meanwhile
        except BaseException as e:
            for each in changes:
                each.undo()
                each.refuse(e if isinstance(e, Unavailable) else _unwritten(e))
            raise
        else:
            self._sync(changes)

    def _sync(self, changes: Sequence[_Change]) -> None:
        if changes:
            self._world.spawn(self._synced(changes), "sync")

    async def _synced(self, changes: Sequence[_Change]) -> None:
        try:
            await self._world.db.synced()
        except Unavailable as e:
            self._world.health.failed(DATABASE, str(e))
            for each in changes:
                each.refuse(e)
        else:
            for each in changes:
                if not each.done.done():
                    each.done.set_result(None)

    async def _store(self, changes: Sequence[_Change]) -> None:
        known = self._world.sessions
        states, marks, extra = known.unsaved(), self._marks, self._extra
        if not (states or marks or extra or changes):
            return
        self._marks, self._extra = {}, []
        now = self._world.clock.now_ms()
        try:
            statements = [known.aside(now), known.statement(states, now), sessions.mark(marks, now), *extra]
            statements += [statement for each in changes for statement in each.statements]
            await self._world.db.commit(*(s for s in statements if s[1]))
        except BaseException:
            self._marks = marks | self._marks
            self._extra = extra + self._extra
            raise
        known.saved(states)
        self._world.health.works(DATABASE)

    async def _store_alone(self, change: _Change) -> None:
        """One transaction with one decision and the state that it led to, nothing newer."""
        known, states = self._world.sessions, {change.after.id: change.after}
        upsert = known.statement(states, self._world.clock.now_ms())
        await self._world.db.commit(upsert, *change.statements)
        known.saved(states)


def _unwritten(error: BaseException) -> Unavailable:
    return Unavailable(f"the database could not be written: {error}")
