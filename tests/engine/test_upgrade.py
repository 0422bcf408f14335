"""When a daemon leaves for the program on the disk. In `tests/cli/control/test_restart.py` real daemons do
it.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from daemon import config, paths
from daemon.app import Daemon
from daemon.engine.upgrade import AGAIN_S, PATIENCE_S, QUIET_S, SETTLED_S, Upgrade
from daemon.testing import FakeClock
from harness.machine.waiting import PATIENCE_S as TEST_PATIENCE_S


class Machine:
    """A daemon's parts, and a package that a test replaces. ``idle``: nothing is done or written."""

    def __init__(self, folder: Path) -> None:
        self.clock = FakeClock()
        self.daemon = Daemon(config.from_text(), paths.resolve({"HOME": str(folder)}), clock=self.clock)
        self.file = folder / "__init__.py"
        self.file.write_text("1")
        self.idle = True
        self.upgrade = self.upgrading(leaves=True)

    def upgrading(self, *, leaves: bool) -> Upgrade:
        intake = self.daemon.engine.intake
        return Upgrade(self.daemon.world, intake, lambda: self.idle, leaves=leaves, file=self.file)

    def replaced(self, text: str) -> None:
        """An installer puts another file there. Its time is that of the machine, to which the clock goes."""
        new = self.file.with_suffix(".new")
        new.write_text(text)
        new.replace(self.file)
        self.clock.ms = int(self.file.stat().st_ctime * 1000) + 1

    async def look(self) -> bool:
        """One look, and what it began; whether the daemon is to leave."""
        self.upgrade.sweep()
        async with asyncio.timeout(TEST_PATIENCE_S):
            while tasks := list(self.daemon._tasks):
                await asyncio.wait(tasks)
        return self.upgrade.wanted.is_set()

    async def settled(self) -> None:
        """Look until the program was tried."""
        assert not await self.look()
        self.clock.advance(SETTLED_S)
        assert not await self.look()


@pytest.fixture
async def machine() -> AsyncIterator[Machine]:
    with tempfile.TemporaryDirectory(prefix="rd-") as folder:
        found = Machine(Path(folder))
        yield found
        found.daemon.db.close()


async def test_it_leaves_when_nothing_is_under_way(machine: Machine) -> None:
    """Not while something is done, not while a host waits for an answer, not right after an event."""
    assert not await machine.look()
    machine.clock.advance(2 * PATIENCE_S)
    assert not await machine.look(), "nothing was replaced"
    machine.replaced("2")
    await machine.settled()
    assert machine.upgrade.status() == {"waiting": True, "problem": ""}
    intake = machine.daemon.engine.intake
    machine.idle = False
    machine.clock.advance(QUIET_S)
    assert not await machine.look()
    machine.idle, intake.asked = True, 1
    assert not await machine.look()
    intake.asked, intake.last_event = 0, machine.clock.monotonic()
    assert not await machine.look()
    machine.clock.advance(QUIET_S)
    assert await machine.look()


async def test_it_stays_where_nobody_starts_the_next_one(machine: Machine) -> None:
    """A daemon that a person started keeps its flags and keys, and says what to do."""
    machine.upgrade = machine.upgrading(leaves=False)
    machine.replaced("2")
    await machine.settled()
    machine.clock.advance(2 * PATIENCE_S)
    assert not await machine.look()
    status = machine.upgrade.status()
    assert (status["waiting"], "nobody would start" in status["problem"]) == (False, True)


async def test_agents_that_never_pause_hold_it_up_for_ten_minutes(machine: Machine) -> None:
    """Then an event does not count any more; a judgement always does."""
    machine.replaced("2")
    await machine.settled()
    machine.clock.advance(PATIENCE_S)
    machine.daemon.engine.intake.last_event = machine.clock.monotonic()
    machine.idle = False
    assert not await machine.look()
    machine.idle = True
    assert await machine.look()


async def test_an_installer_at_work_is_waited_for(machine: Machine) -> None:
    """A file of the package that just changed, and one that is replaced again, put the trial off."""
    machine.replaced("2")
    assert not await machine.look()
    assert not await machine.look()
    assert machine.upgrade.status()["waiting"] is False
    machine.replaced("3")
    await machine.settled()
    assert machine.upgrade.status()["waiting"] is True


async def test_settings_that_the_new_program_refuses(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would end at once with them, so it does not take over; tried again later, it does."""
    monkeypatch.setenv("REFLECTD_JUDGE_MODE", "loud")
    machine.replaced("2")
    await machine.settled()
    assert "judge.mode" in machine.upgrade.status()["problem"]
    monkeypatch.delenv("REFLECTD_JUDGE_MODE")
    assert not await machine.look()
    assert machine.upgrade.status()["problem"]
    machine.clock.advance(AGAIN_S)
    await machine.look()
    assert machine.upgrade.status() == {"waiting": True, "problem": ""}
    assert await machine.look()
