"""Makes decisions final: the state, the verdict, the orders and what follows from them in one transaction.

An order leaves only after that transaction. When it fails, the state goes back to what it was and nothing is
sent.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from ..core.errors import Unavailable
from ..core.orders import Prompting
from ..core.session import FINAL_FOR_TASK, prompted, reconcile, settled, taken_back
from ..core.verdict import Verdict
from ..store import outbox, verdicts
from ..store.outbox import Stored

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator, Sequence

    from ..core.orders import StoredOrder
    from ..core.session import Phase, Session
    from ..core.transcript import Transcript
    from ..judge.case import Case
    from ..log import Logger
    from ..store.db import Statement
    from .filing import Filing
    from .jobs import Jobs
    from .persist import Persist
    from .workspaces import Workspaces
    from .world import World


class Judged(Protocol):
    """Whoever is told of verdicts: all features together."""

    def deciding(self, verdict: Verdict, case: Case, directory: str) -> Sequence[Statement]:
        """See ``Feature.deciding``."""
        ...

    def judged(self, verdict: Verdict, case: Case | None, *, sent: bool) -> None:
        """See ``Feature.judged``."""
        ...


@dataclass(frozen=True, slots=True)
class Decided:
    """Await it: the stored orders, which may be sent now; None when nothing was stored: send nothing."""

    stored: asyncio.Future[None]
    orders: list[Stored]
    jobs: Jobs
    log: Logger

    def __await__(self) -> Generator[Any, None, list[Stored] | None]:
        return self._wait().__await__()

    async def _wait(self) -> list[Stored] | None:
        try:
            await self.stored
        except Unavailable as e:
            self.log.warning("decision not stored, nothing is sent", error=str(e))
            return None
        self.jobs.wake()
        return self.orders


class Commit:
    """Stores what was decided."""

    def __init__(
        self,
        world: World,
        persist: Persist,
        jobs: Jobs,
        filing: Filing,
        workspaces: Workspaces,
        features: Judged,
    ) -> None:
        self._world = world
        self._persist = persist
        self._jobs = jobs
        self._filing = filing
        self._workspaces = workspaces
        self._features = features

    def decide(
        self,
        after: Session,
        orders: Sequence[StoredOrder],
        turn: str,
        instance: str,
        verdict: Verdict | None = None,
        case: Case | None = None,
    ) -> Decided:
        """The session moves on in this very step; await the result for when that is stored.

        ``verdict``: the turn's. Without one the orders are nudges. ``case``: what was judged, if anything
        was.
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
        statements: list[Statement] = []
        if verdict is not None:
            statements.append(verdicts.add(verdict, after.directory))
            if case is not None:
                statements += self._features.deciding(verdict, case, after.directory)
        if rows:
            statements.append(outbox.add(rows))
        self.left(before, after)
        stored = self._persist.decide(after, *statements, undo=lambda: self._undo(after.id, before, verdict))
        return Decided(stored, rows, self._jobs, self._world.log.bind(session=after.id))

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

    def left(self, before: Session | None, after: Session) -> None:
        """Where this change ends a task, what its folder was when it began is not needed any more."""
        if before is None or not before.task:
            return
        ended = after.phase in FINAL_FOR_TASK and before.phase not in FINAL_FOR_TASK
        if ended or after.deleted or before.task != after.task:
            self._workspaces.ended(after.id)

    def corrected(self, now: Session, transcript: Transcript) -> Session:
        """Correct the session by the messages read, which may tell of a task that we never heard of."""
        s = reconcile(now, transcript)
        self.left(now, s)
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
