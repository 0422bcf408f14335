"""What the engine needs from outside, as protocols. Implementations come in at ``app``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

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


class Provider(Protocol):
    """Answers prompts. Raises ``Unavailable`` when it cannot, ``Rejected`` when it must not."""

    name: str

    def model_for(self, prompt: Prompt) -> tuple[str, str]:
        """Which model would answer: (vendor, model) as price tables name them, empty if unknown."""
        ...

    async def complete(self, prompt: Prompt, deadline_s: float) -> Reply:
        """One reply, or an error of ``core.errors``."""
        ...
