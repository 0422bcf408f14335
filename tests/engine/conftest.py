"""The small world, running."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.hosts.world import World


@pytest.fixture
async def w(tmp_path: Path) -> AsyncIterator[World]:
    """A daemon with a model, and an opencode that serves."""
    async with World(tmp_path).running() as world:
        yield world
