"""The gate of `run` mode: the host exits at idle, so feedback must be queued before (I38).

The host asks with a text that may be its last, and that text is judged now. Feedback is committed and handed
to the shim, which sends it when the step really ends (``stop``). When a tool call follows instead, the shim
takes the question back, or answers ``stale``, and the round is as if it had not been.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec.structs import replace

from ...core.cuts import TEXT, whole_lines
from ...core.errors import ReflectdError, Unavailable
from ...core.guards import may_judge, may_judge_messages, too_many_prompts
from ...core.orders import SendFeedback
from ...core.session import Session, judging, reconcile
from ...core.verdict import JudgedBy, Verdict
from ...judge.decide import Round, decide
from ..feature import Feature, Route

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...core.transcript import Transcript
    from ...judge.case import Case
    from ..engine import Engine
    from ..hosts.host import Instance

KEPT = 200
ASKS_PER_ROUND = 2  # about texts that ended their turn, as far as anybody knows
MOST_ASKS = 6  # in a round, about any texts


class Gate(Feature):
    name: ClassVar = "gate"

    def __init__(self, parts: Engine) -> None:
        super().__init__(parts)
        self.parts = parts
        self._world = parts.world
        self._asked: OrderedDict[tuple[str, str, int], list[str]] = OrderedDict()
        self._thinks: dict[tuple[str, str], asyncio.Future[dict[str, Any] | None]] = {}

    def routes(self) -> Sequence[Route]:
        """``ask gate``: the feedback order that should follow a text, or null. Without a text: a call
        followed the one that was asked about, so nobody waits for the answer.
        """
        return (Route("ASK", "gate", self._answer),)

    async def _answer(self, data: Mapping[str, Any]) -> Mapping[str, Any]:
        session, message = data["session"], data["message"]
        instance = self.parts.instances.get(data["instance"])
        if not data["text"] or instance is None:
            self._withdraw(session, message)
            return {"feedback": None}
        return {"feedback": await self.ask(instance, session, message, data["text"])}

    def _withdraw(self, session: str, message: str) -> None:
        """The text did not end its turn: stop thinking, and count no question."""
        asking = self._thinks.pop((session, message), None)
        if asking is not None:
            asking.cancel()
        for asked in self._asked.values():
            if message in asked:
                asked.remove(message)

    async def ask(self, instance: Instance, session: str, message: str, text: str) -> dict[str, Any] | None:
        """The feedback order that should follow ``text``, or None. Every failure is None."""
        asking = asyncio.ensure_future(self._ask(instance, session, message, text))
        self._thinks[session, message] = asking

        def thought(_: object) -> None:
            if self._thinks.get((session, message)) is asking:
                del self._thinks[session, message]

        asking.add_done_callback(thought)
        try:
            return await asyncio.shield(asking)
        except asyncio.CancelledError:
            if asking.cancelled():
                return None
            self._world.spawn(self._unheard(asking), "gate")  # the host waits no longer: it is taken back
            raise
        except ReflectdError as e:
            self._world.log.info("gate", session=session, answer="nothing", error=str(e))
            return None

    async def _unheard(self, asking: asyncio.Future[dict[str, Any] | None]) -> None:
        order = await asking
        if order is not None:
            await self.parts.effects.result(order["id"], "stale", "the host did not wait for the answer")

    async def _ask(self, instance: Instance, session: str, message: str, text: str) -> dict[str, Any] | None:
        world, messages = self._world, self.parts.messages
        s = world.sessions.get(session)
        if s is None or not world.project(instance.directory).run.gate:
            return None
        limits = world.limits(s)
        if may_judge(replace(s, busy=False, idle_at=0), world.clock.now_ms(), limits) is not None:
            return None
        transcript = as_if_final(await messages.read(s, instance), message, text)
        now = world.sessions.get(session)
        if now is None:
            return None
        s = reconcile(replace(now, busy=False), transcript)
        no = may_judge_messages(s, transcript, limits) or too_many_prompts(s, world.clock.now_ms(), limits)
        if no is not None or self._too_often(s, transcript, message):
            return None
        s = judging(s, message)
        case = await messages.case(transcript, s)
        formed = await self.parts.proving.judge(case, s, within_s=world.project(s.directory).gate_s)
        now = world.sessions.get(session)
        if now is None or now.task not in {s.task, ""} or now.final == message:
            return None
        if now.aborted or now.off or now.deleted or now.waiting:
            return None
        s = judging(reconcile(replace(now, busy=False), transcript), message)
        at = world.clock.now_ms()
        decision = decide(Round(s, formed.case, limits, at, JudgedBy("none", ms=formed.ms)), formed.opinion)
        if not any(isinstance(o, SendFeedback) for o in decision.orders):
            self.parts.asking.keep(session, formed)
            return None
        self._thinks.pop((session, message), None)  # too late to be cancelled: the order may prove stale
        decision = replace(decision, session=replace(decision.session, busy=True))
        verdict = decision.verdict
        more = self.parts.features.deciding(verdict, formed.case, s.directory)
        rows = await self.parts.commit.decide(decision, instance.id, more)
        if not rows:
            return None
        row = rows[0]

        async def settled(carried_out: bool) -> bool:
            return await self._settled(now, verdict, formed.case, row.id, carried_out=carried_out)

        self.parts.effects.hand_out(row.id, settled)
        self.parts.filing.case(formed.case, formed.opinion, decision)
        world.log.info("gate", session=session, turn=message, answer="feedback", reason=verdict.reason)
        return instance.host.as_answer(row.id, row.order)

    async def _settled(
        self, before: Session, verdict: Verdict, case: Case, order: str, *, carried_out: bool
    ) -> bool:
        """The shim says what became of the order. True when the round was taken back."""
        if carried_out:
            verdict = replace(verdict, at=self._world.clock.now_ms())
            self.parts.filing.final(verdict, before.directory)
            self.parts.features.judged(verdict, case, sent=True)
            return False
        try:
            await self.parts.commit.take_back(before, verdict, order)
        except Unavailable:
            return False
        return True

    def _too_often(self, s: Session, transcript: Transcript, message: str) -> bool:
        """A model is asked twice per round at most, texts before a tool call not counted."""
        if self._world.calls.judges.get(s.host) == ("offline",):
            return False
        key = (s.id, s.task, s.attempts)
        asked = self._asked.setdefault(key, [])
        while len(self._asked) > KEPT:
            self._asked.popitem(last=False)
        in_mid_turn = {m.id for m in transcript.messages if m.finish == "tool-calls"}
        if len([a for a in asked if a not in in_mid_turn]) >= ASKS_PER_ROUND or len(asked) >= MOST_ASKS:
            return True
        asked.append(message)
        return False


def as_if_final(transcript: Transcript, message: str, text: str) -> Transcript:
    """The transcript as it will read if ``text`` is the last thing the agent says, within its bounds."""
    text = whole_lines(text, TEXT, " ")
    found = tuple(
        replace(m, text=text if m.text == "" or text.startswith(m.text) else m.text, finish="stop")
        if m.id == message
        else m
        for m in transcript.messages
    )
    return replace(transcript, messages=found, busy=False)
