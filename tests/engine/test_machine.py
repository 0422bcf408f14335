"""The state machine: random interleavings of people, agents, results, compactions, restarts and clock jumps.

Whatever happens: no turn is prompted twice for the same cause, no busy, aborted or complete session is
prompted, attempts and nudges are never exceeded, and when things are quiet every turn that ended has its
final verdict.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections import Counter
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from daemon import config
from daemon.core.llm import Prompt, Reply
from daemon.store import outbox
from daemon.stuck.silence import MAX_NUDGES
from daemon.testing import FakeClock, ScriptedLLM, reply
from tests.support.hosts.opencode_sim import Prompted, SimDaemon, SimHost, bash

MAX_ATTEMPTS = 3
SESSIONS = ("ses_same_1", "ses_same_2", "ses_other")
CHILD = "ses_child"
T = TypeVar("T")

VERDICTS: dict[str, dict[str, Any] | str] = {
    "complete": {"complete": True, "severity": "NONE"},
    "incomplete": {
        "complete": False,
        "severity": "HIGH",
        "missing": [{"item": "x", "cites": "Do the thing"}],
    },
    "incomplete2": {
        "complete": False,
        "severity": "LOW",
        "missing": [{"item": "y", "cites": "Do the thing"}],
    },
    "blocker": {"complete": True, "severity": "BLOCKER", "feedback": "danger"},
    "awaiting": {"complete": False, "severity": "NONE"},
    "garbage": "no idea",
}
STUCK = {"reasons": "because", "stuck": True, "reason": "genuinely_stuck", "shouldNudge": True}
LOOKED: dict[str, dict[str, dict[str, Any] | str]] = {
    "stuck": {
        "yes": {**STUCK, "confidence": 0.9, "nudgeMessage": "Go on."},
        "no": {**STUCK, "stuck": False, "reason": "working", "shouldNudge": False, "confidence": 0.9},
        "garbage": "no idea",
    },
    "judge.second": {
        "yes": {"defended": False, "reasons": "No."},
        "no": {"defended": True, "reasons": "Yes."},
        "garbage": "no idea",
    },
    "compaction": {
        "yes": {"reason": "r", "action": "continue_task", "confidence": 0.9, "message": "Half is done."},
        "no": {"reason": "r", "action": "task_complete", "confidence": 0.9, "message": ""},
        "garbage": "no idea",
    },
}
TEXTS = ("All done.", "Now I will change the", "Still failing, trying again", "Which one do you want?")


class AnyLLM(ScriptedLLM):
    """Answers with the kind that is set; never runs dry."""

    kind: str = "complete"
    look: str = "yes"

    async def complete(self, prompt: Prompt, deadline_s: float) -> Reply:
        self.prompts.append(prompt)
        of_looks = LOOKED.get(prompt.purpose)
        found = VERDICTS[self.kind] if of_looks is None else of_looks[self.look]
        if self.hold is not None:
            await self.hold.wait()
        return reply(found, prompt.nonce, self.name)


class Machine(RuleBasedStateMachine):
    """One daemon (that dies and comes back), one host, four sessions."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = tempfile.TemporaryDirectory()
        root = Path(self.folder.name)
        self.workspace = root / "work"
        self.workspace.mkdir()
        self.clock = FakeClock()
        self.llm = AnyLLM()
        limits = config.from_text(f"[judge]\nmax_attempts = {MAX_ATTEMPTS}")
        self.sim = SimDaemon(root, self.clock, self.llm, limits)
        self.host = SimHost(str(self.workspace), self.clock)
        self.ended: set[tuple[str, str]] = set()
        self.counted = 0
        self.do(self._open())

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    async def _open(self) -> None:
        await self.host.connect(await self.sim.start())
        for name in SESSIONS:
            await self.host.create(name)
        await self.host.create(CHILD, parent=SESSIONS[0])

    @rule(session=st.sampled_from((*SESSIONS, CHILD)))
    def person_types(self, session: str) -> None:
        self.clock.advance(0.5)
        self.do(self.host.types(session))

    @rule(
        session=st.sampled_from((*SESSIONS, CHILD)),
        kind=st.sampled_from(sorted(VERDICTS)),
        text=st.sampled_from(TEXTS),
        tools=st.booleans(),
        idles=st.integers(1, 3),
        settle=st.booleans(),
    )
    def agent_ends(self, session: str, kind: str, text: str, tools: bool, idles: int, settle: bool) -> None:
        if not self.host.sessions[session].busy:
            return
        self.llm.kind = kind
        self.do(self._ends(session, text, tools, idles))
        if settle and self.llm.hold is None:
            self.do(self.sim.settle())

    async def _ends(self, session: str, text: str, tools: bool, idles: int) -> None:
        await self.host.answers(session, text, tools=(bash("ls"),) if tools else ())
        for _ in range(idles):
            await self.host.idle(session)

    @precondition(lambda self: self.llm.hold is None)
    @rule(
        session=st.sampled_from(SESSIONS),
        kind=st.sampled_from(("incomplete", "incomplete2", "blocker", "garbage")),
        text=st.sampled_from(TEXTS),
        ignores=st.booleans(),
        compacted=st.booleans(),
        passes=st.sampled_from((0, 2.5, 31, 31)),
    )
    def a_turn_that_is_not_done(
        self, session: str, kind: str, text: str, ignores: bool, compacted: bool, passes: float
    ) -> None:
        """What random steps seldom reach: work, a verdict, maybe a compaction, and what is then due."""
        self.llm.kind, self.llm.look = kind, "yes"
        self.host.ignores, self.host.mute = ignores, False
        self.do(self._turn(session, text, compacted, passes))

    async def _turn(self, session: str, text: str, compacted: bool, passes: float) -> None:
        task = self.host.human(session)
        if not task or session in self.host.aborted or (session, task) in self.ended:
            await self.host.types(session)
        await self.host.busy(session)
        await self._ends(session, text, tools=True, idles=1)
        await self.sim.settle()
        if compacted and not self.host.sessions[session].busy:
            await self.host.compacts(session)
        await self.sim.later(passes)

    @rule(session=st.sampled_from(SESSIONS))
    def person_escapes(self, session: str) -> None:
        self.do(self.host.escapes(session))

    @rule(session=st.sampled_from(SESSIONS))
    def host_fails(self, session: str) -> None:
        if self.host.sessions[session].busy:
            error = {"name": "APIError", "message": "overloaded"}
            self.do(self.host.works(session, "", finish="", error=error))

    @precondition(lambda self: self.llm.hold is None)
    @rule()
    def judge_becomes_slow(self) -> None:
        self.llm.hold = asyncio.Event()

    @precondition(lambda self: self.llm.hold is not None)
    @rule()
    def judge_answers(self) -> None:
        assert self.llm.hold is not None
        self.llm.hold.set()
        self.llm.hold = None
        self.do(self.sim.settle())

    @rule()
    def time_passes_a_little(self) -> None:
        self.clock.advance(20)
        self.do(asyncio.sleep(0.002))

    @precondition(lambda self: self.llm.hold is None)
    @rule(seconds=st.sampled_from((2.5, 31, 36, 61, 601)), look=st.sampled_from(("yes", "no", "garbage")))
    def time_passes_and_things_are_due(self, seconds: float, look: str) -> None:
        self.llm.look = look
        self.do(self.sim.later(seconds))

    @rule(seconds=st.sampled_from((3, 31)))
    def things_are_due_while_others_go_on(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.sim.daemon.engine.timers.wake()
        self.do(asyncio.sleep(0.002))

    @rule(session=st.sampled_from((*SESSIONS, CHILD)), times=st.integers(1, 6), failed=st.booleans())
    def agent_repeats_a_call(self, session: str, times: int, failed: bool) -> None:
        if self.host.sessions[session].busy:
            self.do(self._repeats(session, times, failed))

    async def _repeats(self, session: str, times: int, failed: bool) -> None:
        calls = tuple(bash("npm test", int(failed), "boom") for _ in range(times))
        await self.host.answers(session, "Again.", "tool-calls", calls)
        for _ in calls:
            await self.host.emit("tool", sessionID=session, tool="bash", call="c", result="r", failed=failed)

    @rule(
        session=st.sampled_from(SESSIONS), auto=st.booleans(), then=st.sampled_from(("", "goes on", "busy"))
    )
    def host_compacts(self, session: str, auto: bool, then: str) -> None:
        if self.host.human(session):
            work = self.host.compacts(session, auto=auto, continued=then == "goes on", busy=then == "busy")
            self.do(work)

    @rule(ignores=st.booleans())
    def agents_ignore_prompts(self, ignores: bool) -> None:
        self.host.ignores = ignores

    @rule(seconds=st.sampled_from((-7200, -61, 61, 7200)))
    def clock_jumps(self, seconds: int) -> None:
        self.clock.jump(seconds)
        self.do(self._woken())

    async def _woken(self) -> None:
        self.sim.daemon.engine.intake.recheck_all()
        await asyncio.sleep(0.001)

    @rule(drained=st.booleans())
    def daemon_restarts(self, drained: bool) -> None:
        self.do(self._restart(drained))

    async def _restart(self, drained: bool) -> None:
        await self.host.disconnect()
        await (self.sim.stop() if drained else self.sim.kill())
        await self.host.connect(await self.sim.start())

    @rule()
    def stream_breaks(self) -> None:
        self.do(self._reconnect())

    async def _reconnect(self) -> None:
        await self.host.disconnect()
        await self.host.connect(self.sim.daemon)

    @rule()
    def events_are_kept_back(self) -> None:
        self.host.mute = True

    @rule()
    def events_are_replayed(self) -> None:
        self.host.mute = False
        self.do(self.host.flush())

    @invariant()
    def never_prompted_wrongly(self) -> None:
        prompts = self.host.prompts
        assert not [p for p in prompts if p.was_busy], "a busy session was prompted (I10)"
        assert not [p for p in prompts if p.session == CHILD], "a child was prompted (I17)"
        turns = Counter((p.session, p.turn, self._cause(p)) for p in prompts)
        assert all(n == 1 for n in turns.values()), f"a turn was prompted twice: {turns}"
        tasks = Counter((p.session, p.task, p.kind) for p in prompts)
        most = {"feedback": MAX_ATTEMPTS, "nudge": MAX_NUDGES}
        assert all(n <= most[kind] for (_, _, kind), n in tasks.items()), f"too many prompts: {tasks}"

    def _cause(self, p: Prompted) -> str:
        stored = self.sim.daemon.world.outbox.get(p.order)
        assert stored is not None, "a prompt left before it was stored (I42)"
        return outbox.cause_of(stored.order)

    @invariant()
    def never_prompted_when_complete(self) -> None:
        new, self.counted = self.host.prompts[self.counted :], len(self.host.prompts)
        assert not [p for p in new if (p.session, p.task) in self.ended], "a complete task was prompted (I2)"
        rows = self.sim.daemon.db.read("SELECT session, task FROM verdicts WHERE state = 'complete'")
        self.ended |= set(rows)

    @invariant()
    def never_prompted_after_esc(self) -> None:
        assert not [p for p in self.host.prompts if p.aborted], "an aborted session was prompted (I11)"

    def teardown(self) -> None:
        try:
            self.do(self._quiet())
            self._every_turn_has_its_verdict()
            self.never_prompted_wrongly()
        finally:
            self.do(self._close())
            self.loop.close()
            self.folder.cleanup()

    async def _quiet(self) -> None:
        if self.llm.hold is not None:
            self.llm.hold.set()
            self.llm.hold = None
        self.llm.kind = "complete"
        self.host.mute = False
        await self._reconnect()
        await self.sim.settle()
        for name, s in self.host.sessions.items():
            if s.busy:
                await self.host.works(name)
                await self.sim.settle()

    async def _close(self) -> None:
        await self.host.disconnect()
        await self.sim.stop()

    def _every_turn_has_its_verdict(self) -> None:
        db = self.sim.daemon.db
        assert self.sim.daemon.world.outbox.open() == []
        for name in SESSIONS:
            s = self.sim.daemon.world.sessions.get(name)
            turn = self.host.last(name)
            asked = bool(self.host.human(name))
            if s is None or not turn or not asked:
                continue
            assert s.phase != "judging", f"{name} is judged for ever"
            ended = self.host.sessions[name].messages[-1]["info"]
            if ended["role"] == "assistant" and ended.get("finish") == "stop" and not ended.get("summary"):
                rows = db.read("SELECT state FROM verdicts WHERE session = ? AND turn = ?", (name, turn))
                over = not rows and (name, self.host.human(name)) in self.ended  # guard 4: nothing is written
                assert over or len(rows) == 1, f"{name} {turn}: {rows} ({s.phase}, {s.reason})"
            path = self.workspace / ".reflection" / f"verdict_{name}.json"
            if path.exists():
                assert json.loads(path.read_text())["state"] != "judging", "I21: a final verdict"


TestMachine = Machine.TestCase
TestMachine.__doc__ = (
    """I1-I5, I8, I10-I14, I16, I17, I21, I32, I42: whatever the order, each promise is kept."""
)
TestMachine.settings = settings(stateful_step_count=30, suppress_health_check=list(HealthCheck))
