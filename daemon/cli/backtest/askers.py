"""Who asks a model for a back-test: the daemon where one runs, else this process.

Both answer one prompt at a time. ``Ended`` says that nobody can be asked any more: a limit, or no answer.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from ...client import request
from ...core.errors import BadReply, Refused, Unavailable, UserError
from ...core.guards import Limits
from ...core.llm import Prompt, Reply
from ...core.ports import Client
from ...llm.prices import estimate_usd
from ...paths import find_socket

if TYPE_CHECKING:
    from pathlib import Path

    from ...core.ports import Provider
    from ...core.settings import Settings
    from ...paths import Paths

ROUTE: Final = "/v1/features/backtest/"
EXTRA_S: Final = 30.0  # the daemon answers before that, also when its model does not
SAMPLE: Final = Prompt("judge", "judge", "", "")


class Ended(Exception):
    """Nobody can be asked any more, and why."""


class Asker(Protocol):
    """``limits``: what a person is told of them. ``model``: its name, empty when the provider chooses."""

    name: str
    model: str
    limits: str

    def ask(self, prompt: Prompt) -> Reply:
        """One reply. Raises ``BadReply``, and ``Ended``."""
        ...

    def price(self, tokens_in: int, tokens_out: int) -> float | None:
        """USD, None when it is unknown."""
        ...

    def close(self) -> None:
        """Nothing is asked any more."""
        ...


def asker_of(name: str, settings: Settings, where: Paths, *, dry_run: bool = False) -> Asker:
    """Who asks this provider. Raises ``UserError`` when it is not set up; for a ``dry_run``, which asks
    nobody, only its prices are needed.
    """
    from ...keys import load_keys
    from ...llm.select import providers

    try:
        (provider,) = providers(name, settings, load_keys(os.environ, settings), folder=where.judge_folder)
    except UserError as e:
        if not dry_run:
            raise
        model = str(getattr(settings, name.replace("-", "_")).model)
        return _Nobody(name, model, str(e))
    socket = find_socket(where)
    try:
        told = request(socket, "GET", f"{ROUTE}limits?provider={name}")
    except Refused as e:
        if dry_run:
            return _Nobody(name, provider.model_for(SAMPLE)[1], str(e))
        raise UserError(
            f"the daemon that runs may not ask it: {e}; choose another provider, or stop it"
        ) from e
    except Unavailable:
        return _Here(name, provider, float(settings.judge.timeout_s))
    return _Daemon(name, provider, socket, told, float(settings.judge.timeout_s))


class _Nobody:
    """Knows the prices, and why nobody can be asked."""

    def __init__(self, name: str, model: str, why: str) -> None:
        self.name, self.model = name, model
        self.limits = f"nobody can be asked yet: {why}"

    def ask(self, prompt: Prompt) -> Reply:  # noqa: ARG002 - as the others
        """There is nobody."""
        raise Ended(self.limits)

    def price(self, tokens_in: int, tokens_out: int) -> float | None:
        """USD, None when it is unknown."""
        return estimate_usd(self.name, self.model, tokens_in, tokens_out)

    def close(self) -> None:
        """Nothing was opened."""


class _Daemon:
    """Asks through the daemon, which counts what it costs."""

    def __init__(
        self, name: str, provider: Provider, socket: Path, told: dict[str, Any], timeout_s: float
    ) -> None:
        self.name = name
        self._who = provider.model_for(SAMPLE)
        self.model = self._who[1]
        self._socket = socket
        self._timeout_s = timeout_s
        limits, spent = told["limits"], told["spent_24h"]
        self.limits = (
            f"it ends before {limits['usd']:.2f} USD (or {limits['tokens']:,} tokens at an unknown price) in "
            f"24 hours, with what judging cost: {spent['usd']:.2f} USD and {spent['tokens']:,} tokens so far"
        )

    def ask(self, prompt: Prompt) -> Reply:
        """One reply."""
        body = {
            "provider": self.name,
            "purpose": prompt.purpose,
            "system": prompt.system,
            "text": prompt.text,
            "nonce": prompt.nonce,
            "schema": prompt.schema,
            "max_tokens": prompt.max_tokens,
            "deadline_s": self._timeout_s,
        }
        try:
            found = request(self._socket, "POST", f"{ROUTE}ask", body, self._timeout_s + EXTRA_S)
        except (Unavailable, Refused) as e:
            raise Ended(str(e)) from e
        if found["state"] == "answered":
            return msgspec.convert(found["reply"], Reply)
        if found["state"] == "bad":
            raise BadReply(str(found["why"]), raw=str(found["raw"]))
        raise Ended(str(found["why"]))

    def price(self, tokens_in: int, tokens_out: int) -> float | None:
        """USD, None when it is unknown."""
        return estimate_usd(*self._who, tokens_in, tokens_out)

    def close(self) -> None:
        """The daemon keeps its client."""


class _Here:
    """Asks the provider from this process."""

    def __init__(self, name: str, provider: Provider, timeout_s: float) -> None:
        from ... import log
        from ...clock import SystemClock
        from ...engine.calls import Calls

        self.name = name
        self._who = provider.model_for(SAMPLE)
        self.model = self._who[1]
        self.limits = "none: no daemon runs, so nothing counts what this costs (`reflectd start`)"
        self._provider = provider
        self._timeout_s = timeout_s
        self._runner = asyncio.Runner()
        self._calls = Calls((provider,), SystemClock(), log.get("backtest"), lambda _: None)

    def ask(self, prompt: Prompt) -> Reply:
        """One reply."""
        mine = replace(prompt, purpose=f"asked.{prompt.purpose}", evidence=None)
        try:
            return self._runner.run(self._calls.ask(mine, self._timeout_s, Limits()))
        except Unavailable as e:
            raise Ended(str(e)) from e

    def price(self, tokens_in: int, tokens_out: int) -> float | None:
        """USD, None when it is unknown."""
        return estimate_usd(*self._who, tokens_in, tokens_out)

    def close(self) -> None:
        """Close the client."""
        if isinstance(self._provider, Client):
            self._runner.run(self._provider.close())
        self._runner.close()
