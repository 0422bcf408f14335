"""Provider ``anthropic``: Anthropic's Messages API with the person's key, or any server with the same API.

Structured output goes by ``output_config``. The system prompt is marked for the prompt cache unless it has
the call's nonce, which differs from call to call. ``llm.sdk`` has the parts that SDKs share.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
from msgspec import Struct

from ..core.llm import Usage
from .sdk import Answer, Body, SdkProvider, encodable

if TYPE_CHECKING:
    from ..core.llm import Prompt
    from .faults import Asked

CUT = frozenset({"max_tokens", "model_context_window_exceeded", "pause_turn"})


class _Block(Struct):
    type: str
    text: str = ""


class _Thought(Struct):
    thinking_tokens: int = 0


class _Usage(Struct):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    output_tokens_details: _Thought | None = None


class _Why(Struct):
    explanation: str | None = None


class _Message(Struct):
    content: list[_Block]
    stop_reason: str | None = None
    stop_details: _Why | None = None
    model: str = ""
    usage: _Usage = msgspec.field(default_factory=_Usage)


_decode = msgspec.json.Decoder(_Message, strict=False).decode


class AnthropicProvider(SdkProvider):
    """See the module. ``base_url`` may end in ``/v1`` or not."""

    name = "anthropic"
    official = "https://api.anthropic.com"
    package, kind = "anthropic", "AsyncAnthropic"
    path, models_path = "/v1/messages", "/v1/models?limit=1000"
    wishes: ClassVar[tuple[tuple[str, re.Pattern[str]], ...]] = (
        ("output_config", re.compile(r"output_config|output_format|json_schema|[Ss]tructured.outputs?")),
        ("temperature", re.compile("temperature")),
        ("cache_control", re.compile("cache_control|prompt caching")),
    )

    def _address(self, url: str) -> str:
        return url.removesuffix("/v1")

    def _body(self, prompt: Prompt, model: str, max_tokens: int, used: frozenset[str]) -> Body:
        system: dict[str, object] = {"type": "text", "text": encodable(prompt.system)}
        if "cache_control" in used:
            system["cache_control"] = {"type": "ephemeral"}
        body: Body = {
            "model": model,
            "max_tokens": max_tokens,
            "messages": [{"role": "user", "content": encodable(prompt.text)}],
        }
        if prompt.system:
            body["system"] = [system]
        if "output_config" in used and prompt.schema is not None:
            body["output_config"] = {"format": {"type": "json_schema", "schema": _accepted(prompt.schema)}}
        if "temperature" in used:
            body["temperature"] = prompt.temperature
        return body

    def _used(self, prompt: Prompt, without: frozenset[str]) -> frozenset[str]:
        stable = bool(prompt.system) and not (prompt.nonce and prompt.nonce in prompt.system)
        wanted = {
            "output_config": prompt.schema is not None,
            "temperature": prompt.temperature is not None,
            "cache_control": stable,
        }
        return frozenset(wish for wish, wants in wanted.items() if wants) - without

    def _read(self, content: bytes, asked: Asked) -> Answer:
        del asked
        found = _decode(content)
        usage = found.usage
        read, written = usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0
        text = "".join(block.text for block in found.content if block.type == "text")
        why = found.stop_details.explanation if found.stop_details is not None else None
        return Answer(
            text=text,
            model=found.model,
            usage=Usage(usage.input_tokens + read + written, usage.output_tokens, cached=read),
            written=written,
            thought=usage.output_tokens_details.thinking_tokens if usage.output_tokens_details else 0,
            cut=found.stop_reason in CUT,
            refusal=(why or text) if found.stop_reason == "refusal" else None,
        )


def _accepted(schema: dict[str, object]) -> dict[str, Any]:
    """The schema in the API's form: objects are closed, and unsupported limits move into descriptions."""
    from anthropic import transform_schema

    return transform_schema(schema)
