"""Which providers there are: from settings and keys to objects. Only those that are set up are imported."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from daemon.core.errors import UserError
from daemon.core.fast import lists_of
from daemon.llm.host import HostProvider
from daemon.llm.offline import OfflineProvider

if TYPE_CHECKING:
    from pathlib import Path

    from daemon.config import Keys
    from daemon.core.ports import Provider
    from daemon.core.settings import Settings
    from daemon.llm.host import Look, Run

MISSING = {
    "host": "the judge `host` needs a running agent; choose anthropic, openai or offline here",
    "anthropic": "no key for Anthropic: set ANTHROPIC_API_KEY or anthropic.key_file",
    "claude-cli": "there is no Claude Code: install it, or set claude_cli.path to the program",
    "openai": "no key for OpenAI: set OPENAI_API_KEY or openai.key_file, or openai.base_url",
}


def providers(
    name: str,
    settings: Settings,
    keys: Keys,
    run: Run | None = None,
    look: Look | None = None,
    *,
    folder: Path | None = None,
) -> tuple[Provider, ...]:
    """The providers of ``judge.provider``, best first: one, or all that are set up for ``auto`` (rules last).

    ``run`` is how a host is asked and ``look`` how one learns what it offers, None outside the daemon.
    ``folder`` is where a program is run, outside every project. Raises ``UserError`` for one that isn't set
    up.
    """
    if name == "claude-cli":
        return (_claude(settings, folder),)
    if name != "auto":
        found = _one(name, settings, keys, run, look)
        if found is None:
            raise UserError(MISSING[name])
        return (found,)
    all_of = (_one(n, settings, keys, run, look) for n in ("host", "anthropic", "openai", "offline"))
    return tuple(p for p in all_of if p is not None)


def estimate_usd(vendor: str, model: str, tokens_in: int, tokens_out: int) -> float | None:
    """The likely cost of a call in USD, None if the price is unknown. The table loads on first use."""
    from daemon.llm import prices

    return prices.estimate_usd(vendor, model, tokens_in, tokens_out)


def _claude(settings: Settings, folder: Path | None) -> Provider:
    """Only by its own name: it uses the person's login, which nobody is to find out by surprise."""
    from daemon.llm.claude_cli import ClaudeCliProvider, find

    program = find(settings.claude_cli.path, os.environ)
    if program is None or folder is None:
        raise UserError(MISSING["claude-cli"])
    return ClaudeCliProvider(program, settings.claude_cli.model, folder)


def _one(name: str, settings: Settings, keys: Keys, run: Run | None, look: Look | None) -> Provider | None:
    fast = lists_of(settings.fast)
    if name == "host":
        return HostProvider(run, settings.judge.model, lists=fast, look=look) if run is not None else None
    if name == "anthropic":
        if not keys.anthropic and not settings.anthropic.base_url:
            return None
        from daemon.llm.anthropic import AnthropicProvider

        a = settings.anthropic
        return AnthropicProvider(
            api_key=keys.anthropic, model=a.model, base_url=a.base_url, fast_models=fast["anthropic"]
        )
    if name == "openai":
        o = settings.openai
        if not keys.openai and not o.base_url:
            return None
        from daemon.llm.openai_compat import OpenAIProvider

        return OpenAIProvider(
            api_key=keys.openai, model=o.model, base_url=o.base_url, fast_models=fast["openai"]
        )
    return OfflineProvider()
