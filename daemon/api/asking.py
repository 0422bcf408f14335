"""Asks models for the library: the providers of the person's settings, the daemon's policy, no daemon.

Providers, retries, pauses and redaction are the daemon's (``engine.calls``). Calls are not counted: no ledger
is at hand. A limit of 0 on spending forbids them all the same.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from logging import ERROR, WARNING
from random import Random
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from ..core.errors import UserError
from ..core.ports import Clock
from ..store.ledger import Entry

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable
    from pathlib import Path

    from ..core.llm import Prompt, Reply
    from ..core.ports import Provider
    from ..core.question import Answer, Question, R
    from ..core.settings import Settings
    from ..log import Logger

# What the library says and asks with: lines on stderr, and the prompts as the daemon has them.

LINES: Final = 50  # of what was left out, in one call


def template(name: str, asking: Asking) -> str:
    """The text of a prompt: the person's own, else the one that comes with reflectd. Raises ``UserError``."""
    from ..files.prompts import SLOTS, SUFFIX

    wanted = name.removesuffix(SUFFIX)
    if wanted not in SLOTS:
        raise UserError(f"there is no prompt {ascii(name)[:80]}; there are {', '.join(SLOTS)}")
    return prompt_texts(asking)[wanted]


def prompt_texts(asking: Asking, project: str = "", state_dir: Path | None = None) -> Mapping[str, str]:
    """The texts of all prompts, by name: those that the person trusts in this project, their own, else those
    that come with reflectd. ``state_dir``: None is the one of the environment.
    """
    from ..clock import SystemClock
    from ..files.prompts import TRUST_FILE, Prompts, Trust
    from ..paths import config_file, resolve, shipped

    state_dir = state_dir or resolve(asking.env, connects=False).state_dir
    trust = Trust(state_dir / TRUST_FILE, SystemClock())
    found = Prompts(shipped("prompts"), config_file(asking.env).parent / "prompts", trust).templates(project)
    tell(found.problems)
    return found.texts


def nonce() -> str:
    """A marker that fences the data of one call."""
    import secrets

    return secrets.token_hex(8)


def tell(lines: Iterable[str]) -> None:
    """Lines on stderr, without control characters."""
    told = list(lines)
    shown = told[:LINES] + ([f"and {len(told) - LINES} more"] if len(told) > LINES else [])
    for line in shown:
        sys.stderr.write(f"reflectd: {''.join(c if c.isprintable() else '?' for c in line)}\n")


T = TypeVar("T")
DEADLINE_S: Final = 300.0  # for one answer with all its attempts
ASKED: Final = ("anthropic", "openai", "claude-cli")
"""Who can answer outside a host, best first. The fixed rules can't."""


class Asking(Struct):
    """Whom the library asks. ``env``: where settings and keys come from. ``sleep``, ``random``: the pauses
    between attempts. ``clock``: for the deadline; None is the machine's. ``made``: the calls that were made,
    each as a row of the ledger. ``judges``: where judges were chosen for hosts that lend no model, these are
    asked instead of every API that has a key.
    """

    env: Mapping[str, str] = field(default_factory=lambda: os.environ)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Random = field(default_factory=Random)
    clock: Clock | None = None
    made: list[Entry] = field(default_factory=list)
    judges: bool = False

    async def ask(self, question: Question[R]) -> Answer[R]:
        """The answer to one question, with the prompts in force outside every project. Raises as ``run``."""
        from ..core.question import ask

        texts = prompt_texts(self)
        return await self.run(ask(replace(question, nonce=question.nonce or nonce()), texts))

    async def run(self, flow: Generator[Prompt, Reply, T]) -> T:
        """The flow's result. Raises ``UserError`` when nobody is set up to be asked, or the settings are
        wrong.
        """
        from ..clock import SystemClock
        from ..core.guards import Limits
        from ..core.ports import Client, drive
        from ..engine.calls import Calls

        providers = self.providers()
        clock = self.clock or SystemClock()
        calls = Calls(
            providers,
            clock,
            _logger(ERROR if self.judges else WARNING),
            self.made.append,
            sleep=self.sleep,
            random=self.random,
        )
        limits = Limits()

        async def ask(prompt: Prompt, left_s: float) -> Reply:
            return await calls.ask(prompt, left_s, limits)

        try:
            return await drive(flow, ask, clock, DEADLINE_S)
        finally:
            for provider in providers:
                if isinstance(provider, Client):
                    await provider.close()

    def settings(self) -> Settings:
        """The person's settings. Raises ``UserError``."""
        from .. import config, paths

        return config.load(self.env, paths.config_file(self.env))

    def providers(self) -> tuple[Provider, ...]:
        """The providers that ``judge.provider`` allows here; for ``auto`` and ``host`` all APIs that have a
        key. Raises ``UserError``.
        """
        from .. import paths
        from ..core.policy import Judging, in_force
        from ..keys import load_keys
        from ..llm.select import providers, there

        settings = self.settings()
        keys = load_keys(self.env, settings)
        chosen = settings.judge.provider
        if chosen == "offline" or in_force(settings, Judging("", chosen, (chosen,))).asked == ("offline",):
            raise UserError("no model may be asked: judge.provider is offline, or a limit on spending is 0")
        folder = paths.resolve(self.env, state_dir=settings.daemon.state_dir, connects=False).judge_folder
        own = {provider for _, provider in settings.judge.own.values()} if self.judges else set()
        every = tuple(name for name in ASKED if name in own) or ASKED[:2]
        wanted = every if chosen in {"auto", "host"} else (chosen,)
        usable = there(settings, keys, self.env) if chosen in {"auto", "host"} else frozenset(wanted)
        found = [
            p for name in wanted if name in usable for p in providers(name, settings, keys, folder=folder)
        ]
        if not found:
            raise UserError("no model can be asked here: set ANTHROPIC_API_KEY or anthropic.key_file")
        return tuple(found)


def _logger(level: int) -> Logger:
    """A logger that writes to stderr, whatever the program that uses the library does with its stdout."""
    import structlog

    found: Logger = structlog.wrap_logger(
        structlog.PrintLogger(sys.stderr),
        processors=[structlog.processors.add_log_level, structlog.processors.LogfmtRenderer()],
        wrapper_class=structlog.make_filtering_bound_logger(level),
    )
    return found
