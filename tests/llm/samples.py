"""Questions and answers for the tests of this folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from daemon.core.fast import lists_of
from daemon.core.llm import Prompt
from daemon.core.settings import Fast
from daemon.core.transcript import Model
from daemon.llm.anthropic import AnthropicProvider
from daemon.llm.openai_compat import OpenAIProvider
from daemon.llm.sdk import SdkProvider
from harness.machine.waiting import PATIENCE_S
from harness.models.api_servers import MODEL, Wire

QUICK = Prompt("stuck", "fast", "Is it stuck?", "The evidence.", session="ses_a")
BIG = Model("anthropic", "claude-opus-5")
LISTS = lists_of(Fast())
KEY = "sk-ant-api03-1234567890abcdefghijKLMNOP"
LONG = PATIENCE_S  # a deadline that no test waits for
SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {"complete": {"type": "boolean"}, "why": {"type": "string"}},
    "required": ["complete", "why"],
    "additionalProperties": False,
}
DATA = {"complete": True, "why": "seen"}


def prompt(**changes: Any) -> Prompt:
    """A prompt as the judge makes it."""
    asked: dict[str, Any] = {"purpose": "judge", "tier": "judge", "system": "Judge.", "text": "The evidence."}
    return Prompt(**{**asked, **changes})


def make(wire: Wire, url: str, **changes: Any) -> SdkProvider:
    """A provider for ``wire`` that asks ``url``."""
    kind = AnthropicProvider if wire == "anthropic" else OpenAIProvider
    return kind(**{"api_key": KEY, "model": MODEL[wire], "base_url": url, **changes})


def program(folder: Path) -> Path:
    folder.mkdir(parents=True)
    made = folder / "claude"
    made.write_text("#!/bin/sh\n", "utf-8")
    made.chmod(0o755)
    return made
