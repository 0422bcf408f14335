"""Named faults, and what comes back when a fault is over."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from daemon import log
from daemon.core.verdict import Verdict
from daemon.engine.filing import RETRY_S
from daemon.engine.world import KEPT, Health
from daemon.store import verdicts
from daemon.testing import FakeClock, ScriptedLLM
from tests.support.hosts.opencode_sim import SimDaemon


@pytest.mark.shows("I48")
def test_faults_are_set_and_cleared_one_by_one() -> None:
    """A fault that ends does not end another one, and one that never began is no news."""
    health = Health(log.get("test"))
    health.failed("database", "the disk is full")
    health.failed("files in /a", "read-only")
    assert health.works("files in /b") is False
    assert health.works("database") is True
    assert health.works("database") is False
    assert (health.text, dict(health.faults)) == ("read-only", {"files in /a": "read-only"})


@pytest.mark.shows("I44")
def test_faults_are_bounded() -> None:
    """A thousand folders that can't be written are not a thousand entries."""
    health = Health(log.get("test"))
    for n in range(1_000):
        health.failed(f"files in /{n}", "read-only")
    assert len(health.faults) == KEPT


class Box:
    """A daemon whose files and whose database can each be made to fail."""

    def __init__(self, folder: Path) -> None:
        self.clock = FakeClock()
        self.sim = SimDaemon(folder, self.clock, ScriptedLLM())
        self.work = folder / "work"
        self.work.mkdir()
        self._lock: sqlite3.Connection | None = None

    @property
    def faults(self) -> set[str]:
        return set(self.sim.daemon.world.health.faults)

    def break_files(self) -> None:
        """Neither the folder of the workspace nor the one that stands in for it can be made."""
        for path in self._folders():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("in the way")

    def mend_files(self) -> None:
        for path in self._folders():
            path.unlink()

    def _folders(self) -> tuple[Path, Path]:
        return self.work / ".reflection", self.sim.daemon.paths.fallback_reflection(self.work)

    def break_database(self) -> None:
        """Verdicts can't be marked as filed."""
        self._sql("CREATE TRIGGER broken BEFORE UPDATE ON verdicts BEGIN SELECT raise(ABORT, 'broken'); END")

    def mend_database(self) -> None:
        self._sql("DROP TRIGGER broken")

    def _sql(self, statement: str) -> None:
        with sqlite3.connect(self.sim.daemon.paths.database) as c:
            c.execute(statement)
        c.close()

    async def file(self, session: str) -> None:
        """A turn of this session got its verdict."""
        engine = self.sim.daemon.engine
        verdict = Verdict(session, "task", "turn", "complete", self.clock.ms)
        engine.commit.add(verdicts.add(verdict, str(self.work)))
        await engine.effects.recorded(verdict, str(self.work))
        await engine.filing.drain()

    async def later(self, seconds: float) -> None:
        """Time passes, and the daemon looks after what failed."""
        self.clock.advance(seconds)
        self.sim.daemon.engine.filing.retry()
        await self.sim.daemon.engine.filing.drain()

    def filed(self, session: str) -> bool:
        return (self.work / ".reflection" / f"verdict_{session}.json").exists()

    def unfiled(self) -> set[str]:
        return {v.verdict.session for v in self.sim.daemon.world.verdicts.unfiled()}


@pytest.fixture
async def box(tmp_path: Path) -> Box:
    found = Box(tmp_path)
    await found.sim.start()
    await found.sim.settle()
    return found


@pytest.mark.shows("I21", "I48")
async def test_files_then_the_database_fail_and_come_back_in_that_order(box: Box) -> None:
    """Each fault ends on its own, and what was left unfiled is filed without a restart."""
    box.break_files()
    await box.file("first")
    assert box.faults == {f"files in {box.work}"}
    box.break_database()
    box.mend_files()
    await box.file("second")
    assert box.faults == {"database"}
    assert box.unfiled() == {"first", "second"}
    box.mend_database()
    await box.later(RETRY_S)
    assert box.unfiled() == set()
    assert (box.filed("first"), box.filed("second")) == (True, True)
    await box.sim.stop()


@pytest.mark.shows("I21", "I42")
async def test_files_that_can_be_written_again_are_written_though_nothing_else_happens(box: Box) -> None:
    """Nobody has to judge another turn, and nobody has to restart the daemon."""
    box.break_files()
    await box.file("first")
    await box.later(RETRY_S)
    assert box.faults == {f"files in {box.work}"}
    box.mend_files()
    await box.later(2 * RETRY_S)
    assert (box.filed("first"), box.faults, box.unfiled()) == (True, set(), set())
    await box.sim.stop()


@pytest.mark.shows("I48")
async def test_another_folder_that_works_ends_no_fault(box: Box, tmp_path: Path) -> None:
    """A project whose folder can be written says nothing about one whose folder can't."""
    box.break_files()
    await box.file("first")
    other = tmp_path / "other"
    other.mkdir()
    verdict = Verdict("elsewhere", "task", "turn", "complete", box.clock.ms)
    box.sim.daemon.engine.commit.add(verdicts.add(verdict, str(other)))
    await box.sim.daemon.engine.effects.recorded(verdict, str(other))
    await box.sim.daemon.engine.filing.drain()
    await asyncio.sleep(0)
    assert box.faults == {f"files in {box.work}"}
    await box.sim.stop()


@pytest.mark.shows("I48")
async def test_the_pause_begins_anew_after_a_fault(box: Box) -> None:
    """A fault that lasted for long does not make the next one wait as long."""
    box.break_files()
    await box.file("first")
    for n in range(8):
        await box.later(RETRY_S * 2**n)
    box.mend_files()
    await box.later(1_000)
    assert box.filed("first")
    box.work = box.work.parent / "another"
    box.work.mkdir()
    box.break_files()
    await box.file("second")
    box.mend_files()
    await box.later(RETRY_S)
    assert box.filed("second")
    await box.sim.stop()


@pytest.mark.shows("I43")
async def test_a_verdict_that_cannot_be_read_ends_nothing(box: Box) -> None:
    """One damaged row is told, and the others are filed."""
    await box.sim.daemon.db.commit(
        (
            "INSERT INTO verdicts (session, turn, task, directory, at, state, body) "
            "VALUES ('damaged', 'turn', 'task', '/p', 1, 'complete', ?)",
            [(b"{",)],
        )
    )
    box.break_files()
    await box.file("first")
    box.mend_files()
    await box.later(RETRY_S)
    assert box.filed("first")
    assert [v.verdict.session for v in box.sim.daemon.world.verdicts.newest()] == ["first"]
    await box.sim.stop()
