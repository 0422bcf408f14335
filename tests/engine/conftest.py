"""The small world, running, and a daemon alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from daemon.testing import FakeClock, ScriptedLLM
from tests.support.hosts.opencode_sim import SimDaemon
from tests.support.hosts.world import World


@pytest.fixture
async def w(tmp_path: Path) -> AsyncIterator[World]:
    """A daemon with a model, and an opencode that serves."""
    async with World(tmp_path).running() as world:
        yield world


@pytest.fixture
async def sim(tmp_path: Path) -> AsyncIterator[SimDaemon]:
    """A daemon with a model, which has done what it does at its start; a folder `work`."""
    (tmp_path / "work").mkdir()
    found = SimDaemon(tmp_path, FakeClock(), ScriptedLLM())
    await found.start()
    await found.settle()
    yield found
    await found.stop()
