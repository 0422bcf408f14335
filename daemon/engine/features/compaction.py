"""After the host summarised a session's context: look when it is idle, ask once, act once.

The look is put off while the session works: every 15 s, five times, then after 60 s (I32). A person who types
ends it. After any failure nothing is sent. A host that can't be prompted unasked is given the task as facts
when it asks what to read after the compaction.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar, Final

from msgspec.structs import replace

from ...compaction.case import certain, make_case, outcome, question, verdict_of
from ...compaction.decide import decide, hand_over, only_told, wanted
from ...core import events as ev
from ...core.guards import Skip
from ...core.offers import Moment, Offer
from ...core.orders import SendNudge
from ...redact import redact_head
from ...store.timers import Pending
from ..feature import Feature, Heard, Switched
from ..hosts.host import capabilities

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...core.session import Session
    from ...core.verdict import Verdict
    from ..engine import Engine
    from ..turn import Turn

REQUEST_CHARS: Final = 3_000
HAND_OVER_CHARS: Final = 8_500
FLOW_S: Final = 60.0
AGAIN_MS, TRIES, LAST_MS = 15_000, 5, 60_000  # between looks at a session that works (I32)
FIRST_MS: Final = 2_000  # the host may go on by itself, and that must be seen first
FINISHED: Final = frozenset({"task_complete", "task_stopped"})


class Compaction(Feature):
    name: ClassVar = "compaction"
    timer_kinds: ClassVar = frozenset({"compaction"})

    def __init__(self, parts: Engine) -> None:
        super().__init__(parts)
        self.parts = parts
        self._world = parts.world
        self._looking: set[str] = set()

    def heard(self, before: Session | None, after: Session, event: Heard) -> None:
        """A compaction sets the timer; a person's message, an abort or a deletion takes it away."""
        match event:
            case ev.SessionCompacted():
                self._arm(after)
            case ev.HumanMessaged() if before is None or before.task != after.task:
                self.parts.timers.cancel(after.id, "compaction")
            case ev.TurnAborted() | ev.SessionDeleted() if after.aborted or after.deleted:
                self.parts.timers.cancel(after.id, "compaction")
            case Switched(on=False):
                self.parts.timers.cancel(after.id, "compaction")
            case _:
                pass

    def context(self, s: Session, moment: Moment) -> Sequence[Offer]:
        """The requests and the open items, as facts beside the host's summary."""
        transcript = moment.transcript
        if moment.when != "compacted" or transcript is None:
            return ()
        if not self._world.project(s.directory).compaction.enabled:
            return ()
        requests: list[str] = []
        for m in transcript.requests:
            if sum(map(len, requests)) < HAND_OVER_CHARS:  # what is beyond is not given
                requests.append(redact_head(m.text, REQUEST_CHARS))
        newest = self._world.verdicts.newest(s.id, 1)
        verdict = newest[0].verdict if newest else None
        if not requests or (verdict is not None and verdict.complete and verdict.task == s.task):
            return ()
        missing = verdict.missing if verdict is not None and verdict.task == s.task else ()
        text = hand_over(requests, [m.text for m in missing])
        return (Offer(f"hand_over {s.task}", "hand_over", text[:HAND_OVER_CHARS]),)

    def _arm(self, s: Session) -> None:
        settings = self._world.project(s.directory)
        prompted = capabilities(s.host).order_stream  # another host is given a hand-over instead (``offers``)
        if s.judge or s.parent or s.off or s.deleted or not prompted:
            return
        if settings.enabled and settings.compaction.enabled:
            now = self._world.clock.now_ms()
            self.parts.timers.arm(Pending(s.id, "compaction", s.task, "", now + FIRST_MS, AGAIN_MS))

    async def due(self, p: Pending) -> None:
        """Make one attempt. Only one runs at a time for a session, so that the next one sees what it did."""
        if p.session in self._looking:
            self._later(p, "a look is under way")
            return
        self._looking.add(p.session)
        try:
            found = await self.parts.nudges.current(p, but=FINISHED)
            if isinstance(found, Skip):
                if found.wait:
                    self._later(p, found.reason)
            elif found is not None:
                await self._look(p, found)
        finally:
            self._looking.discard(p.session)

    def _later(self, p: Pending, why: str) -> None:
        """Try again in a while, or give up. A timer that was set meanwhile is newer, and stays."""
        if p.tries > TRIES:
            self._world.log.info("compaction", session=p.session, action="given up", why=why)
        elif self.parts.timers.pending(p.session, "compaction") is None:
            length = AGAIN_MS if p.tries < TRIES else LAST_MS
            due = self._world.clock.now_ms() + length
            self.parts.timers.arm(replace(p, due=due, length=length, tries=p.tries + 1))

    async def _look(self, p: Pending, turn: Turn) -> None:
        world, s, transcript = self._world, turn.session, turn.transcript
        newest = world.verdicts.newest(s.id, 1)
        last = verdict_of(transcript, newest[0].verdict if newest else None)
        match wanted(s, transcript, last):
            case "act":
                await self._act(p, turn, last)
            case "toast":
                decision = only_told(s, last, turn.limits)
                world.log.info("compaction", session=s.id, action="told", why=decision.why)
                await self.parts.nudges.send(s, decision.orders, "", turn.instance, decision.why)
            case _:
                world.log.info(
                    "compaction", session=s.id, action="nothing", why="the session goes on by itself"
                )

    async def _act(self, p: Pending, turn: Turn, last: Verdict | None) -> None:
        world, s = self._world, turn.session
        case = await asyncio.to_thread(make_case, turn.transcript, last)
        found = certain(case) or outcome(await self.parts.asking.ask(question(case), s, FLOW_S))
        now = world.sessions.get(s.id)
        if now is None or self.parts.nudges.objection(now, p.task, but=FINISHED) is not None:
            return
        decision = decide(
            now, case, found, turn.limits, github=world.project(now.directory).compaction.github
        )
        world.log.info("compaction", session=s.id, action=decision.action or "nothing", why=decision.why)
        prompts = any(isinstance(o, SendNudge) for o in decision.orders)
        after = replace(now, nudges=now.nudges + 1) if prompts else now
        await self.parts.nudges.send(after, decision.orders, case.turn, turn.instance, decision.why)
