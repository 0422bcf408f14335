"""Who is judged and when, and one judged round: guard, read, guard, judge, guard, decide, commit.

Of a session at most one judgement runs; what comes meanwhile sets one more (I3). A human message, a busy
agent, an abort, the off switch or a deletion cancels a judgement under way. Guards are asked three times: on
the folded state, on the messages read, and in the step of the loop in which the decision is made. Everything
before that step can be cancelled; the commit and what follows it can't.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..core.errors import BadReply, ReflectdError, Unavailable
from ..core.guards import Skip, may_commit, may_judge, may_judge_messages, too_many_prompts
from ..core.orders import ShowToast
from ..core.session import judging, settled, unread, unread_turn
from ..core.verdict import JudgedBy, Verdict
from ..files.verdict import Judging
from ..judge.decide import Round, decide, skip
from ..redact import redact_head
from ..stuck.loops import may_go_on
from .hosts.host import capabilities
from .loops import naming_loop, worked_in_circles

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..core.session import Session
    from ..core.transcript import Message, Transcript
    from ..judge.decide import Decision
    from ..stuck.loops import Loop
    from .asking import Asking, Formed
    from .commit import Commit, Persist
    from .delivery import Delivery
    from .filing import Filing
    from .hosts.host import Instance
    from .instances import Instances
    from .messages import Messages
    from .world import World

JUDGING_S = 2.0
JUDGING = "Judging whether the task is done. Type a message to take over"


@dataclass(frozen=True, slots=True)
class Turn:
    """The turn that one judgement is about, its messages, and who has them."""

    message: Message
    transcript: Transcript
    loop: Loop | None
    instance: Instance


class Schedule:
    """Starts, joins and cancels judgements."""

    def __init__(
        self,
        world: World,
        persist: Persist,
        instances: Instances,
        messages: Messages,
        asking: Asking,
        commit: Commit,
        delivery: Delivery,
        filing: Filing,
    ) -> None:
        self._world = world
        self._persist = persist
        self._instances = instances
        self._messages = messages
        self._asking = asking
        self._commit = commit
        self._delivery = delivery
        self._filing = filing
        self._running: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        self._deciding: dict[str, asyncio.Event] = {}  # set: the decision is out of date
        self.closed = False

    def request(self, session: str) -> None:
        """Judge the session's last turn, unless that is under way: then look once more afterwards."""
        if self.closed:
            return
        if session in self._running:
            self._again.add(session)
            return
        self._running[session] = self._world.spawn(self._run(session), f"judge {session}", "judge")

    def cancel(self, session: str, why: str) -> None:
        """The session moved on: the call to the judge is cancelled. A decision that is being stored and sent
        is not; ``delivery`` marks its orders stale.
        """
        self._again.discard(session)
        self._asking.take(session)
        if session in self._deciding:
            self._deciding[session].set()
            return
        task = self._running.pop(session, None)
        if task is not None:
            self._world.log.info("evaluation cancelled", session=session, why=why)
            task.cancel()

    def supersede(self, before: Session | None, why: str) -> None:
        """A turn that judging began on is over without a judgement; it still gets its final verdict (I21)."""
        if before is None or not before.turn or before.final == before.turn:
            return
        now = self._world.sessions.get(before.id)
        if now is None or now.final == before.turn:
            return
        self._world.spawn(self._commit.passed_over(before, why), "record")

    def task(self, session: str) -> asyncio.Task[None] | None:
        """The judgement of this session that runs."""
        return self._running.get(session)

    def running(self, instance: str) -> list[asyncio.Task[None]]:
        """The judgements of this instance's sessions."""
        sessions = self._world.sessions
        owners = ((sessions.get(session), task) for session, task in self._running.items())
        return [task for s, task in owners if s is not None and s.instance == instance]

    def busy(self) -> bool:
        """Is any turn being judged?"""
        return bool(self._running)

    def close(self) -> None:
        """Start no more judgements."""
        self.closed = True

    async def _run(self, session: str) -> None:
        me = asyncio.current_task()
        try:
            while True:
                self._again.discard(session)
                try:
                    await self._judge(session)
                except ReflectdError as e:
                    self._world.log.warning("not judged", session=session, error=str(e))
                    await self._failed(session, str(e))
                except Exception as e:
                    self._world.log.exception("bug", session=session)
                    await self._failed(session, f"a bug of reflectd: {type(e).__name__}")
                if session not in self._again:
                    return
        finally:
            if self._running.get(session) is me:
                del self._running[session]

    async def _judge(self, session: str) -> None:
        """Judge the session's last turn, if every guard agrees. Raises ``ReflectdError``."""
        world = self._world
        s = world.sessions.get(session)
        if s is None:
            return
        await world.projects.read(s.directory)
        s = world.sessions.get(session) or s
        limits = world.limits(s)
        no = may_judge(s, world.clock.now_ms(), limits, children_busy=self._messages.children_busy(session))
        if no is not None and no.final is None:
            self._skipped(s, no)
            return
        folder = s.directory if capabilities(s.host).shares_sessions else ""
        instance = self._instances.connected(s.instance, folder)
        if instance is None:
            world.log.info("not judged yet", session=session, reason="its host is not connected")
            return
        try:
            transcript = await self._messages.read(s, instance)
        except (Unavailable, BadReply) as e:
            world.log.info("messages not read", session=session, error=str(e))
            await self._decide_early(session, instance)
            await self._unread(session, instance, str(e))
            return
        stuck = world.sessions.get(session) is not None and world.project(s.directory).stuck.enabled
        loop = await worked_in_circles(transcript) if stuck else None
        await self._judge_messages(session, transcript, loop, no, instance)

    async def _judge_messages(
        self, session: str, transcript: Transcript, loop: Loop | None, no: Skip | None, instance: Instance
    ) -> None:
        """The second guards. ``no``: the answer of the first ones, which counts for the same task only."""
        world = self._world
        now = world.sessions.get(session)
        if now is None:
            return
        s = self._commit.corrected(now, transcript)
        message, limits = transcript.turn, world.limits(s)
        if message is not None and s.turn not in {"", s.final, message.id}:
            await self._commit.passed_over(s, "busy")  # the agent went on by itself while this was judged
            s = world.sessions.get(s.id) or s
        if s.task != now.task:  # a message we never heard of: the first answer was about the task before
            no = may_judge(s, world.clock.now_ms(), limits)
        seen = may_judge_messages(s, transcript, limits) or may_go_on(s, loop)
        seen = seen or too_many_prompts(s, world.clock.now_ms(), limits)
        if seen is not None and (no is None or seen.final is None):
            no = seen
        again = message is not None and s.phase == "judging" and s.turn == message.id
        if no is None and again and s.rejudged == s.turn:
            no = Skip("crashed_twice", "judging this turn did not survive twice", final="unscored")
        if no is not None or message is None:
            await self._skip(s, message, no, instance)
            return
        s = replace(judging(s, message.id), rejudged=message.id if again else s.rejudged)
        await self._judge_turn(s, Turn(message, transcript, loop, instance))

    async def _judge_turn(self, s: Session, turn: Turn) -> None:
        """Ask the judge, then the third guards."""
        world, instance, message = self._world, turn.instance, turn.message
        world.sessions.put(s)
        await self._persist.flush()
        self._filing.judging(Judging(s.id, s.task, message.id, world.clock.now_ms()), s.directory)
        formed = self._asking.take(s.id)
        if formed is None or (formed.case.turn, formed.case.task) != (message.id, s.task):
            case = await self._messages.case(turn.transcript, s)
            with self._told_of_judging(s, instance):
                formed = await self._asking.judge(case, s)
        now = world.sessions.get(s.id)
        if now is None:
            return
        no = may_commit(s, now)
        if no is None and instance.mode != "run" and instance.can.order_stream and not instance.connected:
            no = Skip("host_gone", "the host ended while the judge was thinking", final="skipped")
        if no is not None:
            await self._skip(now, message, no, instance)
        else:
            await self._decide(now, formed, turn.loop, instance)

    @contextlib.contextmanager
    def _told_of_judging(self, s: Session, instance: Instance) -> Iterator[None]:
        """In a terminal UI the person is told of a judgement that is not there soon after the idle."""
        if instance.mode != "tui" or not instance.can.order_stream or not self._world.limits(s).toasts:
            yield
            return
        left_s = max(0.0, (s.idle_at - self._world.clock.now_ms()) / 1000 + JUDGING_S)
        toast = ShowToast(s.id, JUDGING, "info")
        timer = asyncio.get_running_loop().call_later(left_s, instance.tell, toast)
        try:
            yield
        finally:
            timer.cancel()

    async def _decide(self, s: Session, formed: Formed, loop: Loop | None, instance: Instance) -> None:
        """No await between the last guard and the decision."""
        limits = self._world.limits(s)
        if instance.id != s.instance:  # another process in this folder: it may be read, not prompted
            limits = replace(limits, observe=True, toasts=False)
        r = Round(s, formed.case, limits, self._world.clock.now_ms(), JudgedBy("none", ms=formed.ms))
        await self._finish(naming_loop(decide(r, formed.opinion), loop), instance, formed)

    async def _finish(self, decision: Decision, instance: Instance, formed: Formed | None = None) -> None:
        """The state moves on in this very step; what follows is not cancelled half-way."""
        session = decision.session.id
        stored = self._commit.decide(decision, instance.id, formed.case if formed is not None else None)
        outdated = self._deciding[session] = asyncio.Event()
        follow = self._delivery.follow(decision, stored, instance, formed, outdated)
        work = self._world.spawn(follow, "decision")
        work.add_done_callback(lambda _: self._deciding.pop(session, None))
        await asyncio.shield(work)

    async def _skip(self, s: Session, turn: Message | None, no: Skip | None, instance: Instance) -> None:
        """A guard's no: a verdict where a turn ended by it, otherwise only a line in the log."""
        if no is None:
            return
        world = self._world
        self._skipped(s, no)
        decision = skip(s, turn.id if turn else "", no, world.clock.now_ms(), world.limits(s))
        if decision is None or turn is None or turn.id == s.final:
            await self._persist.flush()
            return
        await self._finish(decision, instance)

    def _skipped(self, s: Session, no: Skip) -> None:
        world = self._world
        if not no.wait and s.recheck:
            s = replace(world.sessions.get(s.id) or s, recheck=False)
            world.sessions.put(s)
        world.log.info("skipped", session=s.id, guard=no.guard, reason=no.reason)
        entry = {"session": s.id, "directory": s.directory, "guard": no.guard, "reason": no.reason}
        world.stream.publish("skip", {**entry, "at": world.clock.now_ms()})

    async def _failed(self, session: str, why: str) -> None:
        """Judging broke: the turn ends in `error`, with the reason (I21)."""
        s = self._world.sessions.get(session)
        if s is None or s.phase != "judging":
            return
        self._world.sessions.put(settled(s, s.turn, "error", "not_judged"))
        await self._error(s, s.turn, redact_head(why, 300))

    async def _unread(self, session: str, instance: Instance, error: str) -> None:
        """The host is there and does not give its messages: the turn ends in `error` (I21), quietly."""
        s = self._world.sessions.get(session)
        if s is None or not s.recheck or self._instances.connected(instance.id) is None:
            return
        self._world.sessions.put(unread(s))
        await self._error(s, unread_turn(s), f"messages not read: {redact_head(error, 300)}")

    async def _error(self, s: Session, turn: str, reason: str) -> None:
        verdict = Verdict(s.id, s.task, turn, "error", self._world.clock.now_ms(), reason=reason)
        await self._commit.record(verdict, s.directory)

    async def _decide_early(self, session: str, instance: Instance) -> None:
        """A `run` host that exits no longer answers; what it asked before was about its last text."""
        formed, now = self._asking.take(session), self._world.sessions.get(session)
        if formed is None or now is None:
            return
        case = formed.case
        if case.task != now.task or now.final == case.turn:
            return
        started = judging(now, case.turn)
        if may_commit(started, replace(started, aborted=now.aborted, busy=now.busy)) is None:
            await self._decide(started, formed, None, instance)
