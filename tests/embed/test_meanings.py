"""Texts compared by their meaning: nothing overlooked, never without saying so, whoever calls."""

from __future__ import annotations

import asyncio
import random
from operator import mul

import pytest

from daemon.config import from_text
from daemon.core.embeddings import embedded
from daemon.core.settings import Settings
from daemon.embed.meanings import FEW, Compared, compared, near
from harness.models.api_servers import Embeds, Fails, LlmServer

NONE = from_text("[embed]\nprovider = 'none'")
# of the same letters, so the scripted model gives them one vector
TEXTS = ["listen to the server", "enlist the severer to", "buy milk"]


def of(server: LlmServer) -> Settings:
    return from_text(f"[embed]\nbase_url = '{server.url}'")


@pytest.mark.parametrize("size", [0, 1, 20, FEW + 1, 700])
def test_near_finds_every_pair(size: int) -> None:
    """With few vectors and with many, with numpy where it is installed and without: the same pairs."""
    chosen = random.Random(size)
    rows = embedded("m", [[chosen.gauss(0, 1) for _ in range(4)] for _ in range(size)]).rows
    every = {(a, b) for b in range(size) for a in range(b) if sum(map(mul, rows[a], rows[b])) >= 0.9}
    found = list(near(rows, 0.9))
    assert set(found) == every
    assert len(found) == len(every)
    assert bool(every) is (size >= 20)


def test_the_same_vector_is_near_at_the_highest_threshold() -> None:
    """Rounding takes no twin away."""
    chosen = random.Random(3)
    row = [chosen.gauss(0, 1) for _ in range(384)]
    assert list(near(embedded("m", [row, row]).rows, 1.0)) == [(0, 1)]


async def test_inside_a_loop_and_outside(server: LlmServer) -> None:
    """A hook's program runs a loop, a command does not; a text that was not known is alike to none."""
    server.script(Embeds(), Embeds())
    inside = await asyncio.to_thread(lambda: asyncio.run(_called(of(server))))
    outside = await asyncio.to_thread(compared, of(server), {}, TEXTS)
    for found in (inside, outside):
        assert found.why == ""
        assert found.similar is not None
        assert list(found.similar(["new one", *TEXTS], 0.99)) == [(1, 2)]
    assert server.got[0].body["input"] == TEXTS


async def _called(settings: Settings) -> Compared:
    return compared(settings, {}, TEXTS)


async def test_a_failure_is_a_sentence(server: LlmServer) -> None:
    """No model, a wrong answer, wrong settings: words only, and why."""
    server.script(Fails(500), Embeds(without=1))
    for why in ("only words were compared: embed: ", "vectors for 3 texts"):
        found = await asyncio.to_thread(compared, of(server), {}, TEXTS)
        assert found.similar is None
        assert why in found.why
    found = compared(NONE, {}, TEXTS)
    assert found == (None, "only words were compared: embed.provider is none")
    half = from_text("[embed]\nprovider = 'openai'\nkey_env = 'OTHER_KEY'")
    assert compared(half, {}, TEXTS).why.endswith("the address that gets the key")


def test_nothing_is_asked_where_nothing_can_be_alike() -> None:
    """One text, the same text twice, and texts that say nothing."""
    for texts in ([], ["a", "a"], ["a", " ", "\n"]):
        assert compared(from_text("[embed]\nbase_url = 'http://127.0.0.1:1'"), {}, texts) == (None, "")
