"""The engine's outside as protocols. ``app`` passes the implementations in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

from .errors import BadReply, ReflectdError, Unavailable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

    from .llm import Prompt, Reply

    Ask = Callable[[Prompt, float], Awaitable[Reply]]


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
    """A provider that keeps connections open."""

    async def warm(self) -> None:
        """Import and build the parts of the first call, in a thread; never fails."""

    async def close(self) -> None:
        """Close its connections."""


@runtime_checkable
class Chooses(Protocol):
    """A provider that must first look up the offered models."""

    async def chosen(self, prompt: Prompt) -> Prompt:
        """``prompt`` with the model that will be asked, for ``model_for`` and ``complete``.

        It looks the models up at most every few minutes, and briefly. When that fails, the usual model
        answers; this method never fails.
        """
        ...


class Provider(Protocol):
    """Answers prompts. Raises ``Unavailable`` when it cannot, ``Rejected`` when it must not."""

    @property
    def name(self) -> str:
        """The provider's name in settings, policies and the ledger."""
        ...

    def model_for(self, prompt: Prompt) -> tuple[str, str]:
        """Which model would answer: (vendor, model) as price tables name them, empty if unknown."""
        ...

    def most_tokens(self, prompt: Prompt) -> int:
        """How many tokens the answer may have. The spend limits reserve so many for it."""
        ...

    async def complete(self, prompt: Prompt, deadline_s: float) -> Reply:
        """One reply, or an error of ``core.errors``."""
        ...


Result = TypeVar("Result")


async def drive(flow: Generator[Prompt, Reply, Result], ask: Ask, clock: Clock, deadline_s: float) -> Result:
    """The flow's result. The flow decides what a failure means; ``deadline_s`` is for all its calls."""
    try:
        prompt = next(flow)
        end = clock.monotonic() + deadline_s
        while True:
            try:
                reply = await ask(prompt, end - clock.monotonic())
            except (Unavailable, BadReply) as e:
                prompt = flow.throw(e)
            except ReflectdError as e:
                prompt = flow.throw(Unavailable(str(e)))
            else:
                prompt = flow.send(reply)
    except StopIteration as stop:
        result: Result = stop.value
        return result
