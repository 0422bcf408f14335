"""A server on loopback that speaks the wire format of OpenAI's embeddings."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from harness.models.api_servers import LlmServer, llm_server


@pytest.fixture
async def server() -> AsyncIterator[LlmServer]:
    async with llm_server() as running:
        yield running
        assert running.left == 0, "a scripted step was not asked for"
