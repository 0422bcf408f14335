"""One judged round of a session: guard, read, guard, judge, guard, decide, commit, send, file.

Guards are asked three times: on the folded state, on the messages read, and in the step of the loop in which
the decision is made. Everything before that step can be cancelled; the commit and what follows it can't.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from ..core.errors import BadReply, ReflectdError, Unavailable
from ..core.guards import Skip, may_commit, may_judge, may_judge_messages, too_many_prompts
from ..core.orders import SendFeedback, ShowToast
from ..core.redact import redact_head
from ..core.session import judging, settled, unread, unread_turn
from ..core.verdict import JudgedBy, Verdict
from ..files.verdict import Judging
from ..judge.decide import Round, decide, skip
from ..store import outbox
from ..stuck.decide import may_go_on
from .hosts.host import capabilities
from .loops import naming_loop, worked_in_circles

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..core.session import Session
    from ..core.transcript import Message, Transcript
    from ..judge.decide import Decision
    from ..stuck.signals import Loop
    from .asking import Asking, Foretold, Formed
    from .commit import Commit, Decided, Persist
    from .delivery import Delivery
    from .features.registry import Features
    from .filing import Filing
    from .hosts.host import Instance
    from .instances import Instances
    from .messages import Messages
    from .world import World

# Who is judged, and when: per session at most one judgement at a time; what comes meanwhile sets one more
# (I3).
#
# A human message, a busy agent, an abort, the off switch or a deletion cancels a judgement under way.


class Schedule:
    """Starts, joins and cancels judgements."""

    def __init__(self, world: World, rounds: Rounds, commit: Commit) -> None:
        self._world = world
        self._rounds = rounds
        self._commit = commit
        self._running: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        self._closed = False

    def request(self, session: str) -> None:
        """Judge the session's last turn, unless that is under way: then look once more afterwards."""
        if self._closed:
            return
        if session in self._running:
            self._again.add(session)
            return
        self._running[session] = self._world.spawn(self._run(session), f"judge {session}", "judge")

    def cancel(self, session: str, why: str) -> None:
        """What is being judged is out of date: the call is cancelled and its judge session deleted."""
        self._again.discard(session)
        self._rounds.forget(session)
        if self._rounds.decides(session):  # what was committed is sent or marked stale by delivery
            self._rounds.outdated(session)
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
        """What judges this session right now."""
        return self._running.get(session)

    def running(self, instance: str) -> list[asyncio.Task[None]]:
        """The judgements of this instance's sessions."""
        found = []
        for session, task in self._running.items():
            s = self._world.sessions.get(session)
            if s is not None and s.instance == instance:
                found.append(task)
        return found

    def busy(self) -> bool:
        """Is any turn being judged?"""
        return bool(self._running)

    @property
    def closed(self) -> bool:
        """The daemon stops: nothing more is judged."""
        return self._closed

    def close(self) -> None:
        """Start no more judgements."""
        self._closed = True

    async def _run(self, session: str) -> None:
        me = asyncio.current_task()
        try:
            while True:
                self._again.discard(session)
                try:
                    await self._rounds.judge(session)
                except ReflectdError as e:
                    self._world.log.warning("not judged", session=session, error=str(e))
                    await self._rounds.failed(session, str(e))
                except Exception as e:
                    self._world.log.exception("bug", session=session)
                    await self._rounds.failed(session, f"a bug of reflectd: {type(e).__name__}")
                if session not in self._again:
                    return
        finally:
            if self._running.get(session) is me:
                del self._running[session]


JUDGING_S = 2.0
JUDGING = "Judging whether the task is done. Type a message to take over"


class Rounds:
    """Judges one turn. ``schedule`` says when."""

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
        foretold: Foretold,
        features: Features,
    ) -> None:
        self._world = world
        self._persist = persist
        self._instances = instances
        self._messages = messages
        self._asking = asking
        self._commit = commit
        self._delivery = delivery
        self._filing = filing
        self._foretold = foretold
        self._features = features
        self._deciding: dict[str, asyncio.Event] = {}  # set: the decision is out of date

    def decides(self, session: str) -> bool:
        """A decision on this session is being stored and sent: too late to cancel."""
        return session in self._deciding

    def outdated(self, session: str) -> None:
        """Whoever waits so that the person can step in need not wait longer: something else happened."""
        if session in self._deciding:
            self._deciding[session].set()

    def forget(self, session: str) -> None:
        """What was thought of an answer that has not ended its turn is out of date."""
        self._foretold.take(session)

    async def judge(self, session: str) -> None:
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
        instance = self._instances.connected(
            s.instance, s.directory if capabilities(s.host).shares_sessions else ""
        )
        if instance is None:
            world.log.info("not judged yet", session=session, reason="its host is not connected")
            return
        try:
            transcript = await self._messages.read(s, instance)
        except (Unavailable, BadReply) as e:
            world.log.info("messages not read", session=session, error=str(e))
            await self._conclude_foretold(s, instance)
            await self._unread(session, instance, str(e))
            return
        await self._judge_messages(session, transcript, no, instance)

    async def failed(self, session: str, why: str) -> None:
        """Judging broke: the turn ends in `error`, with the reason (I21)."""
        s = self._world.sessions.get(session)
        if s is None or s.phase != "judging":
            return
        self._world.sessions.put(settled(s, s.turn, "error", "not_judged"))
        at = self._world.clock.now_ms()
        await self._commit.record(
            Verdict(s.id, s.task, s.turn, "error", at, reason=redact_head(why, 300)), s.directory
        )

    async def _judge_messages(
        self, session: str, transcript: Transcript, no: Skip | None, instance: Instance
    ) -> None:
        """The second guards. ``no``: what the first ones said, which counts for the same task only."""
        world = self._world
        now = world.sessions.get(session)
        if now is None:
            return
        noticed = world.project(now.directory).stuck.enabled
        loop = await worked_in_circles(transcript) if noticed else None
        now = world.sessions.get(session)
        if now is None:
            return
        s = self._commit.corrected(now, transcript)
        turn, limits = transcript.turn, world.limits(s)
        if turn is not None and s.turn not in {"", s.final, turn.id}:
            await self._commit.passed_over(s, "busy")  # the agent went on by itself while this was judged
            s = world.sessions.get(s.id) or s
        if s.task != now.task:  # a message we never heard of: the first answer was about the task before
            no = may_judge(s, world.clock.now_ms(), limits)
        seen = may_judge_messages(s, transcript, limits) or may_go_on(s, loop)
        seen = seen or too_many_prompts(s, world.clock.now_ms(), limits)
        if seen is not None and (no is None or seen.final is None):
            no = seen
        if no is None and s.phase == "judging" and s.turn == (turn.id if turn else ""):
            no = _once_more(s)
        if no is not None:
            await self._skip(s, turn, no, instance)
        elif turn is not None:
            await self._judge_turn(s, turn, transcript, loop, instance)

    async def _judge_turn(
        self, s: Session, turn: Message, transcript: Transcript, loop: Loop | None, instance: Instance
    ) -> None:
        world = self._world
        again = s.phase == "judging" and s.turn == turn.id
        s = judging(s, turn.id)
        s = replace(s, rejudged=turn.id if again else s.rejudged)
        world.sessions.put(s)
        await self._persist.flush()
        self._filing.judging(Judging(s.id, s.task, turn.id, world.clock.now_ms()), s.directory)
        formed = self._foretold.take(s.id)
        if formed is None or (formed.case.turn, formed.case.task) != (turn.id, s.task):
            case = await self._messages.case(transcript, s)
            with self._told_of_judging(s, instance):
                formed = await self._asking.judge(case, s)
        now = world.sessions.get(s.id)
        if now is None:
            return
        no = may_commit(s, now)
        if no is None and instance.mode != "run" and instance.can.order_stream and not instance.connected:
            no = Skip("host_gone", "the host ended while the judge was thinking", final="skipped")
        if no is not None:
            await self._skip(now, turn, no, instance)
        else:
            await self._decide(now, formed, instance, loop)

    @contextlib.contextmanager
    def _told_of_judging(self, s: Session, instance: Instance) -> Iterator[None]:
        """In a terminal UI the person is told of a judgement that is not there soon after the idle."""
        opencode_tui = instance.mode == "tui" and instance.can.order_stream
        if not opencode_tui or not self._world.limits(s).toasts:
            yield
            return
        left_s = max(0.0, (s.idle_at - self._world.clock.now_ms()) / 1000 + JUDGING_S)
        toast = ShowToast(s.id, JUDGING, "info")
        timer = asyncio.get_running_loop().call_later(left_s, instance.tell, toast)
        try:
            yield
        finally:
            timer.cancel()

    async def _decide(self, s: Session, formed: Formed, instance: Instance, loop: Loop | None = None) -> None:
        """No await between the last guard and the decision; what follows is not cancelled half-way."""
        limits = self._world.limits(s)
        if instance.id != s.instance:  # another process in this folder: it may be read, not prompted
            limits = replace(limits, observe=True, toasts=False)
        r = Round(s, formed.case, limits, self._world.clock.now_ms(), JudgedBy("none", ms=formed.ms))
        await self._finish(naming_loop(decide(r, formed.opinion), loop), instance, formed)

    async def _finish(self, decision: Decision, instance: Instance, formed: Formed | None = None) -> None:
        """The state moves on in this very step; commit, sending and filing follow on their own."""
        session = decision.session.id
        stored = self._commit.decide(
            decision.session,
            decision.orders,
            decision.verdict.turn,
            instance.id,
            decision.verdict,
            formed.case if formed is not None else None,
        )
        over = self._deciding[session] = asyncio.Event()
        work = self._world.spawn(self._follow(decision, stored, instance, formed, over), "decision")
        work.add_done_callback(lambda _: self._decided(session, over))
        await asyncio.shield(work)

    def _decided(self, session: str, over: asyncio.Event) -> None:
        if self._deciding.get(session) is over:
            del self._deciding[session]

    async def _follow(
        self,
        decision: Decision,
        stored: Decided,
        instance: Instance,
        formed: Formed | None,
        over: asyncio.Event,
    ) -> None:
        """Send, then file; the file of a verdict with a prompt waits for the prompt's outcome (the alias)."""
        world, s, verdict = self._world, decision.session, decision.verdict
        rows = await stored
        log = world.logger(s, debug=instance.debug)
        log.info(
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
        if formed is not None:
            if instance.debug or world.settings.log.debug:
                rows_found = [asdict(r) for r in formed.case.evidence.rows]
                log.debug("case", evidence=rows_found, feedback=verdict.feedback)
            self._filing.case(formed.case, formed.opinion, decision)
        for row in rows:
            watched = instance.can.order_stream and instance.mode in {"tui", "unknown"}
            if isinstance(row.order, SendFeedback) and watched:
                await self._until(s.idle_at + world.limits(s).feedback_delay_ms, over)
            status = await self._delivery.dispatch(row)
            if isinstance(row.order, SendFeedback):
                verdict = replace(verdict, will_prompt=status == "done", at=world.clock.now_ms())
        self._filing.final(verdict, s.directory)
        self._features.judged(verdict, formed.case if formed is not None else None, sent=verdict.will_prompt)

    async def _until(self, at_ms: int, over: asyncio.Event) -> None:
        """Wait until then, so that the person can step in before the agent goes on; less when it is over."""
        left_ms = at_ms - self._world.clock.now_ms()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(left_ms, 0) / 1000):
                await over.wait()

    async def _skip(self, s: Session, turn: Message | None, no: Skip, instance: Instance) -> None:
        """A guard's no: a verdict where a turn ended by it, otherwise only a line in the log."""
        world = self._world
        self._skipped(s, no)
        decision = skip(s, turn.id if turn else "", no, world.clock.now_ms(), world.limits(s))
        if decision is None or turn is None or turn.id == s.final:
            await self._persist.flush()
            return
        await self._finish(decision, instance)

    async def _unread(self, session: str, instance: Instance, error: str) -> None:
        """The host is there and does not give its messages: the turn ends in `error` (I21), quietly."""
        s = self._world.sessions.get(session)
        if s is None or not s.recheck or self._instances.connected(instance.id) is None:
            return
        self._world.sessions.put(unread(s))
        at = self._world.clock.now_ms()
        verdict = Verdict(
            s.id, s.task, unread_turn(s), "error", at, reason=f"messages not read: {redact_head(error, 300)}"
        )
        await self._commit.record(verdict, s.directory)

    async def _conclude_foretold(self, s: Session, instance: Instance) -> None:
        """A `run` host that exits no longer answers; what it asked before was about its last text."""
        formed = self._foretold.take(s.id)
        now = self._world.sessions.get(s.id)
        if formed is None or now is None:
            return
        case = formed.case
        if case.task != now.task or now.final == case.turn:
            return
        started = judging(now, case.turn)
        no = may_commit(started, replace(started, aborted=now.aborted, busy=now.busy))
        if no is None:
            await self._decide(started, formed, instance)

    def _skipped(self, s: Session, no: Skip) -> None:
        if not no.wait and s.recheck:
            s = replace(self._world.sessions.get(s.id) or s, recheck=False)
            self._world.sessions.put(s)
        self._world.log.info("skipped", session=s.id, guard=no.guard, reason=no.reason)
        at = self._world.clock.now_ms()
        entry = {"session": s.id, "directory": s.directory, "guard": no.guard, "reason": no.reason, "at": at}
        self._world.stream.publish("skip", entry)


def _once_more(s: Session) -> Skip | None:
    """A turn left ``judging`` by a crash is judged again once; twice looks like our fault."""
    if s.rejudged == s.turn:
        return Skip("crashed_twice", "judging this turn did not survive twice", final="unscored")
    return None
