"""The real SDKs through our providers against a real model: the plumbing only, the model talks nonsense."""

from __future__ import annotations

from collections.abc import Iterator

import jsonschema
import pytest

from daemon.core.errors import BadReply, Unavailable
from daemon.core.llm import Prompt
from daemon.llm.anthropic import AnthropicProvider
from daemon.llm.openai_compat import OpenAIProvider
from daemon.llm.sdk import SdkProvider
from harness.machine.waiting import PATIENCE_S
from harness.models.local import CONTEXT, local_model

pytestmark = [pytest.mark.needs("local model"), pytest.mark.slow("a real model of 130 MB is loaded")]

LONG = PATIENCE_S
SYSTEM = "You are a helpful assistant. Answer briefly."
SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "complete": {"type": "boolean"},
        "severity": {"enum": ["NONE", "LOW", "HIGH"]},
        "why": {"type": "string", "maxLength": 40},
    },
    "required": ["complete", "severity", "why"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with local_model() as address:
        yield address


@pytest.fixture(params=[AnthropicProvider, OpenAIProvider])
def provider(request: pytest.FixtureRequest, url: str) -> SdkProvider:
    return request.param(api_key="", model="smollm2", base_url=url)


def ask(text: str, max_tokens: int = 100, schema: dict[str, object] | None = None) -> Prompt:
    return Prompt("judge", "judge", SYSTEM, text, max_tokens=max_tokens, schema=schema)


@pytest.mark.shows("I41")
async def test_answer(provider: SdkProvider) -> None:
    """An answer without a key, with its tokens counted and its price unknown."""
    reply = await provider.complete(ask("What is 2+2? Reply with the number only.", 200), LONG)
    await provider.close()
    assert reply.text.strip()
    assert reply.provider == provider.name
    assert reply.model == "smollm2"  # not the path of its file, which is the name it gives
    assert 10 < reply.usage.input < 100
    assert 0 < reply.usage.output <= 200
    assert reply.usage.cost is None


async def test_cut_off(provider: SdkProvider) -> None:
    """The limit is the server's too: an answer that needs more is cut off and told so."""
    with pytest.raises(BadReply, match="cut off at 5 tokens") as caught:
        await provider.complete(ask("Write a long story about a duck.", 5), LONG)
    await provider.close()
    assert caught.value.raw


async def test_structured(url: str) -> None:
    """OpenAI protocol: the server's grammar makes even this model answer with the wanted object."""
    provider = OpenAIProvider(api_key="", model="smollm2", base_url=url)
    reply = await provider.complete(ask("Is the work done?", 200, SCHEMA), LONG)
    await provider.close()
    jsonschema.validate(reply.data, SCHEMA)


async def test_too_much_for_it(provider: SdkProvider) -> None:
    """More text than the model's context is refused once and for all, not a fault that passes."""
    with pytest.raises(Unavailable) as caught:
        await provider.complete(ask("duck " * CONTEXT * 2), LONG)
    await provider.close()
    assert caught.value.fault == ""
    assert "400" in str(caught.value)
