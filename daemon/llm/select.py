"""Makes the providers that settings and keys allow. Only modules of those are imported."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..core.errors import UserError
from ..core.fast import lists_of
from ..core.policy import AUTO
from ..keys import TOKEN
from .host import HostProvider
from .offline import OfflineProvider

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ..core.ports import Provider
    from ..core.settings import Api, Settings
    from ..keys import Access, Keys
    from .host import Look, Run

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
    """The providers for a value of ``judge.provider``, best first. For ``auto``: all that are set up, fixed
    rules last.

    ``run`` asks a host and ``look`` tells which models it offers; both are None outside the daemon.
    ``folder``: where a program runs, outside every project. Raises ``UserError`` when the named provider
    isn't set up.
    """
    if name == "claude-cli":
        return (_claude(settings, keys, folder),)
    if name != "auto":
        found = _one(name, settings, keys, run, look)
        if found is None:
            raise UserError(MISSING[name])
        return (found,)
    all_of = (_one(n, settings, keys, run, look) for n in AUTO)
    return tuple(p for p in all_of if p is not None)


def there(settings: Settings, keys: Keys, env: Mapping[str, str]) -> frozenset[str]:
    """The names of the providers that are set up. Nobody is asked."""
    from .claude_cli import find

    missing = {name: not _usable(keys.apis[name], api) for name, api in settings.apis.items()}
    missing["claude-cli"] = find(settings.claude_cli.path, env) is None
    return frozenset(n for n in (*AUTO, "claude-cli") if not missing.get(n, False))


def _usable(access: Access, api: Api) -> bool:
    """Says whether there is a key, or the address of a server that may need none."""
    return bool(access.key or (api.base_url and not api.key_env))


def estimate_usd(vendor: str, model: str, tokens_in: int, tokens_out: int) -> float | None:
    """The likely cost of a call in USD, None if unknown. The first use loads the table of prices."""
    from . import prices

    return prices.estimate_usd(vendor, model, tokens_in, tokens_out)


def _claude(settings: Settings, keys: Keys, folder: Path | None) -> Provider:
    """Made only when it is named in the settings: using the person's own login must be their choice."""
    from .claude_cli import ClaudeCliProvider, find

    program = find(settings.claude_cli.path, os.environ)
    if program is None or folder is None:
        raise UserError(MISSING["claude-cli"])
    env = {**os.environ, TOKEN: keys.claude.key} if keys.claude.key else None
    return ClaudeCliProvider(program, settings.claude_cli.model, folder, env)


def _one(name: str, settings: Settings, keys: Keys, run: Run | None, look: Look | None) -> Provider | None:
    fast = lists_of(settings.fast)
    if name == "host":
        return HostProvider(run, settings.judge.model, lists=fast, look=look) if run is not None else None
    if name == "anthropic":
        a, access = settings.anthropic, keys.anthropic
        if not _usable(access, a):
            return None
        from .anthropic import AnthropicProvider

        url = access.base_url or a.base_url
        return AnthropicProvider(
            api_key=access.key, model=a.model, base_url=url, fast_models=fast["anthropic"]
        )
    if name == "openai":
        o, access = settings.openai, keys.openai
        if not _usable(access, o):
            return None
        from .openai_compat import OpenAIProvider

        url = access.base_url or o.base_url
        return OpenAIProvider(api_key=access.key, model=o.model, base_url=url, fast_models=fast["openai"])
    if name == "offline":
        return OfflineProvider()
    raise ValueError(f"no provider is called {name!r}")
