"""After the host summarised a session's context: look when it is idle, ask once, act once.

The look is put off while the session works: every 15 s, five times, then after 60 s (I32). A person who types
ends it. Whatever fails, nothing is sent.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from daemon.compaction.case import Templates, make_case, verdict_of
from daemon.compaction.decide import Decision, decide, only_told, wanted
from daemon.compaction.flow import evaluate
from daemon.core import events as ev
from daemon.core.guards import Skip
from daemon.core.orders import SendNudge
from daemon.core.pending import AGAIN_MS, Pending, put_off
from daemon.engine.drive import drive

if TYPE_CHECKING:
    from daemon.core.llm import Prompt, Reply
    from daemon.core.session import Session
    from daemon.core.transcript import Transcript
    from daemon.core.verdict import Verdict
    from daemon.engine.evaluation import Evaluations
    from daemon.engine.instances import Instance
    from daemon.engine.nudges import Nudges
    from daemon.engine.timers import Timers
    from daemon.engine.world import World

FLOW_S: Final = 60.0
FIRST_MS: Final = 2_000  # the host's own continuation, and its idle, come first
FINISHED: Final = frozenset({"task_complete", "task_stopped"})


class Compaction:
    """Hears of compactions and looks after them."""

    def __init__(self, world: World, nudges: Nudges, evaluations: Evaluations, timers: Timers) -> None:
        self._world = world
        self._nudges = nudges
        self._evaluations = evaluations
        self._timers = timers
        self._looking: set[str] = set()

    def heard(self, after: Session, event: ev.SessionEvent) -> None:
        """A compaction sets the timer; folding never waits."""
        if not isinstance(event, ev.SessionCompacted):
            return
        settings = self._world.project(after.directory)
        # Claude Code is told what to go on with when it asks (engine/claude_code.py)
        ours = after.judge or after.parent or after.off or after.deleted or after.host != "opencode"
        if ours or not (settings.enabled and settings.compaction.enabled):
            return
        now = self._world.clock.now_ms()
        self._timers.arm(Pending(after.id, "compaction", after.task, "", now + FIRST_MS, AGAIN_MS))

    async def due(self, p: Pending) -> None:
        """One attempt; one at a time for a session, and the next one finds what this one did."""
        if p.session in self._looking:
            self._later(p, "a look is under way")
            return
        self._looking.add(p.session)
        try:
            await self._attempt(p)
        finally:
            self._looking.discard(p.session)

    async def _attempt(self, p: Pending) -> None:
        found = await self._nudges.current(p, but=FINISHED)
        if isinstance(found, Skip):
            if found.wait:
                self._later(p, found.reason)
            return
        if found is not None:
            await self._look(p, *found)

    def _later(self, p: Pending, why: str) -> None:
        """Try again in a while, or give up. What was set meanwhile is newer, and stays."""
        later = put_off(p, self._world.clock.now_ms())
        if later is not None and self._timers.pending(p.session) is None:
            self._timers.arm(later)
        elif later is None:
            self._world.log.info("compaction", session=p.session, action="given up", why=why)

    async def _look(self, p: Pending, s: Session, transcript: Transcript, instance: Instance) -> None:
        world = self._world
        newest = world.verdicts.newest(s.id, 1)
        last = verdict_of(transcript, newest[0].verdict if newest else None)
        match wanted(s, transcript, last):
            case "act":
                await self._act(p, s, transcript, last, instance)
            case "toast":
                decision = only_told(s, last, world.limits(s))
                world.log.info("compaction", session=s.id, action="told", why=decision.why)
                await self._nudges.send(s, decision.orders, "", instance, decision.why)
            case _:
                world.log.info(
                    "compaction", session=s.id, action="nothing", why="the session goes on by itself"
                )
                if last is not None:  # its nudge had to stand back for this look
                    self._evaluations.on_verdict(last, True)

    async def _act(
        self, p: Pending, s: Session, transcript: Transcript, last: Verdict | None, instance: Instance
    ) -> None:
        world, limits = self._world, self._world.limits(s)
        texts = await asyncio.to_thread(world.prompt_texts, s.directory)
        templates = Templates(texts["compaction"], texts["compaction_case"], texts["compaction_again"])
        at, nonce = world.clock.now_ms(), world.nonce()
        case = await asyncio.to_thread(
            make_case, transcript, at=at, nonce=nonce, templates=templates, last=last
        )

        async def ask(prompt: Prompt, left_s: float) -> Reply:
            return await world.calls.ask(
                prompt, left_s, limits, lambda no: self._evaluations.over_limit(s, no)
            )

        outcome = await drive(evaluate(case), ask, world.clock, FLOW_S)
        self._evaluations.keep_dead_letters(s, outcome.bad)
        now = world.sessions.get(s.id)
        if now is None or self._nudges.objection(now, p.task, but=FINISHED) is not None:
            return
        decision = decide(now, case, outcome, limits, github=world.project(now.directory).compaction.github)
        self._log(now, decision)
        prompts = any(isinstance(o, SendNudge) for o in decision.orders)
        after = replace(now, nudges=now.nudges + 1) if prompts else now
        await self._nudges.send(after, decision.orders, case.turn, instance, decision.why)

    def _log(self, s: Session, decision: Decision) -> None:
        self._world.log.info(
            "compaction", session=s.id, action=decision.action or "nothing", why=decision.why
        )
