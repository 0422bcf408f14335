"""A daemon that learns, and an opencode in its project."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from daemon.engine import offering
from tests.learning.playbook.site import Site
from tests.support.hosts.opencode_sim import SimHost


@pytest.fixture(autouse=True)
def no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine reads slowly."""
    monkeypatch.setattr(offering, "READY_S", 60.0)


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    found = Site(tmp_path)
    await found.start()
    yield found
    await found.sim.stop()


@pytest.fixture
async def host(site: Site) -> AsyncIterator[SimHost]:
    """An opencode in the project."""
    found = SimHost(str(site.project), site.clock)
    await found.connect(site.sim.daemon)
    yield found
    await found.disconnect()
