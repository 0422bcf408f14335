"""Stores state and decisions: a decision with its state, its orders and what follows, in one transaction.

``flush`` stores what events changed, with group commit: while one commit runs, the next one gathers. Memory
is ahead of the database only until it returns. A decision and its state are taken in the same step of the
loop, and only one write runs at a time, so no other session's write can store a decided state without its
verdict (I21, I42). An order leaves only after the transaction and its sync; when one fails, the state goes
back and nothing is sent. No write waits for a sync.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from ..core.errors import Unavailable
from ..core.orders import Prompting
from ..core.session import prompted, reconcile, settled, taken_back
from ..core.verdict import Verdict
from ..store import outbox, sessions, verdicts
from ..store.db import ConflictError
from ..store.outbox import Stored
from .world import DATABASE

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from ..core.orders import StoredOrder
    from ..core.session import Phase, Session
    from ..core.transcript import Transcript
    from ..judge.case import Case
    from ..judge.decide import Decision
    from ..store.db import Statement
    from .filing import Filing
    from .jobs import Jobs
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


class Judged(Protocol):
    """All features together: they are told of verdicts."""

    def deciding(self, verdict: Verdict, case: Case, directory: str) -> Sequence[Statement]:
        """See ``Feature.deciding``."""
        ...

    def judged(self, verdict: Verdict, case: Case | None, *, sent: bool) -> None:
        """See ``Feature.judged``."""
        ...


class Commit:
    """Stores what was decided."""

    def __init__(
        self,
        world: World,
        persist: Persist,
        jobs: Jobs,
        filing: Filing,
        features: Judged,
    ) -> None:
        self._world = world
        self._persist = persist
        self._jobs = jobs
        self._filing = filing
        self._features = features

    def decide(
        self, decision: Decision, instance: str, case: Case | None = None
    ) -> asyncio.Future[list[Stored] | None]:
        """As ``store``, with the turn's verdict. ``case``: none where the turn was not judged."""
        session, verdict = decision.session, decision.verdict
        statements = [verdicts.add(verdict, session.directory)]
        if case is not None:
            statements += self._features.deciding(verdict, case, session.directory)
        return self.store(session, decision.orders, verdict.turn, instance, statements, verdict)

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
            Stored(
                id=outbox.order_id(order.session, turn, outbox.cause_of(order)),
                session=order.session,
                status="sent",
                instance=instance,
                created=now,
                order=order,
            )
            for order in orders
        ]
        statements = [*more, *([outbox.add(rows)] if rows else ())]
        stored = self._persist.decide(after, *statements, undo=lambda: self._undo(after.id, before, verdict))
        answer: asyncio.Future[list[Stored] | None] = stored.get_loop().create_future()

        def told(_: object) -> None:
            error = None if stored.cancelled() else stored.exception()
            if error is not None:
                text = "decision not stored, nothing is sent"
                world.log.bind(session=after.id).warning(text, error=str(error))
            else:
                self._jobs.wake()
            if not answer.done():
                answer.set_result(rows if error is None else None)

        stored.add_done_callback(told)
        return answer

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

    def corrected(self, now: Session, transcript: Transcript) -> Session:
        """Correct the session by the messages read, which may tell of a task that we never heard of."""
        s = reconcile(now, transcript)
        self._world.sessions.put(s)
        return s

    def record(self, verdict: Verdict, directory: str) -> Coroutine[Any, Any, None]:
        """Store a verdict that nothing follows from, unless the turn has one; then its file.

        It is in the next write, with the state that was put in this step, whenever the result is awaited.
        """
        self._persist.add(verdicts.add(verdict, directory, once=True))
        return self._recorded(verdict, directory)

    def passed_over(self, s: Session, why: str) -> Coroutine[Any, Any, None]:
        """Judging began on ``s.turn``, and it is over without a judgement. As ``record``, for its final
        verdict (I21).
        """
        now = self._world.sessions.get(s.id) or s
        phase: Phase = "skipped" if now.phase == "judging" else now.phase
        self._world.sessions.put(replace(now, final=s.turn, phase=phase))
        at = self._world.clock.now_ms()
        return self.record(Verdict(s.id, s.task, s.turn, "skipped", at, reason=f"guard:{why}"), s.directory)

    async def _recorded(self, verdict: Verdict, directory: str) -> None:
        await self._persist.flush()
        self._filing.final(verdict, directory)
        self._features.judged(verdict, None, sent=False)

    async def take_back(self, before: Session, verdict: Verdict, order: str) -> None:
        """A decision proved to be about a text that was not the last: it is as if it had not been."""
        now = self._world.sessions.get(before.id)
        statements = (outbox.forget(order), verdicts.remove(verdict.session, verdict.turn))
        if now is not None and now.task == before.task and now.turn == verdict.turn:
            restored = taken_back(now, before)
            now = replace(restored, final=before.final, turn=before.turn, phase="open", reason="")
        await self._persist.decide(now or before, *statements)
