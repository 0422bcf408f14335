"""`run` mode: the host exits at idle, so feedback must be queued before (I38).

``ask gate`` comes with a text that may be the last. What would follow it is judged now; feedback is
committed and handed to the shim, which sends it when the step really ends (``stop``) and answers
``stale`` when a tool call follows: then the round is taken back, as if it had not been.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from daemon.core.errors import ReflectdError
from daemon.core.guards import may_judge, may_judge_messages
from daemon.core.orders import SendFeedback
from daemon.core.session import judging, reconcile, taken_back
from daemon.core.verdict import JudgedBy
from daemon.hosts.opencode_orders import order_object
from daemon.judge.decide import Round, decide
from daemon.store import outbox, verdicts

if TYPE_CHECKING:
    from daemon.core.session import Session
    from daemon.core.transcript import Transcript
    from daemon.core.verdict import Verdict
    from daemon.engine.evaluation import Evaluations
    from daemon.engine.filing import Filing
    from daemon.engine.instances import Instance
    from daemon.engine.persist import Persist
    from daemon.engine.world import World

KEPT = 200
ASKS_PER_ROUND = 2


class Gate:
    """Answers ``ask gate``; keeps what a stale answer must take back."""

    def __init__(self, world: World, persist: Persist, evaluations: Evaluations, filing: Filing) -> None:
        self._world = world
        self._persist = persist
        self._evaluations = evaluations
        self._filing = filing
        self._before: dict[str, tuple[Session, Verdict]] = {}
        self._asked: dict[tuple[str, str, int], int] = {}

    async def ask(self, instance: Instance, session: str, message: str, text: str) -> dict[str, Any] | None:
        """The feedback order that should follow ``text``, or None. Every failure is None."""
        asking = asyncio.ensure_future(self._ask(instance, session, message, text))
        try:
            return await asyncio.shield(asking)
        except asyncio.CancelledError:  # the host waits no longer: what comes now is taken back
            self._world.spawn(self._unheard(asking), "gate")
            raise
        except ReflectdError as e:
            self._world.log.info("gate", session=session, answer="nothing", error=str(e))
            return None

    async def _unheard(self, asking: asyncio.Future[dict[str, Any] | None]) -> None:
        order = await asking
        if order is not None:
            await self.settled(order["id"], sent=False)

    async def _ask(self, instance: Instance, session: str, message: str, text: str) -> dict[str, Any] | None:
        world = self._world
        s = world.sessions.get(session)
        if s is None or not world.project(instance.directory).run.gate:
            return None
        limits = world.limits(s)
        if may_judge(replace(s, busy=False, idle_at=0), world.clock.now_ms(), limits) is not None:
            return None
        transcript = as_if_final(await self._evaluations.read(s, instance), message, text)
        now = world.sessions.get(session)
        if now is None:
            return None
        s = reconcile(replace(now, busy=False), transcript)
        if may_judge_messages(s, transcript, limits) is not None or self._too_often(s):
            return None
        s = judging(s, message)
        case = await self._evaluations.case(transcript, s)
        opinion, ms = await self._evaluations.form(case, s)
        now = world.sessions.get(session)
        if now is None or now.task not in {s.task, ""} or now.final == message:
            return None
        if now.aborted or now.off or now.deleted or now.waiting:
            return None
        s = judging(reconcile(replace(now, busy=False), transcript), message)
        at = world.clock.now_ms()
        decision = decide(Round(s, case, limits, at, JudgedBy("none", ms=ms)), opinion)
        if not any(isinstance(o, SendFeedback) for o in decision.orders):
            self._evaluations.foretell(session, case, opinion, ms)
            return None
        decision = replace(decision, session=replace(decision.session, busy=True))
        world.sessions.put(decision.session)
        rows = await self._evaluations.store(decision, now, instance.id)
        if not rows:
            return None
        row = rows[0]
        self._before[row.id] = (now, decision.verdict)
        self._filing.case(case, opinion, decision)
        while len(self._before) > KEPT:
            self._before.pop(next(iter(self._before)))
        world.log.info(
            "gate", session=session, turn=message, answer="feedback", reason=decision.verdict.reason
        )
        return order_object(row.id, row.order)

    async def settled(self, order: str, *, sent: bool) -> bool:
        """The shim says what became of a gate order. True when the round was taken back."""
        kept = self._before.pop(order, None)
        if kept is None:
            return False
        before, verdict = kept
        world = self._world
        if sent:
            self._filing.final(replace(verdict, at=world.clock.now_ms()), before.directory)
            return False
        now = world.sessions.get(before.id)
        if now is not None and now.task == before.task and now.turn == verdict.turn:
            restored = taken_back(now, before)
            world.sessions.put(
                replace(restored, final=before.final, turn=before.turn, phase="open", reason="")
            )
        await self._persist.commit(outbox.forget(order), verdicts.remove(verdict.session, verdict.turn))
        return True

    def _too_often(self, s: Session) -> bool:
        """A model is asked at most twice per round; rules cost nothing and may look each time."""
        if all(p.name == "offline" for p in self._world.calls.providers):
            return False
        key = (s.id, s.task, s.attempts)
        self._asked[key] = self._asked.get(key, 0) + 1
        while len(self._asked) > KEPT:
            self._asked.pop(next(iter(self._asked)))
        return self._asked[key] > ASKS_PER_ROUND


def as_if_final(transcript: Transcript, message: str, text: str) -> Transcript:
    """The transcript as it will read if ``text`` is the last thing the agent says."""
    found = tuple(
        replace(m, text=text if m.text == "" or text.startswith(m.text) else m.text, finish="stop")
        if m.id == message
        else m
        for m in transcript.messages
    )
    return replace(transcript, messages=found, busy=False)
