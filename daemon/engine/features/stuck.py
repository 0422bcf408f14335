"""Notices agents that are silent or repeat themselves, and tells the person or nudges the agent
(design/stuck.md).

There are three cases. A session works and says nothing: it is looked at when the silence has lasted long
enough, then with growing pauses, and the person is told. A turn could not be judged, or nothing followed
feedback: the idle agent is nudged once. When anything fails, nobody is nudged and nobody is told (I30).
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Any, ClassVar, Final

from msgspec import Struct, field

from ...core import events as ev
from ...core.errors import ReflectdError
from ...core.guards import Skip
from ...core.orders import SendFeedback, ShowToast
from ...core.verdict import NO_PROOF, Verdict
from ...files.verdict import Judging
from ...store import outbox
from ...store.timers import Pending
from ...stuck.loops import SIZE, Step, loop_at_end, loop_in, step_from_digests
from ...stuck.silence import (
    Assessment,
    Case,
    Seen,
    assessment,
    certain,
    decide,
    make_case,
    order_of_silence,
    question,
)
from ..feature import Feature, Heard, Returned, Switched
from ..hosts.host import Instance, capabilities

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...core.session import Session
    from ...core.transcript import Transcript
    from ...judge.case import Case as JudgedCase
    from ..engine import Engine
    from ..turn import Turn

FLOW_S: Final = 60.0
CACHE_MS: Final = 60_000
THROTTLE_MS: Final = 5_000  # the shim tells of activity at most this often
LONGEST_MS: Final = 600_000
LOOKS: Final = 8  # at one silence, over three quarters of an hour; more looks would find nothing new
KEPT: Final = 500  # sessions


class _Seen(Struct):
    """One session. ``row``: its last calls, by digests. ``loop``: the key of the loop that the person was
    told of, and ``next_ms``: when loops are looked for again. ``silent_at``: when the silence began that
    ``looks`` counts, and ``told_at``: when the one began that the person was told of. ``stalled``: the task,
    and what was told.
    """

    row: deque[Step] = field(default_factory=lambda: deque(maxlen=SIZE))
    loop: str = ""
    next_ms: int = 0
    silent_at: int = 0
    looks: int = 0
    told_at: int = 0
    stalled: tuple[str, str] = ("", "")
    assessed: tuple[int, tuple[object, ...], Assessment] | None = None  # until when, for which state


class Stuck(Feature):
    name: ClassVar = "stuck"
    timer_kinds: ClassVar = frozenset({"nudge", "idle"})

    def __init__(self, parts: Engine) -> None:
        super().__init__(parts)
        self.parts = parts
        self._world = parts.world
        self._seen: OrderedDict[str, _Seen] = OrderedDict()  # the newest last

    def heard(self, before: Session | None, after: Session, event: Heard) -> None:
        """Sets and takes away timers. The silence of a session whose host is back counts from now."""
        session = after.id
        match event:
            case ev.SessionBusied() if before is None or not before.busy:
                self._cancel(session)
                self._watch(after, event.t)
            case ev.HumanMessaged() if before is None or before.task != after.task:
                self._cancel(session)
                self._seen.pop(session, None)
            case ev.SessionIdled():
                self.parts.timers.unwatch(session)
                # opencode says idle again when the person stops an idle session
                if before is not None and not before.busy:
                    self._cancel(session)
            case ev.TurnAborted() | ev.SessionDeleted() if after.aborted or after.deleted:
                self._leave(session)
            case ev.ToolEnded():
                self._tool(after, event)
            case Switched(on=False):
                self._leave(session)
            case Switched() | Returned() if after.busy:
                self._watch(after, self._world.clock.now_ms())
            case _:
                pass

    def status(self) -> Mapping[str, Any]:
        """The working sessions of which a person was told that they seem stuck, each with what was said."""
        stuck = {}
        for session, seen in self._seen.items():
            task, told = seen.stalled
            s = self._world.sessions.peek(session)
            if told and s is not None and s.busy and s.task == task:
                stuck[session] = told
        return {"stuck": stuck} if stuck else {}

    def _watch(self, s: Session, since_ms: int) -> None:
        if self._watched(s):
            self.parts.timers.watch(s.id, since_ms + self._silence_ms(s), self.look)

    def _leave(self, session: str) -> None:
        self._cancel(session)
        self.parts.timers.unwatch(session)
        self._seen.pop(session, None)

    def _cancel(self, session: str) -> None:
        self.parts.timers.cancel(session, "nudge", "idle")

    def judged(self, verdict: Verdict, case: JudgedCase | None, *, sent: bool) -> None:
        """A turn has its verdict: after feedback, or where nothing could be said, look again in a while."""
        del case
        world = self._world
        s = world.sessions.get(verdict.session)
        if s is None or s.busy or s.task != verdict.task or not world.project(s.directory).stuck.enabled:
            return
        instance = self._world.instances.connected(s.instance)
        if (
            instance is None or not instance.can.order_stream or instance.mode == "run"
        ):  # its host exits when it is idle
            return
        length = world.project(s.directory).stuck.after_s * 1000
        now = world.clock.now_ms()
        if verdict.state == "incomplete" and sent and s.phase == "incomplete" and s.turn == verdict.turn:
            self.parts.timers.arm(Pending(s.id, "nudge", s.task, s.turn, now + length, length))
        elif (
            verdict.state == "unscored" and s.phase == "unscored" and not verdict.reason.startswith(NO_PROOF)
        ):
            due = max(now, s.idle_at + length)
            self.parts.timers.arm(Pending(s.id, "idle", s.task, s.turn, due, length))

    async def due(self, p: Pending) -> None:
        """The time for a nudge has come. It is sent only if nothing happened since the timer was set."""
        found = await self.parts.nudges.current(p)
        if found is None or isinstance(found, Skip):
            return
        if found.message is None or found.message.id != p.turn:
            return
        if p.kind == "nudge":
            await self._unanswered(found, p)
        else:
            await self._idle(found, p)

    async def _unanswered(self, turn: Turn, p: Pending) -> None:
        """Nudge the agent if our feedback is still the last message of the session."""
        stored = self._world.outbox.get(outbox.order_id(turn.session.id, p.turn, "feedback"))
        if stored is None or not isinstance(stored.order, SendFeedback):
            return
        if turn.transcript.messages[-1].order != stored.id:
            return
        decision = order_of_silence(turn.session, p.turn, stored.order, turn.limits)
        why = "nothing followed the feedback"
        await self.parts.nudges.send(decision.session, decision.orders, p.turn, turn.instance, why)

    async def _idle(self, turn: Turn, p: Pending) -> None:
        """A turn could not be judged: ask whether the agent broke off in the middle."""
        s = turn.session
        case = await self._case(s, turn.transcript)
        if case is None or case.turn != p.turn:
            return
        assessed = await self._assess(s, case)
        now = self._world.sessions.get(s.id)
        if now is None or now.turn != s.turn or self.parts.nudges.objection(now, p.task) is not None:
            return
        decision = decide(now, case, assessed, self._world.limits(now))
        if decision.notice:  # only a toast: the verdict file of the turn is final (I21)
            self._world.log.info("stuck", session=s.id, turn=case.turn, told=decision.notice)
        await self.parts.nudges.send(decision.session, decision.orders, p.turn, turn.instance, assessed.why)

    async def look(self, session: str) -> None:
        """Look at a working session that may have been silent for too long."""
        world = self._world
        s = world.sessions.get(session)
        if s is None:
            return
        await world.projects.read(s.directory)
        s = world.sessions.get(session)
        if s is None or not s.busy or not self._watched(s):
            return
        now, due = world.clock.now_ms(), s.active_at + self._silence_ms(s)
        if now < due:
            self.parts.timers.watch(session, due, self.look)
            return
        instance = self._world.instances.connected(s.instance)
        if instance is None:  # watched again when it comes back
            return
        seen = self._of(session)
        if seen.told_at == s.active_at:
            self.parts.timers.watch(session, now + LONGEST_MS, self.look)
            return
        seen.looks = min(seen.looks + 1, LOOKS) if seen.silent_at == s.active_at else 0
        seen.silent_at = s.active_at
        self.parts.timers.watch(session, now + int(min(LONGEST_MS, CACHE_MS * 2**seen.looks)), self.look)
        if seen.looks >= LOOKS or s.waiting or s.retrying:
            return
        transcript = await self._read(s, instance)
        if transcript is not None and transcript.busy:
            await self._silent(s, transcript)

    async def _read(self, s: Session, instance: Instance) -> Transcript | None:
        try:
            return await self.parts.messages.read(s, instance)
        except ReflectdError as e:
            self._world.log.info("messages not read", session=s.id, error=str(e))
            return None

    async def _silent(self, s: Session, transcript: Transcript) -> None:
        case = await self._case(s, transcript)
        if case is None:
            return
        assessed = await self._assess(s, case)
        now = self._world.sessions.get(s.id)
        if now is None or not self._goes_on(s, now) or now.active_at != s.active_at:
            return
        if case.pending:  # the end of the call is an event, and until then the answer stays the same
            self.parts.timers.watch(s.id, self._world.clock.now_ms() + LONGEST_MS, self.look)
        decision = decide(now, case, assessed, self._world.limits(now))
        if not decision.notice:
            return
        seen = self._of(s.id)
        seen.told_at = s.active_at
        if case.loop is not None:
            if seen.loop == case.loop.key:
                return
            seen.loop = case.loop.key
        self._tell(now, case.turn, decision.notice)

    async def _case(self, s: Session, transcript: Transcript) -> Case | None:
        world = self._world
        seen = Seen(
            busy=s.busy,
            silent_ms=world.clock.now_ms() - (s.active_at if s.busy else max(s.idle_at, s.active_at)),
            retrying=s.retrying,
            waiting=len(s.waiting),
            children=self.parts.messages.children_busy(s.id),
        )
        loop = await asyncio.to_thread(loop_in, transcript)
        return await asyncio.to_thread(make_case, transcript, seen, loop)

    async def _assess(self, s: Session, case: Case) -> Assessment:
        """The answer for this state of the messages; asked for at most once a minute."""
        world, known = self._world, self._of(s.id).assessed
        if known is not None and known[1] == case.state and world.clock.now_ms() < known[0]:
            return known[2]
        assessed = certain(case)
        if assessed is None:
            assessed = assessment(await self.parts.asking.ask(question(case), s, FLOW_S))
        world.log.info(
            "stuck?",
            session=s.id,
            turn=case.turn,
            reason=assessed.reason or "unknown",
            why=assessed.why,
            provider=assessed.provider,
        )
        self._of(s.id).assessed = (world.clock.now_ms() + CACHE_MS, case.state, assessed)
        return assessed

    def _tool(self, s: Session, event: ev.ToolEnded) -> None:
        """Notice from digests of finished calls that something repeats; the messages say what it is."""
        if not self._watched(s):
            return
        seen, now = self._of(s.id), self._world.clock.now_ms()
        seen.row.append(step_from_digests(event.tool, event.call, event.result, failed=event.failed))
        if now >= seen.next_ms and loop_at_end(tuple(seen.row)) is not None:
            seen.next_ms = now + CACHE_MS
            self._world.spawn(self._looping(s.id), f"look at {s.id}", "look")

    async def _looping(self, session: str) -> None:
        """A working agent repeats itself: tell the person, once for each loop."""
        world = self._world
        s = world.sessions.get(session)
        instance = self._world.instances.connected(s.instance) if s is not None else None
        if s is None or instance is None or (transcript := await self._read(s, instance)) is None:
            return
        loop = await asyncio.to_thread(loop_in, transcript)
        now, seen = world.sessions.get(session), self._of(session)
        if loop is None or loop.key == seen.loop or now is None or not self._goes_on(s, now):
            return
        seen.loop = loop.key
        if not world.limits(now).observe:
            turn = transcript.turn.id if transcript.turn else ""
            self._tell(now, turn, f"The agent repeats itself: {loop.what}")

    def _tell(self, s: Session, turn: str, told: str) -> None:
        """Tell the person by a toast and the verdict file, and those who watch. Never prompt the agent."""
        world = self._world
        world.log.info("stuck", session=s.id, turn=turn, told=told)
        instance = self._world.instances.connected(s.instance)
        if instance is not None and world.limits(s).toasts:
            instance.tell(ShowToast(s.id, told[:300], "warning"))
        self._of(s.id).stalled = (s.task, told)
        self.parts.filing.begun(Judging(s.id, s.task, turn, world.clock.now_ms(), told), s.directory)

    def _goes_on(self, s: Session, now: Session) -> bool:
        """Does the session still work on the same task as when it was ``s``?"""
        return now.busy and now.task == s.task and self._watched(now)

    def _watched(self, s: Session) -> bool:
        settings = self._world.project(s.directory)
        fine = settings.enabled and settings.stuck.enabled and not self._world.sessions.is_off(s.directory)
        left_alone = s.judge or s.parent or s.deleted or s.off or s.aborted
        return fine and not left_alone and capabilities(s.host).tells_activity

    def _silence_ms(self, s: Session) -> int:
        return self._world.project(s.directory).stuck.after_s * 1000 + THROTTLE_MS

    def _of(self, session: str) -> _Seen:
        """The known facts of the session, which is the newest then; the oldest is forgotten."""
        seen = self._seen.setdefault(session, _Seen())
        self._seen.move_to_end(session)
        while len(self._seen) > KEPT:
            self._seen.popitem(last=False)
        return seen
