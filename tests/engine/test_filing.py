"""Verdict files when many wait at once: whose comes first, and in which order."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from daemon.core.verdict import Verdict
from daemon.files.verdict import Judging
from daemon.testing import FakeClock, ScriptedLLM
from tests.support.sim import SimDaemon

BACKLOG = 300


@pytest.fixture
async def sim(tmp_path: Path) -> AsyncIterator[SimDaemon]:
    (tmp_path / "work").mkdir()
    found = SimDaemon(tmp_path, FakeClock(), ScriptedLLM())
    await found.start()
    yield found
    await found.stop()


def said(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


async def test_a_judged_turn_passes_those_that_failed(sim: SimDaemon, tmp_path: Path) -> None:
    """I21, I22: a host that dies with hundreds of open turns does not hold up another session's file."""
    work, filing = tmp_path / "work", sim.daemon.filing
    for n in range(BACKLOG):
        filing.final(Verdict(f"ses_{n:05d}", "t", "u", "error", 1, reason="its host went away"), str(work))
    filing.judging(Judging("mine", "t", "u", 2), str(work))
    mine = work / ".reflection" / "verdict_mine.json"
    while not mine.exists():
        await asyncio.sleep(0.001)
    assert len(list(mine.parent.glob("verdict_ses_?????.json"))) < BACKLOG // 2
    await filing.drain()
    assert len(list(mine.parent.glob("verdict_ses_?????.json"))) == BACKLOG
    assert not filing.waiting
    assert sim.daemon.world.verdicts.unfiled() == []


async def test_the_newest_of_a_session_is_what_stays(sim: SimDaemon, tmp_path: Path) -> None:
    """I21: of what waits for one session the newest is written, whatever its lane, and nothing after it."""
    work, filing = tmp_path / "work", sim.daemon.filing
    for n in range(50):
        filing.judging(Judging("mine", "t", f"turn{n}", 2 * n + 1), str(work))
        state = "skipped" if n % 2 else "complete"
        filing.final(Verdict("mine", "t", f"turn{n}", state, 2 * n + 2), str(work))
        if n % 7 == 0:
            await asyncio.sleep(0.002)
    await filing.drain()
    assert said(work / ".reflection" / "verdict_mine.json")["turn"] == "turn49"
