"""A daemon that remembers lessons."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.learning.lessons.site import Site


@pytest.fixture
async def site(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Site]:
    """With the settings of the test, else those of its file."""
    found = Site(tmp_path, getattr(request, "param", getattr(request.module, "ON", None)))
    await found.start()
    yield found
    await found.sim.stop()
