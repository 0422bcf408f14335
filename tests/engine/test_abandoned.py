"""What a crash left under way ends by itself when the host does not come back."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from daemon.core.session import Session, judging
from daemon.engine.recover import AT_ONCE, AWAY_S, LOST, PAGE
from daemon.files.verdict import Judging
from daemon.testing import FakeClock, ScriptedLLM
from tests.support.hosts.opencode_sim import SimDaemon, SimHost


class Box:
    """A daemon with sessions that it knows from before."""

    def __init__(self, folder: Path) -> None:
        self.clock = FakeClock()
        self.llm = ScriptedLLM()
        self.sim = SimDaemon(folder, self.clock, self.llm)
        self.work = folder / "work"
        self.work.mkdir()

    async def left(self, s: Session) -> Session:
        """This session was stored so, and then the daemon was killed."""
        s = replace(s, directory=str(self.work))
        self.sim.daemon.world.sessions.put(s)
        await self.sim.daemon.engine.commit.flush()
        if s.phase == "judging":
            told = Judging(s.id, s.task, s.turn, self.clock.ms)
            self.sim.daemon.engine.filing.begun(told, s.directory)
            await self.sim.daemon.engine.filing.drain()
        return s

    async def restart(self) -> None:
        await self.sim.kill()
        await self.sim.start()

    async def look(self, seconds: float = AWAY_S) -> None:
        """As the daemon does it every few seconds: once now, and once later."""
        self.sim.daemon.engine.recover.sweep()
        self.clock.advance(seconds)
        self.sim.daemon.engine.recover.sweep()
        await self.sim.settle()

    def file(self, session: str) -> dict[str, Any]:
        path = self.work / ".reflection" / f"verdict_{session}.json"
        found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        return found

    def session(self, session: str) -> Session:
        found = self.sim.daemon.world.sessions.get(session)
        assert found is not None
        return found


@pytest.fixture
async def box(tmp_path: Path) -> AsyncIterator[Box]:
    found = Box(tmp_path)
    await found.sim.start()
    yield found
    await found.sim.stop()


JUDGING = judging(Session(id="s1", task="t1", host="claude-code", instance="claude-code-s1"), "turn1")


@pytest.mark.shows("I21", "I22")
async def test_a_turn_left_judging_ends_when_its_host_does_not_come_back(box: Box) -> None:
    """Killed while judging, and the agent is gone too: the file does not say `judging` for ever."""
    await box.left(JUDGING)
    await box.restart()
    assert box.file("s1")["state"] == "judging"
    await box.look(AWAY_S / 2)
    assert box.file("s1")["state"] == "judging", "its host may still come back"
    await box.look()
    assert (box.file("s1")["state"], box.file("s1")["reason"]) == ("error", LOST)
    assert (box.session("s1").phase, box.session("s1").final) == ("error", "turn1")
    await box.look()
    rows = box.sim.daemon.db.read("SELECT turn, state, filed FROM verdicts")
    assert rows == [("turn1", "error", 1)], "one verdict, and its file"


@pytest.mark.shows("I21")
async def test_a_dead_session_is_not_busy(box: Box) -> None:
    """Killed while the agent worked, and the agent is gone too: `status` does not list it as busy."""
    await box.left(Session(id="s1", task="t1", busy=True, instance="gone"))
    await box.restart()
    await box.look()
    assert [s["busy"] for s in box.sim.daemon.status.sessions(10)] == [False]
    assert box.file("s1") == {}, "no turn ended"


@pytest.mark.parametrize("busy", [True, False])
async def test_a_question_ends_with_the_host_that_asked_it(box: Box, *, busy: bool) -> None:
    """Nobody can answer it any more, so the session waits for nobody: neither in the list nor in a line."""
    await box.left(Session(id="s1", task="t1", busy=busy, waiting=("per_1",), instance="gone"))
    await box.restart()
    assert [s["asks"] for s in box.sim.daemon.status.sessions(10)] == [1]
    await box.look()
    assert [(s["asks"], s["busy"]) for s in box.sim.daemon.status.sessions(10)] == [(0, False)]
    assert box.sim.daemon.status.line("", str(box.work))["waiting"] == 0


@pytest.mark.shows("I21")
async def test_an_idle_that_nobody_can_judge_any_more_has_its_verdict(box: Box) -> None:
    """Claude Code tells of an idle once; opencode's is judged when it comes back, as long as that is worth
    it.
    """
    idle = Session(id="s1", task="t1", host="claude-code", instance="gone", idle_at=5, recheck=True)
    await box.left(idle)
    await box.left(replace(idle, id="s2", host="opencode", idle_at=box.clock.ms))
    await box.restart()
    await box.look()
    assert box.file("s1")["state"] == "error"
    assert box.file("s2") == {}
    assert box.session("s2").recheck
    await box.look(601)
    assert box.file("s2")["state"] == "error"
    assert not box.session("s2").recheck


@pytest.mark.shows("I29", "I35")
async def test_sessions_of_a_host_that_is_there_are_left_alone(box: Box) -> None:
    """An agent may work for hours without a word."""
    await box.restart()
    host = SimHost(str(box.work), box.clock)
    await host.connect(box.sim.daemon)
    await host.types("s1")
    await box.sim.settle()
    await box.look(10_000)
    assert box.session("s1").busy
    await host.disconnect()


@pytest.mark.shows("I21")
async def test_work_that_went_on_and_died_leaves_no_turn_judging(box: Box) -> None:
    """The agent went on while its turn was judged, and then its host died."""
    await box.left(JUDGING)
    await box.left(replace(JUDGING, phase="open", busy=True))
    await box.restart()
    assert box.file("s1")["state"] == "judging"
    await box.look()
    assert (box.file("s1")["state"], box.file("s1")["reason"]) == ("skipped", "guard:host_gone")


@pytest.mark.shows("I40")
@pytest.mark.parametrize("quiet", [{"off": True}, {"judge": True}, {"parent": "s0"}])
async def test_a_session_that_is_never_judged_gets_no_verdict(box: Box, quiet: dict[str, Any]) -> None:
    """Also not one that says that it was not judged."""
    s = Session(id="s1", task="t1", host="claude-code", instance="gone", idle_at=5, recheck=True)
    await box.left(replace(s, **quiet))
    await box.restart()
    await box.look()
    assert box.file("s1") == {}
    assert not box.session("s1").recheck


@pytest.mark.shows("I21")
async def test_an_idle_that_was_overlooked_is_judged(box: Box) -> None:
    """Where a crash left more behind than a connection looks at, each turn is judged in the end. What waits
    for the person is left alone.
    """
    box.llm.add({"complete": True, "severity": "NONE"})
    await box.restart()
    host = SimHost(str(box.work), box.clock)
    await host.connect(box.sim.daemon)
    for session in ("s1", "s2"):
        await host.types(session)
        await host.answers(session)
        host.sessions[session].busy = False
    await host.flush()
    overlooked = replace(box.session("s1"), busy=False, recheck=True, idle_at=box.clock.ms)
    await box.left(overlooked)
    await box.left(replace(overlooked, id="s2", waiting=("asked",)))
    await box.look(AWAY_S - 1)
    assert box.file("s1") == {}
    await box.look(1)
    assert box.file("s1")["state"] == "complete"
    assert box.file("s2") == {}
    await host.disconnect()


@pytest.mark.shows("I21")
async def test_a_turn_left_judging_is_judged_once_more_when_its_host_is_there(box: Box) -> None:
    """Also one that a connection did not look at. When its messages can't be read then either, that is its
    verdict.
    """
    await box.restart()
    host = SimHost(str(box.work), box.clock)
    await host.connect(box.sim.daemon)
    for session in ("s1", "s2"):
        await host.types(session)
        await host.answers(session)
        host.sessions[session].busy = False
        await box.left(judging(replace(box.session(session), busy=False), host.last(session)))
    box.llm.add({"complete": True, "severity": "NONE"})
    host.fails_to = "read"
    await box.look()
    assert [box.file(s)["state"] for s in ("s1", "s2")] == ["judging", "judging"]
    host.fails_to = ""
    await box.left(replace(box.session("s2"), id="s3"))
    host.sessions["s3"] = host.sessions["s2"]
    await box.look()
    states = {s: (box.file(s)["state"], box.file(s)["reason"]) for s in ("s1", "s2", "s3")}
    assert states == {"s1": ("error", LOST), "s2": ("error", LOST), "s3": ("complete", "judged")}
    await host.disconnect()


async def test_overlooked_turns_are_judged_a_few_at_a_time(box: Box) -> None:
    """Their host is not asked for the messages of hundreds of sessions at once, which it could not give in
    time.
    """
    await box.restart()
    host = SimHost(str(box.work), box.clock)
    await host.connect(box.sim.daemon)
    await box.sim.settle()
    for n in range(AT_ONCE + 5):
        await box.left(Session(id=f"s{n:02d}", task="t", instance="host-1", recheck=True, idle_at=1))
    abandoned, schedule = box.sim.daemon.engine.recover, box.sim.daemon.engine.schedule
    abandoned.sweep()
    box.clock.advance(AWAY_S)
    abandoned.sweep()
    asked = [n for n in range(AT_ONCE + 5) if schedule.task(f"s{n:02d}") is not None]
    assert len(asked) == AT_ONCE
    await box.sim.settle()
    abandoned.sweep()
    asked = [n for n in range(AT_ONCE + 5) if schedule.task(f"s{n:02d}") is not None]
    assert len(asked) == 5
    await box.sim.settle()
    await host.disconnect()


@pytest.mark.shows("I44")
async def test_thousands_of_open_sessions_are_looked_at_page_by_page(box: Box) -> None:
    """Each look costs the same, and in the end each session had its turn."""
    many = 3 * PAGE + 7
    for n in range(many):
        left = Session(id=f"s{n:04d}", directory=str(box.work), busy=True, instance="gone")
        box.sim.daemon.world.sessions.put(left)
    await box.sim.daemon.engine.commit.flush()
    await box.restart()
    abandoned = box.sim.daemon.engine.recover
    for _ in range(4):
        abandoned.sweep()
    assert len(abandoned._since) == many
    box.clock.advance(AWAY_S)
    for _ in range(6):
        abandoned.sweep()
    await box.sim.settle()
    assert box.sim.daemon.db.read("SELECT count(*) FROM sessions WHERE open = 1") == [(0,)]
