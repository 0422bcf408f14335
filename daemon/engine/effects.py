"""The effects of a commit, in this order: orders are sent, the verdict is filed, features are told.

A stored order is sent once, to the instance that last had the session busy. A row is ``sent`` before the
order leaves. After a reconnect, a ``sent`` prompt without a result is looked up in the host's messages. It is
there: done. It is not there and still valid: sent again under the same id (the shim carries an id out once).
Otherwise it is stale.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct, field, to_builtins
from msgspec.structs import replace

from ..core.errors import Unavailable
from ..core.orders import OutboxStatus, Prompting, ResultStatus, SendFeedback, SendNudge
from ..core.verdict import Verdict
from ..store import outbox, verdicts
from .hosts.host import capabilities

if TYPE_CHECKING:
    from ..core.session import Session
    from ..core.transcript import Transcript
    from ..judge.decide import Decision
    from ..store.outbox import Stored
    from .asking import Formed
    from .commit import Commit
    from .filing import Filing
    from .hosts.host import Instance
    from .world import World

RESULT_S: Final = 3.0
KEPT: Final = 200
HandedOut = Callable[[bool], Awaitable[bool]]
"""Told whether the order was carried out; True when it took the decision back, and the order with it."""


def still_wanted(order: Prompting, s: Session) -> bool:
    """Says whether the session is where it was when the prompt was decided (guards 1, 7, 8)."""
    same = s.task == order.task and (s.turn == order.turn or isinstance(order, SendNudge))
    return same and not (s.busy or s.aborted or s.off or s.deleted or s.waiting)


class Effects(Struct, eq=False):
    """Sends what was committed, and keeps the outcome."""

    _world: World
    _commit: Commit
    _filing: Filing
    _results: dict[str, asyncio.Future[ResultStatus]] = field(default_factory=dict)
    _handed_out: OrderedDict[str, HandedOut] = field(default_factory=OrderedDict)

    async def follow(
        self,
        decision: Decision,
        stored: asyncio.Future[list[Stored] | None],
        instance: Instance,
        formed: Formed | None,
        outdated: asyncio.Event,
    ) -> None:
        """Send, file, tell; the file of a verdict with a prompt waits for the prompt's outcome (the alias).

        ``formed``: None where the turn was not judged. ``outdated``: set when the session moved on.
        """
        world, s, verdict = self._world, decision.session, decision.verdict
        rows = await stored
        world.logger(s, debug=instance.debug).info(
            "turn",
            turn=verdict.turn,
            task=verdict.task,
            state=verdict.state if rows is not None else "error",
            severity=str(verdict.severity),
            reason=verdict.reason,
            attempt=verdict.attempt,
            provider=verdict.judge.provider,
            ms=verdict.judge.ms,
            orders=",".join(outbox.kind_of(o) for o in decision.orders) or "none",
        )
        if rows is None:
            failed = replace(verdict, state="error", will_prompt=False, reason="not_stored")
            self._filing.final(failed, s.directory)
            return
        in_terminal = instance.can.order_stream and instance.mode in {"tui", "unknown"}
        if in_terminal:
            self._file_case(decision, instance, formed)
        for row in rows:
            feedback = isinstance(row.order, SendFeedback)
            if feedback and in_terminal:  # the person can step in before the agent goes on
                left_ms = s.idle_at + world.limits(s).feedback_delay_ms - world.clock.now_ms()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(max(left_ms, 0) / 1000):
                        await outdated.wait()
            status = await self.dispatch(row)
            if feedback:
                verdict = replace(verdict, will_prompt=status == "done", at=world.clock.now_ms())
        self._filing.final(verdict, s.directory)
        if not in_terminal:  # not before the order: the thread that writes it would hold that up
            self._file_case(decision, instance, formed)
        self._world.features.judged(
            verdict, formed.case if formed is not None else None, sent=verdict.will_prompt
        )

    def _file_case(self, decision: Decision, instance: Instance, formed: Formed | None) -> None:
        if formed is None:
            return
        self._filing.case(formed.case, formed.opinion, decision)
        if instance.debug or self._world.settings.log.level == "debug":
            log = self._world.logger(decision.session, debug=instance.debug)
            evidence = [to_builtins(r) for r in formed.case.evidence.rows]
            log.debug("case", evidence=evidence, feedback=decision.verdict.feedback)

    def ended(
        self, s: Session, turn: str, state: Literal["error", "skipped"], reason: str
    ) -> Coroutine[Any, Any, None]:
        """A turn is over without a judgement: its verdict, unless it has one. The next write has it."""
        verdict = Verdict(s.id, s.task, turn, state, self._world.clock.now_ms(), reason=reason)
        self._commit.add(verdicts.add(verdict, s.directory, once=True))
        return self.recorded(verdict, s.directory)

    def passed_over(self, s: Session, why: str) -> Coroutine[Any, Any, None]:
        """Judging began on ``s.turn``, and it is over without a judgement. As ``ended`` (I21)."""
        now = self._world.sessions.get(s.id) or s
        phase = "skipped" if now.phase == "judging" else now.phase
        self._world.sessions.put(replace(now, final=s.turn, phase=phase))
        return self.ended(s, s.turn, "skipped", f"guard:{why}")

    async def recorded(self, verdict: Verdict, directory: str) -> None:
        await self._commit.flush()
        self._filing.final(verdict, directory)
        self._world.features.judged(verdict, None, sent=False)

    def hand_out(self, identity: str, settled: HandedOut) -> None:
        """The order leaves in an answer, not by the stream; ``settled`` is told what became of it."""
        self._handed_out[identity] = settled
        while len(self._handed_out) > KEPT:
            self._handed_out.popitem(last=False)

    async def dispatch(self, stored: Stored) -> ResultStatus | None:
        """Send a committed order and wait a moment for its outcome; None when there is none yet."""
        s = self._world.sessions.get(stored.session)
        instance = self._world.instances.connected(stored.instance)
        if s is None or instance is None:
            self._unseen(stored)
            return None
        if isinstance(stored.order, Prompting) and not still_wanted(stored.order, s):
            await self.result(stored.id, "stale", "the session moved on before the order left")
            return "stale"
        answer = self._results.setdefault(stored.id, asyncio.get_running_loop().create_future())
        try:
            instance.send(stored.id, stored.order)
            async with asyncio.timeout(RESULT_S):
                return await asyncio.shield(answer)
        except (TimeoutError, Unavailable):
            return None
        finally:
            self._results.pop(stored.id, None)

    async def result(self, identity: str, status: ResultStatus, error: str = "") -> None:
        """The outcome the shim reported (or that was looked up)."""
        settled = self._handed_out.pop(identity, None)
        stored = self._world.outbox.get(identity)
        if stored is None or stored.status not in {"pending", "sent"}:
            if settled is not None and status == "done":  # void meanwhile, and carried out all the same
                await settled(True)
            return
        taken_back = settled is not None and await settled(status == "done")
        if not taken_back:
            now = self._world.clock.now_ms()
            await self._world.db.commit(outbox.set_status(identity, status, stored.instance, now))
        log = self._world.log.bind(session=stored.session, order=identity)
        log.info("order", kind=outbox.kind_of(stored.order), status=status, error=error)
        if status == "done" and isinstance(stored.order, SendFeedback):
            self._filing.delivered(stored.session, stored.order.turn)
        waiting = self._results.get(identity)
        if waiting is not None and not waiting.done():
            waiting.set_result(status)

    def expire(self, session: str, keep_instance: str = "") -> None:
        """The session has a new owner or is deleted: orders that were not carried out are void."""
        for stored in self._world.outbox.open(session):
            if not keep_instance or stored.instance != keep_instance:
                self._set(stored, "expired")

    def toasts_over(self, instance: str) -> None:
        """The host's stream is new, or ended: a toast is shown at most once, and one whose result nobody told
        is not worth a second try. A host that was killed never tells.
        """
        for stored in self._world.outbox.open(instance=instance):
            self._unseen(stored)

    def _unseen(self, stored: Stored) -> None:
        if not isinstance(stored.order, Prompting):
            self._set(stored, "expired")

    def _set(self, stored: Stored, status: OutboxStatus) -> None:
        now = self._world.clock.now_ms()
        self._world.later(outbox.set_status(stored.id, status, stored.instance, now))

    async def look_up(self, stored: Stored, transcript: Transcript) -> None:
        """A prompt that is not in the messages is sent again, but never hours after the idle."""
        if any(m.order == stored.id for m in transcript.messages):
            await self.result(stored.id, "done", "found in the messages")
            return
        world, s, turn = self._world, self._world.sessions.get(stored.session), transcript.turn
        order = stored.order
        if s is not None and s.busy and not capabilities(s.host).order_stream:
            return  # a hook gave it, and the file is behind: the end of the turn shows what became of it
        if s is not None and turn is not None and not transcript.busy and isinstance(order, Prompting):
            age_ms = world.clock.now_ms() - s.idle_at
            if turn.id == order.turn and still_wanted(order, s) and age_ms <= world.limits(s).max_idle_age_ms:
                await self.dispatch(stored)
                return
        await self.result(stored.id, "stale", "not in the messages, and the session moved on")
