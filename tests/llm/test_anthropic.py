"""What only the Messages API has. (What all providers with an SDK share is in ``test_sdk``.)"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.models.api_servers import (
    LlmServer,
    Says,
)

if TYPE_CHECKING:
    pass
from tests.llm.samples import LONG, make, prompt


async def test_cache_mark_only_on_a_stable_prompt(server: LlmServer) -> None:
    """A system prompt with the call's nonce is never the same twice: marking it would only cost."""
    provider = make("anthropic", server.url)
    server.script(Says(), Says())
    await provider.complete(prompt(system="Rules.", nonce="n1"), LONG)
    await provider.complete(prompt(system="Rules, fenced by n1.", nonce="n1"), LONG)
    await provider.close()
    stable, unstable = (g.body["system"][0] for g in server.got)
    assert stable["cache_control"] == {"type": "ephemeral"}
    assert "cache_control" not in unstable
