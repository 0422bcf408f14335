"""A model on loopback that answers with the nonce of the call, and the settings that lead to it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from typing import Any

from aiohttp import web

from harness.models.api_servers import MODEL, Says, Step, Wire


@dataclass(frozen=True)
class Answers(Step):
    """These fields, with the nonce; ``asked`` has what was sent."""

    fields: dict[str, Any]
    says: Says = field(default_factory=Says)
    asked: list[dict[str, Any]] = field(default_factory=list)

    async def play(self, wire: Wire, body: dict[str, Any], request: web.Request) -> web.StreamResponse:
        nonce = re.search(r"The marker of this data is (\w+)\.", json.dumps(body))
        assert nonce is not None, body
        self.asked.append(body)
        text = json.dumps({"nonce": nonce[1], **self.fields})
        return await replace(self.says, text=text).play(wire, body, request)


def local_model(url: str) -> dict[str, str]:
    """The settings of a person who runs that model."""
    return {
        "REFLECTD_JUDGE_PROVIDER": "openai",
        "REFLECTD_OPENAI_BASE_URL": f"{url}/v1",
        "REFLECTD_OPENAI_MODEL": "local-model",
    }


def with_a_key(url: str) -> dict[str, str]:
    """The settings of a person who has a key for Anthropic's API."""
    return {
        "ANTHROPIC_API_KEY": "sk-ant-api03-1234567890abcdefghijKLMNOP",
        "ANTHROPIC_BASE_URL": url,
        "REFLECTD_ANTHROPIC_MODEL": MODEL["anthropic"],
        "REFLECTD_JUDGE_PROVIDER": "auto",
    }
