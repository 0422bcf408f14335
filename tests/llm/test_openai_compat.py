"""What only chat completions have. (What all providers with an SDK share is in ``test_sdk``.)"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from daemon.core.errors import BadReply
from harness.models.api_servers import (
    Fails,
    LlmServer,
    Says,
    Sends,
)

if TYPE_CHECKING:
    pass
from tests.llm.samples import DATA, LONG, SCHEMA, make, prompt
from tests.llm.test_sdk import fault


async def test_json_mode_between_schema_and_nothing(server: LlmServer) -> None:
    """OpenAI protocol: strict schema, then any JSON object, then only the prompt's words."""
    provider = make("openai", server.url)
    no_schema = Fails(400, "response_format: json_schema is not supported")
    server.script(no_schema, Says(json.dumps(DATA)))
    assert (await provider.complete(prompt(schema=SCHEMA), LONG)).data == DATA
    server.script(Fails(500, "Only 'text' is supported as response_format"), Says(json.dumps(DATA)))
    assert (await provider.complete(prompt(schema=SCHEMA), LONG)).data is None
    await provider.close()
    forms = [g.body.get("response_format", {}).get("type") for g in server.got]
    assert forms == ["json_schema", "json_object", "json_object", None]


async def test_limit_under_its_other_name(server: LlmServer) -> None:
    """OpenAI protocol: ``max_tokens`` refused by a reasoning model is sent as ``max_completion_tokens``."""
    provider = make("openai", server.url)
    told = "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."
    server.script(Fails(400, told), Says())
    await provider.complete(prompt(max_tokens=77), LONG)
    await provider.close()
    first, second = server.got
    assert (first.body.get("max_tokens"), second.body.get("max_completion_tokens")) == (77, 77)
    assert "max_tokens" not in second.body


async def test_error_inside_a_success(server: LlmServer) -> None:
    """OpenAI protocol: a gateway's 200 that holds the error of the model behind it."""
    provider = make("openai", server.url)
    inner = await fault(provider, server, Sends(b'{"error": {"code": 429, "message": "upstream is busy"}}'))
    named = await fault(provider, server, Sends(b'{"error": {"code": "boom", "message": "broken"}}'))
    await provider.close()
    assert (inner.fault, named.fault) == ("rate_limit", "server")
    assert "upstream is busy" in str(inner)


async def test_no_choice_is_empty(server: LlmServer) -> None:
    """OpenAI protocol: an answer without choices is empty."""
    provider = make("openai", server.url)
    server.script(Sends(b'{"choices": [], "model": "m"}'))
    with pytest.raises(BadReply, match="empty"):
        await provider.complete(prompt(), LONG)
    await provider.close()
