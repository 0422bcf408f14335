"""Provider ``host``: which of the host's models is asked a quick question."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from daemon.core.errors import Unavailable
from daemon.core.fast import Offered
from daemon.core.orders import RunJudge
from daemon.core.transcript import Model
from daemon.llm.host import HostProvider
from daemon.llm.offered import KEEP_S
from daemon.testing import FakeClock
from tests.llm.samples import BIG, LISTS, LONG, QUICK


class Host:
    """A host that offers ``offered`` and refuses the models in ``unknown`` with ``error``."""

    def __init__(self, offered: Offered | None, unknown: set[str] = frozenset(), error: str = "") -> None:  # type: ignore[assignment]
        self.offered, self.unknown, self.error = offered, unknown, error
        self.asked: list[str] = []

    async def run(self, order: RunJudge, deadline_s: float) -> Raw:
        del deadline_s
        name = f"{order.model.provider}/{order.model.model}" if order.model else ""
        self.asked.append(name)
        if name in self.unknown:
            raise Unavailable(f"the host answered failed: {self.error}")
        return Raw(json.dumps({"text": "{}", "cost": 0.1}).encode())

    async def look(self, session: str) -> Offered | None:
        assert session == QUICK.session
        return self.offered

    def provider(self, clock: FakeClock, model: str = "") -> HostProvider:
        return HostProvider(self.run, model, lists=LISTS, look=self.look, monotonic=clock.monotonic)


@pytest.mark.parametrize(
    ("offered", "found"),
    [
        ({"anthropic": ("claude-opus-5", "claude-haiku-4-5")}, "anthropic/claude-haiku-4-5"),
        ({"openai": ("gpt-5-mini",), "anthropic": ("claude-opus-5",)}, "openai/gpt-5-mini"),
        ({"anthropic": ("claude-opus-5",)}, "anthropic/claude-opus-5"),
        ({}, "anthropic/claude-opus-5"),
        (None, "anthropic/claude-opus-5"),
    ],
)
async def test_the_host_asks_the_small_model_it_has(
    offered: Offered | None, found: str, clock: FakeClock
) -> None:
    """Issue 4, part 2: and without one the session's own, never the judge's model of the settings."""
    host = Host(offered)
    provider = host.provider(clock, model="openai/gpt-5.4")
    chosen = await provider.chosen(replace(QUICK, model=BIG))
    assert "/".join(provider.model_for(chosen)) == found
    reply = await provider.complete(chosen, LONG)
    assert (reply.model, host.asked) == (found, [found])


@pytest.mark.parametrize("tier", ["judge", "reflect"])
async def test_the_hosts_other_tiers_are_not_touched(tier: Any, clock: FakeClock) -> None:
    """The judge is the session's own model or the setting's."""
    host = Host({"anthropic": ("claude-haiku-4-5",)})
    for setting, found in (("", "anthropic/claude-opus-5"), ("openai/gpt-5.4", "openai/gpt-5.4")):
        provider = host.provider(clock, setting)
        prompt = replace(QUICK, tier=tier, model=BIG)
        assert await provider.chosen(prompt) is prompt
        assert (await provider.complete(prompt, LONG)).model == found


REFUSALS = [
    "ProviderModelNotFoundError",
    "Model not found: anthropic/claude-haiku-5-5. Did you mean: claude-haiku-4-5?",
    "APIError: The requested model is not supported.",
    "APIError: model: claude-haiku-5-5 does not exist",
    "APIError: Invocation of model ID x with on-demand throughput isn't supported.",
]


@pytest.mark.parametrize("said", REFUSALS)
async def test_a_model_that_the_host_refuses_gives_way(said: str, clock: FakeClock) -> None:
    """A host lists what its catalogue has, not what the account may use: the next, in the end the own."""
    small = {"anthropic/claude-haiku-5-5", "anthropic/claude-haiku-4-5"}
    host = Host({"anthropic": ("claude-haiku-5-5", "claude-haiku-4-5")}, small, said)
    provider = host.provider(clock)
    for _ in range(2):
        with pytest.raises(Unavailable) as caught:
            await provider.complete(await provider.chosen(replace(QUICK, model=BIG)), LONG)
        assert caught.value.fault == "model"
    await provider.complete(await provider.chosen(replace(QUICK, model=BIG)), LONG)
    clock.advance(KEEP_S)
    assert (await provider.chosen(replace(QUICK, model=BIG))).model == Model("anthropic", "claude-haiku-5-5")
    assert host.asked == [
        "anthropic/claude-haiku-5-5",
        "anthropic/claude-haiku-4-5",
        "anthropic/claude-opus-5",
    ]


@pytest.mark.shows("I33")
@pytest.mark.parametrize("said", ["APIError: rate limit reached", "no answer in 5000 ms", "cancelled"])
async def test_another_failure_is_not_the_models(said: str, clock: FakeClock) -> None:
    """A busy or broken provider is asked with the same model later."""
    host = Host({"anthropic": ("claude-haiku-4-5", "claude-haiku-4")}, {"anthropic/claude-haiku-4-5"}, said)
    provider = host.provider(clock)
    with pytest.raises(Unavailable) as caught:
        await provider.complete(await provider.chosen(replace(QUICK, model=BIG)), LONG)
    assert caught.value.fault == ""
    assert (await provider.chosen(replace(QUICK, model=BIG))).model == Model("anthropic", "claude-haiku-4-5")


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ("APIError 401: invalid x-api-key", "auth"),
        ("APIError 403: no", "auth"),
        ("ProviderAuthError: log in", "auth"),
        ("APIError 500: 401 files", ""),
    ],
)
async def test_a_host_without_a_key_says_so(said: str, fault: str, clock: FakeClock) -> None:
    """The status that the plugin tells, not the words of the provider, says that the key was refused."""
    host = Host(None, {"anthropic/claude-opus-5"}, said)
    with pytest.raises(Unavailable) as caught:
        await host.provider(clock).complete(replace(QUICK, tier="judge", model=BIG), LONG)
    assert caught.value.fault == fault
