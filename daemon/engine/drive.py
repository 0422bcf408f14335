"""Drive a flow against a provider: the only place for deadline, redaction and ledger (DESIGN §3)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from daemon.core.errors import ReflectdError, Unavailable
from daemon.core.redact import redact
from daemon.store import ledger

if TYPE_CHECKING:
    from collections.abc import Generator

    from daemon.core.llm import Prompt, Reply
    from daemon.core.ports import Provider
    from daemon.engine.world import World

Result = TypeVar("Result")


async def drive(
    flow: Generator[Prompt, Reply, Result], world: World, provider: Provider, deadline_s: float
) -> Result:
    """The flow's result. Failures of the provider are thrown into the flow, which decides; a cancelled
    call leaves a ledger row that says so.
    """
    try:
        prompt = next(flow)
        end = world.clock.monotonic() + deadline_s
        while True:
            try:
                reply = await _call(prompt, world, provider, end - world.clock.monotonic())
            except Unavailable as e:
                prompt = flow.throw(e)
            except ReflectdError as e:
                prompt = flow.throw(Unavailable(f"{provider.name}: {e}"))
            else:
                prompt = flow.send(reply)
    except StopIteration as stop:
        result: Result = stop.value
        return result


async def _call(prompt: Prompt, world: World, provider: Provider, left_s: float) -> Reply:
    """One call with its ledger row."""
    if left_s <= 0:
        raise Unavailable("the deadline for judging is over")
    started = world.clock.monotonic()
    sent = replace(prompt, text=redact(prompt.text))
    outcome, reply = "cancelled", None
    try:
        async with asyncio.timeout(left_s):
            reply = await provider.complete(sent, left_s)
        outcome = "ok"
    except TimeoutError:
        outcome = "timeout"
        raise Unavailable(f"{provider.name} gave no answer in {left_s:.0f} s") from None
    except Unavailable as e:
        outcome = f"error: {e}"[:300]
        raise
    finally:
        ms = int((world.clock.monotonic() - started) * 1000)
        entry = ledger.Entry(
            at=world.clock.now_ms(),
            purpose=prompt.purpose,
            session=prompt.session,
            provider=provider.name,
            model=reply.model if reply else "",
            input=reply.usage.input if reply else 0,
            output=reply.usage.output if reply else 0,
            cost=reply.usage.cost if reply else None,
            ms=ms,
            outcome=outcome,
        )
        world.later(ledger.add(entry))
    return reply
