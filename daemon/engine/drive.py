"""Drives a flow: sends it replies and throws failures into it. ``calls`` knows whom to ask."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import TYPE_CHECKING, TypeVar

from ..core.errors import BadReply, ReflectdError, Unavailable
from ..core.llm import Prompt, Reply

if TYPE_CHECKING:
    from ..core.ports import Clock

Result = TypeVar("Result")
Ask = Callable[[Prompt, float], Awaitable[Reply]]


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
