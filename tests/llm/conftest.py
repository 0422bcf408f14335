"""Servers that speak the providers' real formats, and a clock that a test moves."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from daemon.testing import FakeClock
from harness.models.api_servers import LlmServer, Wire, llm_server


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def server() -> AsyncIterator[LlmServer]:
    async with llm_server() as running:
        yield running
        assert running.left == 0, "a scripted step was not asked for"


@pytest.fixture(params=["anthropic", "openai"])
def wire(request: pytest.FixtureRequest) -> Wire:
    return request.param
