"""The state machine: random interleavings of people, agents, results, restarts and clock jumps.

Whatever happens: no turn is prompted twice, no busy or aborted session is prompted, the attempts are never
exceeded, and when things are quiet every turn that ended has its final verdict.
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
from daemon.testing import FakeClock, ScriptedLLM, reply
from tests.support.sim import SimDaemon, SimHost, bash

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


class AnyLLM(ScriptedLLM):
    """Answers with the kind that is set; never runs dry."""

    kind: str = "complete"

    async def complete(self, prompt: Prompt, deadline_s: float) -> Reply:
        self.prompts.append(prompt)
        kind = self.kind
        if self.hold is not None:
            await self.hold.wait()
        return reply(VERDICTS[kind], prompt.nonce, self.name)


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
        tools=st.booleans(),
        idles=st.integers(1, 3),
        settle=st.booleans(),
    )
    def agent_ends(self, session: str, kind: str, tools: bool, idles: int, settle: bool) -> None:
        if not self.host.sessions[session].busy:
            return
        self.llm.kind = kind
        self.do(self._ends(session, tools, idles))
        if settle and self.llm.hold is None:
            self.do(self.sim.settle())

    async def _ends(self, session: str, tools: bool, idles: int) -> None:
        await self.host.answers(session, tools=(bash("ls"),) if tools else ())
        for _ in range(idles):
            await self.host.idle(session)

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

    @rule(seconds=st.sampled_from((-7200, -61, 61, 7200)))
    def clock_jumps(self, seconds: int) -> None:
        self.clock.jump(seconds)
        self.do(self._woken())

    async def _woken(self) -> None:
        self.sim.daemon.intake.recheck_all()
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
        turns = Counter((p.session, p.turn) for p in prompts)
        assert all(n == 1 for n in turns.values()), f"a turn was prompted twice: {turns}"
        tasks = Counter((p.session, p.task) for p in prompts)
        assert all(n <= MAX_ATTEMPTS for n in tasks.values()), f"too many attempts: {tasks}"

    @invariant()
    def never_prompted_after_esc(self) -> None:
        if not self.host.mute:
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
            if ended["role"] == "assistant" and ended.get("finish") == "stop":
                rows = db.read("SELECT state FROM verdicts WHERE session = ? AND turn = ?", (name, turn))
                assert len(rows) == 1, f"{name} {turn}: {rows} ({s.phase}, {s.reason})"
            path = self.workspace / ".reflection" / f"verdict_{name}.json"
            if path.exists():
                assert json.loads(path.read_text())["state"] != "judging", "I21: a final verdict"


TestMachine = Machine.TestCase
TestMachine.__doc__ = """I1-I5, I10-I14, I16, I17, I21, I42: random interleavings keep every promise."""
TestMachine.settings = settings(
    max_examples=40, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
