"""Decides which session is judged and when, and judges one round: guard, read, guard, judge, guard, decide,
commit.

Of a session at most one judgement runs; what comes meanwhile sets one more (I3). A human message, a busy
agent, an abort, the off switch or a deletion cancels a judgement under way. Guards are asked three times: on
the folded state, on the messages read, and in the step of the loop in which the decision is made. Everything
before that step can be cancelled; the commit and what follows it can't.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field
from msgspec.structs import replace

from ..core.errors import BadReply, ReflectdError, Unavailable
from ..core.guards import Skip, may_commit, may_judge, may_judge_messages, too_many_prompts
from ..core.orders import ShowToast
from ..core.session import Session, judging, settled, unread, unread_turn
from ..core.verdict import JudgedBy
from ..files.verdict import Judging
from ..judge.decide import Decision, Round, decide, skip
from ..redact import redact_head
from ..stuck.loops import Loop, loop_in, may_go_on
from .hosts.host import Instance, capabilities
from .turn import Messages, Turn, naming_loop, silent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .asking import Asking, Formed
    from .commit import Commit
    from .effects import Effects
    from .filing import Filing
    from .proving import Proving
    from .world import World

JUDGING_S: Final = 2.0
JUDGING: Final = "Judging whether the task is done. Type a message to take over"


class Schedule(Struct, eq=False):
    """Starts, joins and cancels judgements. ``_deciding``: set when a decision is out of date."""

    _world: World
    _messages: Messages
    _asking: Asking
    _proving: Proving
    _commit: Commit
    _effects: Effects
    _filing: Filing
    _running: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _again: set[str] = field(default_factory=set)
    _deciding: dict[str, asyncio.Event] = field(default_factory=dict)
    closed: bool = False

    def request(self, session: str) -> None:
        """Judge the session's last turn, unless that is under way: then look once more afterwards."""
        if self.closed:
            return
        if session in self._running:
            self._again.add(session)
            return
        self._running[session] = self._world.spawn(self._run(session), f"judge {session}", "judge")

    def cancel(self, session: str, why: str) -> None:
        """Cancel the call to the judge. A decision that is stored goes on; ``effects`` marks it stale."""
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
        if now is not None and now.final != before.turn:
            self._world.spawn(self._effects.passed_over(before, why), "record")

    def task(self, session: str) -> asyncio.Task[None] | None:
        return self._running.get(session)

    def running(self, instance: str) -> list[asyncio.Task[None]]:
        sessions = self._world.sessions
        owners = ((sessions.get(session), task) for session, task in self._running.items())
        return [task for s, task in owners if s is not None and s.instance == instance]

    def busy(self) -> bool:
        return bool(self._running)

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
        children = self._messages.children_busy(session)
        no = may_judge(s, world.clock.now_ms(), world.limits(s), children_busy=children)
        if no is not None and no.final is None:
            self._skipped(s, no)
            return
        instance = self._world.instances.connected(
            s.instance, s.directory if capabilities(s.host).shares_sessions else ""
        )
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
        loop: Loop | None = None
        if world.project(s.directory).stuck.enabled and transcript.turn is not None:
            loop = await asyncio.to_thread(loop_in, silent(transcript))  # few calls may be long ones
        turn = self._messages.turn(session, transcript, instance)
        if turn is None:
            return
        message = turn.message
        if message is not None and turn.session.turn not in {"", turn.session.final, message.id}:
            # the agent went on by itself while this was judged
            await self._effects.passed_over(turn.session, "busy")
            turn = self._messages.turn(session, transcript, instance) or turn
        if turn.session.task != s.task:  # the first answer was about the task before
            no = may_judge(turn.session, world.clock.now_ms(), turn.limits)
        no = self._objection(turn, loop, no)
        if no is None and message is not None:
            await self._ask(turn, loop)
        elif no is not None:
            await self._skip(turn.session, message.id if message else "", no, instance)

    def _objection(self, turn: Turn, loop: Loop | None, first: Skip | None) -> Skip | None:
        """The second guards. ``first``: of the first ones; it stands against one that writes a verdict."""
        s, message = turn.session, turn.message
        no = may_judge_messages(s, turn.transcript, turn.limits) or may_go_on(s, loop)
        no = no or too_many_prompts(s, self._world.clock.now_ms(), turn.limits)
        if no is None or (first is not None and no.final is not None):
            no = first
        again = message is not None and s.phase == "judging" and s.turn == message.id
        if no is None and again and s.rejudged == s.turn:
            no = Skip("crashed_twice", "judging this turn did not survive twice", final="unscored")
        return no

    async def _ask(self, turn: Turn, loop: Loop | None) -> None:
        """Ask the judge, then the third guards."""
        world, instance, message = self._world, turn.instance, turn.message
        assert message is not None  # noqa: S101 - a guard said so
        again = turn.session.phase == "judging" and turn.session.turn == message.id
        s = judging(turn.session, message.id)
        s = replace(s, rejudged=message.id if again else s.rejudged)
        world.sessions.put(s)
        await self._commit.flush()
        self._filing.begun(Judging(s.id, s.task, message.id, world.clock.now_ms()), s.directory)
        formed = self._asking.take(s.id)
        if formed is None or (formed.case.turn, formed.case.task) != (message.id, s.task):
            case = await self._messages.case(turn.transcript, s)
            with self._told_of_judging(s, instance):
                formed = await self._proving.judge(case, s, instance)
        now = world.sessions.get(s.id)
        if now is None:
            return
        no = may_commit(s, now)
        if no is None and instance.mode != "run" and instance.can.order_stream and not instance.connected:
            no = Skip("host_gone", "the host ended while the judge was thinking", final="skipped")
        if no is not None:
            await self._skip(now, message.id, no, instance)
        else:
            await self._decide(now, formed, loop, instance)

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
        s = decision.session
        more = self._world.features.deciding(decision.verdict, formed.case, s.directory) if formed else ()
        stored = self._commit.decide(decision, instance.id, more)
        outdated = self._deciding[s.id] = asyncio.Event()
        work = self._world.spawn(
            self._effects.follow(decision, stored, instance, formed, outdated), "decision"
        )
        work.add_done_callback(lambda _: self._deciding.pop(s.id, None))
        await asyncio.shield(work)

    async def _skip(self, s: Session, turn: str, no: Skip, instance: Instance) -> None:
        """A guard's no: a verdict where a turn ended by it, otherwise only a line in the log."""
        self._skipped(s, no)
        decision = skip(s, turn, no, self._world.clock.now_ms(), self._world.limits(s))
        if decision is None or turn in {"", s.final}:
            await self._commit.flush()
        else:
            await self._finish(decision, instance)

    def _skipped(self, s: Session, no: Skip) -> None:
        world = self._world
        if not no.wait and s.recheck:
            world.sessions.put(replace(world.sessions.get(s.id) or s, recheck=False))
        world.log.info("skipped", session=s.id, guard=no.guard, reason=no.reason)
        entry = {"session": s.id, "directory": s.directory, "title": s.title, "guard": no.guard}
        world.stream.publish("skip", {**entry, "reason": no.reason, "at": world.clock.now_ms()})

    async def _failed(self, session: str, why: str) -> None:
        """Judging broke: the turn ends in `error`, with the reason (I21)."""
        s = self._world.sessions.get(session)
        if s is not None and s.phase == "judging":
            self._world.sessions.put(settled(s, s.turn, "error", "not_judged"))
            await self._effects.ended(s, s.turn, "error", redact_head(why, 300))

    async def _unread(self, session: str, instance: Instance, error: str) -> None:
        """The host is there and does not give its messages: the turn ends in `error` (I21), quietly."""
        s = self._world.sessions.get(session)
        if s is not None and s.recheck and self._world.instances.connected(instance.id) is not None:
            self._world.sessions.put(unread(s))
            reason = f"messages not read: {redact_head(error, 300)}"
            await self._effects.ended(s, unread_turn(s), "error", reason)

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
