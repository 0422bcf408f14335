"""Provider ``openai``: chat completions of OpenAI, or of any server with the same API (Ollama, llama.cpp, LM
Studio, gateways). Another server than OpenAI's needs no key.

Structured output goes by ``response_format``: a strict JSON Schema; if the server refuses that, any JSON
object; if it refuses that too, only the prompt asks for the object. ``llm.sdk`` has the parts that SDKs
share.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, ClassVar

import msgspec
from msgspec import Struct

from ..core.llm import Usage
from . import faults
from .sdk import Answer, Body, SdkProvider, encodable, with_v1

if TYPE_CHECKING:
    from ..core.llm import Prompt
    from .faults import Asked

_NOT_KNOWN = r"[^\n]{0,120}(?:support|permitted|unrecogni[sz]ed|unknown|unexpected|deprecated)"


class _Cached(Struct):
    cached_tokens: int | None = None


class _Thought(Struct):
    reasoning_tokens: int | None = None


class _Usage(Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: _Cached | None = None
    completion_tokens_details: _Thought | None = None


class _Message(Struct):
    content: str | None = None
    refusal: str | None = None


class _Choice(Struct):
    message: _Message
    finish_reason: str | None = None


class _Completion(Struct):
    choices: list[_Choice]
    model: str = ""
    usage: _Usage | None = None


class _Error(Struct):
    code: int | str | None = None


class _Failed(Struct):
    error: _Error


_decode = msgspec.json.Decoder(_Completion, strict=False).decode
_decode_failed = msgspec.json.Decoder(_Failed).decode


class OpenAIProvider(SdkProvider):
    """See the module. A ``base_url`` without a path gets ``/v1``."""

    name = "openai"
    official = "https://api.openai.com/v1"
    package, kind = "openai", "AsyncOpenAI"
    path, models_path = "/chat/completions", "/models"
    wishes: ClassVar[tuple[tuple[str, re.Pattern[str]], ...]] = (
        ("json_schema", re.compile(r"response_format|json_schema|[Ss]tructured.outputs?")),
        ("json_object", re.compile(r"response_format|json_object|[Jj][Ss][Oo][Nn].mode")),
        ("temperature", re.compile("temperature")),
        ("max_tokens", re.compile("max_tokens" + _NOT_KNOWN)),
        ("max_completion_tokens", re.compile("max_completion_tokens" + _NOT_KNOWN)),
    )

    def _address(self, url: str) -> str:
        return with_v1(url)

    def _body(self, prompt: Prompt, model: str, max_tokens: int, used: frozenset[str]) -> Body:
        system = [{"role": "system", "content": encodable(prompt.system)}] if prompt.system else []
        without = self._without.get(model, frozenset())
        body: Body = {
            "model": model,
            "messages": [*system, {"role": "user", "content": encodable(prompt.text)}],
            self._limit(without): max_tokens,
        }
        if "json_schema" in used:
            name = re.sub(r"[^A-Za-z0-9_-]", "_", prompt.purpose)[:64] or "reply"
            form = {"name": name, "strict": True, "schema": prompt.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        elif "json_object" in used:
            body["response_format"] = {"type": "json_object"}
        if "temperature" in used:
            body["temperature"] = prompt.temperature
        return body

    def _limit(self, without: frozenset[str]) -> str:
        """The parameter's name. OpenAI's newer models refuse ``max_tokens``; other servers may ignore its new
        name, and then there would be no limit.
        """
        first = "max_tokens" if self._url else "max_completion_tokens"
        other = "max_completion_tokens" if self._url else "max_tokens"
        return other if first in without else first

    def _used(self, prompt: Prompt, without: frozenset[str]) -> frozenset[str]:
        form = next((f for f in ("json_schema", "json_object") if f not in without), "")
        used = {form} if form and prompt.schema is not None else set()
        if prompt.temperature is not None and "temperature" not in without:
            used.add("temperature")
        if not without & {"max_tokens", "max_completion_tokens"}:  # changed at most once
            used.add(self._limit(without))
        return frozenset(used)

    def _read(self, content: bytes, asked: Asked) -> Answer:
        try:
            found = _decode(content)
        except msgspec.ValidationError:
            self._raise_inner(content, asked)
            raise
        if not found.choices:
            return Answer("", found.model, Usage())
        usage = found.usage or _Usage()
        choice = found.choices[0]
        text = choice.message.content or ""
        filtered = choice.finish_reason == "content_filter"
        details, thought = usage.prompt_tokens_details, usage.completion_tokens_details
        return Answer(
            text=text,
            model=found.model,
            usage=Usage(
                usage.prompt_tokens,
                usage.completion_tokens,
                cached=(details.cached_tokens or 0) if details is not None else 0,
            ),
            thought=(thought.reasoning_tokens or 0) if thought is not None else 0,
            cut=choice.finish_reason == "length",
            refusal=choice.message.refusal or ("a content filter" if filtered else None),
        )

    @staticmethod
    def _raise_inner(content: bytes, asked: Asked) -> None:
        """Raise the failure that a gateway reports in a 200, with the status of the server behind it as the
        code.
        """
        try:
            code = _decode_failed(content).error.code
        except msgspec.MsgspecError:
            return
        status = code if isinstance(code, int) and 400 <= code < 600 else 502
        raise faults.of_status(asked, status, {}, content.decode("utf-8", "replace"), time.time())
