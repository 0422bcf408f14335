"""A model server on loopback that the library asks with the person's own settings."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from harness.models.api_servers import MODEL, LlmServer, llm_server


@pytest.fixture
async def server() -> AsyncIterator[LlmServer]:
    async with llm_server() as running:
        yield running
        assert running.left == 0, "a scripted step was not asked for"


@pytest.fixture
def env(server: LlmServer, tmp_path: Path) -> dict[str, str]:
    """The environment of a person with a key for Anthropic."""
    return {
        "HOME": str(tmp_path),
        "ANTHROPIC_API_KEY": "sk-ant-api03-1234567890abcdefghijKLMNOP",
        "ANTHROPIC_BASE_URL": server.url,
        "REFLECTD_ANTHROPIC_MODEL": MODEL["anthropic"],
    }
