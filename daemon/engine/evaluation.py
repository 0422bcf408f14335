"""One turn, from idle to verdict: guard, read, guard, judge, guard and commit, file, send (DESIGN §3).

Per session at most one evaluation; what comes meanwhile sets one re-check (I3). A human message, busy,
an abort, off or a deletion cancels it. The commit and what follows are not cancelled half-way.
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from daemon.core.errors import BadReply, ReflectdError, Unavailable
from daemon.core.guards import Skip, may_commit, may_judge, may_judge_messages
from daemon.core.orders import ReadMessages, SendFeedback, ShowToast
from daemon.core.redact import redact
from daemon.core.session import judging, reconcile, settled, taken_back
from daemon.core.verdict import JudgedBy, Verdict
from daemon.engine.drive import drive
from daemon.engine.loops import naming_loop, worked_in_circles
from daemon.files.verdict import Judging
from daemon.hosts.opencode import parse_transcript
from daemon.judge.case import make_case
from daemon.judge.decide import Decision, Round, decide, skip
from daemon.judge.flow import judge
from daemon.store import dead_letters, outbox, verdicts
from daemon.store.dead_letters import RAW_CHARS, DeadLetter
from daemon.store.outbox import Stored
from daemon.stuck.decide import may_go_on

if TYPE_CHECKING:
    from collections.abc import Callable

    from daemon.core.llm import Prompt, Reply
    from daemon.core.reply import BadForm
    from daemon.core.session import Session
    from daemon.core.transcript import Message, Transcript
    from daemon.engine.delivery import Delivery
    from daemon.engine.filing import Filing
    from daemon.engine.instances import Instance, Instances
    from daemon.engine.persist import Persist
    from daemon.engine.world import World
    from daemon.judge.case import Case
    from daemon.judge.flow import Opinion
    from daemon.stuck.signals import Loop

READ_S = 10.0
BIG = 256 * 1024
DAY_MS = 86_400_000


class Evaluations:
    """Starts, coalesces and cancels evaluations."""

    def __init__(
        self, world: World, persist: Persist, instances: Instances, delivery: Delivery, filing: Filing
    ) -> None:
        self._world = world
        self._persist = persist
        self._instances = instances
        self._delivery = delivery
        self._filing = filing
        self._running: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        self._deciding: set[str] = set()
        self._told_limits: set[tuple[int, str]] = set()
        self.closed = False
        self._foretold: dict[str, tuple[Case, Opinion, int]] = {}
        self.on_verdict: Callable[[Verdict, bool], None] = lambda _verdict, _sent: None

    def request(self, session: str) -> None:
        """Judge the session's last turn, unless that is under way: then look once more afterwards."""
        if self.closed:
            return
        if session in self._running:
            self._again.add(session)
            return
        self._running[session] = self._world.spawn(self._run(session), f"evaluate {session}")

    def cancel(self, session: str, why: str) -> None:
        """What is being judged is out of date: the call is cancelled and its judge session deleted."""
        self._again.discard(session)
        self._foretold.pop(session, None)
        if session in self._deciding:
            return  # decided already: what was committed is sent or marked stale by delivery
        task = self._running.pop(session, None)
        if task is not None:
            self._world.log.info("evaluation cancelled", session=session, why=why)
            task.cancel()

    def supersede(self, before: Session, why: str) -> None:
        """A turn that was being judged is over without a judgement; it still gets its final verdict (I21)."""
        now = self._world.sessions.get(before.id)
        if now is None or now.final == before.turn:
            return
        self._world.sessions.put(replace(now, final=before.turn))
        at = self._world.clock.now_ms()
        verdict = Verdict(before.id, before.task, before.turn, "skipped", at, reason=f"guard:{why}")
        self._world.spawn(self._record(verdict, before.directory), "record")

    async def _record(self, verdict: Verdict, directory: str) -> None:
        """Store a verdict nothing follows from, unless the turn has one; then its file."""
        self._persist.add(verdicts.add(verdict, directory, once=True))
        await self._persist.flush()
        self._filing.final(verdict, directory)

    def task(self, session: str) -> asyncio.Task[None] | None:
        """What judges this session right now."""
        return self._running.get(session)

    def running(self, instance: str) -> list[asyncio.Task[None]]:
        """The evaluations of this instance's sessions."""
        found = []
        for session, task in self._running.items():
            s = self._world.sessions.get(session)
            if s is not None and s.instance == instance:
                found.append(task)
        return found

    def foretell(self, session: str, case: Case, opinion: Opinion, ms: int) -> None:
        """Keep an opinion formed before the turn ended (``run`` mode), for the idle that follows."""
        self._foretold[session] = (case, opinion, ms)
        while len(self._foretold) > 100:
            self._foretold.pop(next(iter(self._foretold)))

    async def read(self, s: Session, instance: Instance) -> Transcript:
        """The host's messages: the truth. Over 256 KB they are parsed in a thread. Raises ``Unavailable``."""
        if instance.read is not None:
            return await instance.read(s)
        data = bytes(await self._instances.call(instance, ReadMessages(s.id), READ_S))

        def parse() -> Transcript:
            log = self._world.logger(s, debug=instance.debug)
            found = parse_transcript(
                data,
                is_ours=self._world.outbox.is_ours,
                session=s.id,
                on_skip=lambda why: log.debug("message skipped", why=why),
            )
            return replace(found, title=redact(found.title), directory=found.directory or s.directory)

        return await asyncio.to_thread(parse) if len(data) > BIG else parse()

    async def case(self, transcript: Transcript, s: Session) -> Case:
        """The frozen case of the transcript's last turn."""
        world = self._world

        def make() -> Case:
            project = world.gates.gate_lines(s.directory)
            return make_case(
                transcript,
                at=world.clock.now_ms(),
                nonce=world.nonce(),
                templates=world.templates(s.directory),
                open_items=s.open_items,
                project=project,
            )

        return await asyncio.to_thread(make)  # files of the project are read, and a transcript may be long

    async def form(self, case: Case, s: Session) -> tuple[Opinion, int]:
        """Ask the judge: (opinion, ms). Over the spend limit the rules judge, and the person is told once."""
        world, started = self._world, self._world.clock.monotonic()
        settings, limits = world.project(s.directory), world.limits(s)

        async def ask(prompt: Prompt, left_s: float) -> Reply:
            return await world.calls.ask(prompt, left_s, limits, lambda no: self.over_limit(s, no))

        flow = judge(case, second_look=settings.judge.second_look)
        longest = min(settings.judge.timeout_s, world.limits(s).wait_s)
        opinion = await drive(flow, ask, world.clock, float(longest))
        self.keep_dead_letters(s, opinion.bad)
        return opinion, int((world.clock.monotonic() - started) * 1000)

    def keep_dead_letters(self, s: Session, bad: tuple[BadForm, ...]) -> None:
        """Replies that broke the form are kept and counted (I18, I48)."""
        if not bad:
            return
        at = self._world.clock.now_ms()
        letters = [
            DeadLetter(at, b.purpose, s.id, b.provider, b.model, b.why[:300], redact(b.raw[:RAW_CHARS]))
            for b in bad
        ]
        for letter in letters:
            self._world.log.warning(
                "a reply broke the form", session=s.id, purpose=letter.purpose, why=letter.why
            )
        self._world.later(*dead_letters.add(letters))

    def over_limit(self, s: Session, no: Skip) -> None:
        """A cap said no: the person is told once a day."""
        told = (self._world.clock.now_ms() // DAY_MS, s.id if no.of_session else "")
        if told in self._told_limits:
            return
        self._told_limits = {t for t in self._told_limits if t[0] == told[0]} | {told}
        self._world.log.warning("spend limit", session=s.id, guard=no.guard, reason=no.reason)
        instance = self._instances.connected(s.instance)
        if instance is not None and self._world.limits(s).toasts:
            self._instances.tell(instance, ShowToast(s.id, no.tell, "warning"))

    async def store(self, decision: Decision, before: Session | None, instance: str) -> list[Stored] | None:
        """Commit state, verdict and orders in one transaction; None when that failed and nothing leaves.

        The decision's session was put before; ``before`` is what the counters go back to when this fails.
        """
        world, now = self._world, self._world.clock.now_ms()
        rows = [
            Stored(
                id=outbox.order_id(order.session, decision.verdict.turn, outbox.cause_of(order)),
                session=order.session,
                status="sent",
                instance=instance,
                created=now,
                order=order,
            )
            for order in decision.orders
        ]
        statements = [verdicts.add(decision.verdict, decision.session.directory)]
        if rows:
            statements.append(outbox.add(rows))
        try:
            await self._persist.commit(*statements)
        except Unavailable as e:
            world.degraded = str(e)
            world.log.warning(
                "decision not stored, nothing is sent", session=decision.session.id, error=str(e)
            )
            now_state = world.sessions.get(decision.session.id)
            if before is not None and now_state is not None:
                if now_state.task != before.task:
                    world.sessions.put(replace(now_state, final=decision.verdict.turn))
                    return None
                failed = settled(now_state, decision.verdict.turn, "error", "not_stored")
                world.sessions.put(taken_back(failed, before))
            return None
        return rows

    async def _run(self, session: str) -> None:
        me = asyncio.current_task()
        try:
            while True:
                self._again.discard(session)
                try:
                    await self._evaluate(session)
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

    async def _failed(self, session: str, why: str) -> None:
        """Judging broke: the turn ends in `error`, with the reason (I21)."""
        s = self._world.sessions.get(session)
        if s is None or s.phase != "judging":
            return
        self._world.sessions.put(settled(s, s.turn, "error", "not_judged"))
        at = self._world.clock.now_ms()
        await self._record(Verdict(s.id, s.task, s.turn, "error", at, reason=why[:300]), s.directory)

    async def _evaluate(self, session: str) -> None:
        world = self._world
        s = world.sessions.get(session)
        if s is None:
            return
        limits = world.limits(s)
        no = may_judge(s, world.clock.now_ms(), limits, children_busy=self.children_busy(session))
        if no is not None and no.final is None:
            self._skipped(s, no)
            return
        fallback = s.directory if s.host == "opencode" else ""  # whose sessions any of its processes can read
        instance = self._instances.connected(s.instance, fallback)
        if instance is None:
            world.log.info("not judged yet", session=session, reason="its host is not connected")
            return
        try:
            transcript = await self.read(s, instance)
        except (Unavailable, BadReply) as e:
            world.log.info("messages not read", session=session, error=str(e))
            await self._conclude_foretold(s, instance)
            await self._unread(session, instance, str(e))
            return
        noticed = world.project(s.directory).stuck.enabled
        loop = await worked_in_circles(transcript) if noticed else None
        now = world.sessions.get(session)
        if now is None:
            return
        s = reconcile(now, transcript)
        world.sessions.put(s)
        turn = transcript.turn
        if s.task != now.task:  # a message we never heard of: the first answer was about the task before
            no = may_judge(s, world.clock.now_ms(), limits)
        seen = may_judge_messages(s, transcript, limits) or may_go_on(s, loop)
        if seen is not None and (no is None or seen.final is None):
            no = seen
        if no is None and s.phase == "judging" and s.turn == (turn.id if turn else ""):
            no = self._once_more(s)
        if no is not None:
            await self._skip(s, turn, no, instance)
            return
        if turn is None:
            return
        await self._judge(s, turn, transcript, loop, instance)

    async def _judge(
        self, s: Session, turn: Message, transcript: Transcript, loop: Loop | None, instance: Instance
    ) -> None:
        world = self._world
        again = s.phase == "judging" and s.turn == turn.id
        s = judging(s, turn.id)
        s = replace(s, rejudged=turn.id if again else s.rejudged)
        world.sessions.put(s)
        await self._persist.flush()
        self._filing.judging(Judging(s.id, s.task, turn.id, world.clock.now_ms()), s.directory)
        foretold = self._foretold.pop(s.id, None)
        if foretold is not None and foretold[0].turn == turn.id and foretold[0].task == s.task:
            case, opinion, ms = foretold
        else:
            case = await self.case(transcript, s)
            opinion, ms = await self.form(case, s)
        now = world.sessions.get(s.id)
        no = may_commit(s, now) if now is not None else Skip("deleted", "the session is not known any more")
        if no is not None:
            if now is not None:
                await self._skip(now, turn, no, instance)
            return
        if now is not None:
            await self._decide(now, case, opinion, ms, instance, loop)

    async def _decide(
        self,
        s: Session,
        case: Case,
        opinion: Opinion,
        ms: int,
        instance: Instance,
        loop: Loop | None = None,
    ) -> None:
        """No await between the last guard and the decision; what follows is not cancelled half-way."""
        world = self._world
        limits = world.limits(s)
        if instance.id != s.instance:  # another process in this folder: it may be read, not prompted
            limits = replace(limits, observe=True, toasts=False)
        r = Round(s, case, limits, world.clock.now_ms(), JudgedBy("none", ms=ms))
        await self._finish(naming_loop(decide(r, opinion), loop), instance, case, opinion)

    async def _finish(
        self, decision: Decision, instance: Instance, case: Case | None = None, opinion: Opinion | None = None
    ) -> None:
        """The state moves on in this very step; commit, sending and filing follow on their own."""
        session = decision.session.id
        before = self._world.sessions.get(session)
        self._world.sessions.put(decision.session)
        self._deciding.add(session)
        work = self._world.spawn(self.finish(decision, before, instance, case, opinion), "finish")
        work.add_done_callback(lambda _: self._deciding.discard(session))
        await asyncio.shield(work)

    async def finish(
        self,
        decision: Decision,
        before: Session | None,
        instance: Instance,
        case: Case | None,
        opinion: Opinion | None,
    ) -> None:
        """Commit, then send, then file; a prompt's file waits for its outcome (the alias depends on it)."""
        world, s, verdict = self._world, decision.session, decision.verdict
        rows = await self.store(decision, before, instance.id)
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
            orders=[outbox.kind_of(o) for o in decision.orders],
        )
        if rows is None:
            failed = replace(verdict, state="error", will_prompt=False, reason="not_stored")
            self._filing.final(failed, s.directory)
            return
        if case is not None and opinion is not None:
            log.debug("case", evidence=[asdict(r) for r in case.evidence.rows], feedback=verdict.feedback)
            self._filing.case(case, opinion, decision)
        for row in rows:
            status = await self._delivery.dispatch(row)
            if isinstance(row.order, SendFeedback):
                verdict = replace(verdict, will_prompt=status == "done", at=world.clock.now_ms())
        self._filing.final(verdict, s.directory)
        self.on_verdict(verdict, verdict.will_prompt)

    async def _skip(self, s: Session, turn: Message | None, no: Skip, instance: Instance) -> None:
        """A guard's no: written when a turn ended by it, silent otherwise."""
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
        self._world.sessions.put(replace(s, recheck=False, phase="error", reason="messages not read"))
        at = self._world.clock.now_ms()
        turn = f"unread-{s.idle_at}"
        verdict = Verdict(s.id, s.task, turn, "error", at, reason=f"messages not read: {error[:300]}")
        await self._record(verdict, s.directory)

    async def _conclude_foretold(self, s: Session, instance: Instance) -> None:
        """A ``run`` host on its way out no longer answers; the gate read its last text."""
        foretold = self._foretold.pop(s.id, None)
        now = self._world.sessions.get(s.id)
        if foretold is None or now is None or foretold[0].task != now.task or now.final == foretold[0].turn:
            return
        case, opinion, ms = foretold
        started = judging(now, case.turn)
        no = may_commit(started, replace(started, aborted=now.aborted, busy=now.busy))
        if no is None:
            await self._decide(started, case, opinion, ms, instance)

    def _once_more(self, s: Session) -> Skip | None:
        """A row left ``judging`` by a crash is judged again once; twice looks like our fault."""
        if s.rejudged == s.turn:
            return Skip("crashed_twice", "judging this turn did not survive twice", final="unscored")
        return None

    def _skipped(self, s: Session, no: Skip) -> None:
        if not no.wait and s.recheck:
            s = replace(self._world.sessions.get(s.id) or s, recheck=False)
            self._world.sessions.put(s)
        self._world.log.info("skipped", session=s.id, guard=no.guard, reason=no.reason)
        at = self._world.clock.now_ms()
        entry = {"session": s.id, "directory": s.directory, "guard": no.guard, "reason": no.reason, "at": at}
        self._world.stream.publish("skip", entry)

    def children_busy(self, session: str) -> bool:
        """Sub-agents that work, in a host that is there: one that died leaves its children busy for ever."""
        return any(
            s.parent == session and s.busy and self._instances.connected(s.instance) is not None
            for s in self._world.sessions.in_memory()
        )
