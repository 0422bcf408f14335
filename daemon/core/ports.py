"""What the engine needs from outside, as protocols. Implementations come in at ``app``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from daemon.core.llm import Prompt, Reply


class Clock(Protocol):
    """Time. Tests inject ``daemon.testing.FakeClock``."""

    def now_ms(self) -> int:
        """Wall clock, epoch ms."""
        ...

    def monotonic(self) -> float:
        """Seconds that never jump."""
        ...


@runtime_checkable
class Client(Protocol):
    """What a provider with connections of its own has besides."""

    async def warm(self) -> None:
        """Import and build what the first call needs, in a thread; never fails."""

    async def close(self) -> None:
        """End its connections."""


@runtime_checkable
class Chooses(Protocol):
    """What a provider has besides that must look which models are there before it can name one."""

    async def chosen(self, prompt: Prompt) -> Prompt:
        """``prompt`` as ``model_for`` and ``complete`` want it: with the model that will be asked.

        It looks at most every few minutes, and briefly; when that fails, the usual model is meant. Never
        fails itself.
        """
        ...


class Provider(Protocol):
    """Answers prompts. Raises ``Unavailable`` when it cannot, ``Rejected`` when it must not."""

    @property
    def name(self) -> str:
        """What settings, policies and the ledger call it."""
        ...

    def model_for(self, prompt: Prompt) -> tuple[str, str]:
        """Which model would answer: (vendor, model) as price tables name them, empty if unknown."""
        ...

    def most_tokens(self, prompt: Prompt) -> int:
        """How long the answer may get; what a cap reserves for it."""
        ...

    async def complete(self, prompt: Prompt, deadline_s: float) -> Reply:
        """One reply, or an error of ``core.errors``."""
        ...
