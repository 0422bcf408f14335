"""The tier ``fast``: which model each provider asks, with the real SDKs and lists as the APIs send them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace

from daemon.config import from_text
from daemon.core.errors import Unavailable
from daemon.core.llm import Prompt
from daemon.keys import Keys
from daemon.llm.anthropic import AnthropicProvider
from daemon.llm.offered import FAILED_S, KEEP_S, FastOfApi, Fresh
from daemon.llm.openai_compat import OpenAIProvider
from daemon.llm.sdk import HEADERS, SdkProvider
from daemon.llm.select import providers
from daemon.testing import FakeClock
from harness.models.api_servers import (
    MODEL,
    Cuts,
    Fails,
    Hangs,
    Lists,
    LlmServer,
    Says,
    Sends,
    Step,
    Wire,
)
from tests.llm.samples import KEY, LONG, QUICK


@pytest.fixture
async def provider(wire: Wire, server: LlmServer, clock: FakeClock) -> AsyncIterator[SdkProvider]:
    """One that wants ``tiny`` before ``small``."""
    kind = AnthropicProvider if wire == "anthropic" else OpenAIProvider
    made = kind(
        api_key=KEY,
        model=MODEL[wire],
        base_url=server.url,
        fast_models=("tiny", "small"),
        monotonic=clock.monotonic,
    )
    await made.warm()  # or the SDK's import counts into the time for listing models
    yield made
    await made.close()


async def ask(provider: SdkProvider, prompt: Prompt = QUICK) -> str:
    """The model that answered."""
    return (await provider.complete(await provider.chosen(prompt), LONG)).model


async def test_the_list_is_looked_at_every_five_minutes(
    provider: SdkProvider, server: LlmServer, clock: FakeClock
) -> None:
    """Seed, "Caching Strategy": 5 minutes."""
    server.models = Lists(("small",))
    server.script(*[Says()] * 3)
    assert await ask(provider) == "small"
    server.models = Lists(("tiny", "small"))
    clock.advance(KEEP_S - 1)
    assert await ask(provider) == "small"
    clock.advance(1)
    assert await ask(provider) == "tiny"
    assert len(server.listed) == 2
    assert KEEP_S == 300


@pytest.mark.parametrize("tier", ["judge", "reflect"])
async def test_no_other_tier_is_touched(
    tier: Any, wire: Wire, provider: SdkProvider, server: LlmServer
) -> None:
    """A fast model never sends feedback alone; the judge has the model of the settings."""
    server.models = Lists(("tiny",))
    server.script(Says(), Says())
    assert await ask(provider) == "tiny"
    assert await ask(provider, replace(QUICK, tier=tier)) == MODEL[wire]
    assert len(server.listed) == 1


@pytest.mark.parametrize(
    "step",
    [
        None,
        Lists(()),
        Lists(("qwen3:8b",)),
        Fails(401),
        Fails(500),
        Sends(b"<html>", kind="text/html"),
        Sends(b'{"data": [{"name": "tiny"}]}'),
        Sends(b'{"models": []}'),
        Sends(b"[" * 9_000),
        Cuts(),
    ],
)
async def test_a_server_of_ones_own_without_a_list(
    step: Step | None, wire: Wire, provider: SdkProvider, server: LlmServer
) -> None:
    """A local server that has none of the list, no list, or breaks over it answers with its one model."""
    server.models = step
    server.script(Says())
    assert await ask(provider) == MODEL[wire]


@pytest.mark.parametrize("trickle", [False, True])
async def test_a_list_that_never_ends(trickle: bool, server: LlmServer) -> None:
    """The look has a short deadline of its own, and hangs up."""
    step = Hangs(trickle)
    server.models = step
    server.script(Says())
    provider = OpenAIProvider(
        api_key="", model="usual", base_url=server.url, fast_models=("tiny",), list_s=1.5
    )
    assert await ask(provider) == "usual"
    await provider.close()
    if step.started.is_set():  # a busy machine may not get that far within the deadline
        async with asyncio.timeout(LONG):
            await step.hung_up.wait()


async def test_a_failed_look_is_soon_repeated(
    wire: Wire, provider: SdkProvider, server: LlmServer, clock: FakeClock
) -> None:
    """A failure is not kept for five minutes, and not repeated at every call."""
    server.models = Fails(503)
    server.script(*[Says()] * 3)
    assert await ask(provider) == MODEL[wire]
    server.models = Lists(("tiny",))
    assert await ask(provider) == MODEL[wire]
    clock.advance(FAILED_S)
    assert await ask(provider) == "tiny"
    assert len(server.listed) == 2


async def test_many_models_come_in_one_look(provider: SdkProvider, server: LlmServer) -> None:
    """Anthropic gives 20 a page unless asked for more; large answers are fine."""
    server.models = Lists((*(f"model-{n}" for n in range(900)), "tiny"))
    server.script(Says())
    assert await ask(provider) == "tiny"
    assert len(server.listed) == 1


async def test_a_model_that_is_refused_gives_way(
    provider: SdkProvider, server: LlmServer, clock: FakeClock
) -> None:
    """Listed, and unknown all the same: the next one from then on, the first again when it is forgotten."""
    server.models = Lists(("tiny", "small"))
    server.script(Fails(404, "model: tiny", "not_found_error"), Says(), Says())
    with pytest.raises(Unavailable) as caught:
        await ask(provider)
    assert caught.value.fault == "model"
    assert await ask(provider) == "small"
    clock.advance(KEEP_S)
    assert await ask(provider) == "tiny"


@pytest.mark.shows("I46")
async def test_the_look_tells_the_key_and_nothing_else(provider: SdkProvider, server: LlmServer) -> None:
    """The same few headers as with every call."""
    server.models = Lists(("tiny",))
    await provider.chosen(QUICK)
    (headers,) = server.listed
    assert {*headers} <= HEADERS
    assert headers["authorization"] == f"Bearer {KEY}"


async def test_the_settings_lists_reach_the_apis(wire: Wire, server: LlmServer) -> None:
    """The first of `fast.models` that the server offers is asked."""
    text = f"[{wire}]\nbase_url = '{server.url}'\n[fast]\nmodels = 'none, two, one'"
    (made,) = providers(wire, from_text(text), Keys())
    server.models = Lists(("one", "two"))
    await made.chosen(QUICK)  # type: ignore[attr-defined]  # of the providers with an SDK
    assert made.model_for(QUICK)[1] == "two"
    await made.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("official", "refused", "model"),
    [
        (True, (), "tiny"),
        (True, ("tiny",), "small"),
        (True, ("tiny", "small"), "usual"),
        (False, (), "usual"),
        (False, ("tiny",), "usual"),
    ],
)
async def test_when_the_list_cannot_be_had(
    official: bool, refused: tuple[str, ...], model: str, clock: FakeClock
) -> None:
    """The vendor's API likely has what the settings name, until all are refused; another has the usual."""

    async def load() -> tuple[str, ...]:
        raise Unavailable("no list")

    found = FastOfApi(("tiny", "small"), "usual", load, clock.monotonic, official=official)
    assert found.model == ("tiny" if official else "usual"), "before the first look"
    await found.look()
    for name in refused:
        found.refuse(name)
    assert found.model == model


@pytest.mark.shows("I12")
async def test_who_made_the_call_may_be_cancelled(clock: FakeClock) -> None:
    """A person types, the one look is cancelled; who waited for it makes a look of their own."""
    entered, made = asyncio.Event(), 0

    async def load() -> str:
        nonlocal made
        made += 1
        if made == 1:
            entered.set()
            await asyncio.Event().wait()
        return "found"

    fresh = Fresh(load, clock.monotonic)
    first = asyncio.create_task(fresh.get())
    await entered.wait()
    second = asyncio.create_task(fresh.get())
    await asyncio.sleep(0)
    first.cancel()
    assert await second == "found"
    assert (first.cancelled(), made) == (True, 2)
