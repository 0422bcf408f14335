"""Pairs of points that may say the same: with a model, without one, when it fails; off the event loop."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Collection
from operator import mul

import pytest

from daemon import log
from daemon.config import from_text
from daemon.core.errors import UserError
from daemon.learning.embed.models import choose, embedder
from daemon.learning.embed.vectors import Embedder, Embeddings, vectors
from daemon.learning.playbook import feature
from daemon.learning.playbook.feature import near
from harness.models.api_servers import Embeds, Fails, Hangs, LlmServer, llm_server
from tests.learning.playbook.books import point

# of the same letters, so the scripted model gives them one vector
TEXTS = ["listen to the server", "buy milk", "enlist the severer to"]


@pytest.fixture
async def server() -> AsyncIterator[LlmServer]:
    async with llm_server() as found:
        yield found


POINTS = [point(f"pat-{i:03d}", text) for i, text in enumerate(TEXTS, 1)]
Pairs = list[tuple[str, str]]


async def pairs(
    make: Callable[[], Embedder | None], kept: Collection[str] = (), least: float = 0.99
) -> Pairs:
    shared = Embeddings(make, log.get("test"))
    found = await feature.similar(POINTS, kept, shared, least)
    await shared.close()
    return found


@pytest.mark.shows("I44", "LEARN-14")
async def test_points_of_one_meaning_are_pairs_when_a_model_says_so(
    server: LlmServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not two that a person approved: neither would go. No model, no answer, a wrong one, none in time and
    wrong settings: no pairs, and the reason in the log.
    """
    settings = from_text(f"[embed]\nbase_url = '{server.url}'")
    off = from_text("[embed]\nprovider = 'none'")

    def model() -> Embedder | None:
        return embedder(choose(settings, {}), settings)

    def wrong() -> Embedder | None:
        raise UserError("embed.key_file can't be read")

    assert await pairs(lambda: embedder(choose(off, {}), off)) == []
    assert server.got == []
    both = [("pat-001", "pat-003")]
    server.script(Embeds(), Embeds(), Embeds(), Fails(500), Embeds(without=1), Hangs())
    found = [await pairs(model, kept) for kept in ((), {"pat-001"}, {"pat-001", "pat-003"})]
    assert found == [both, both, []]
    assert await pairs(model) == await pairs(model) == []
    monkeypatch.setattr(feature, "EMBED_S", 0.2)
    assert await pairs(model) == await pairs(wrong) == []
    said = "".join(capsys.readouterr())
    assert said.count("meanings are not compared") == 4
    assert "no answer in 0.2 s" in said
    assert "embed.key_file can't be read" in said


@pytest.mark.parametrize("size", [0, 1, 20, 300])
def test_near_finds_every_pair(size: int) -> None:
    """Each once, the lower place first."""
    chosen = random.Random(size)
    rows = [v.row for v in vectors("m", [[chosen.gauss(0, 1) for _ in range(4)] for _ in range(size)])]
    every = {(a, b) for b in range(size) for a in range(b) if sum(map(mul, rows[a], rows[b])) >= 0.9}
    found = list(near(rows, 0.9))
    assert set(found) == every
    assert len(found) == len(every)
    assert bool(every) is (size >= 20)


def test_the_same_vector_is_near_at_the_highest_threshold() -> None:
    """Rounding takes no twin away."""
    chosen = random.Random(3)
    row = [chosen.gauss(0, 1) for _ in range(384)]
    assert list(near([v.row for v in vectors("m", [row, row])], 1.0)) == [(0, 1)]
