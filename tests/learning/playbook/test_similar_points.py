"""Pairs of points that may say the same: with a model, without one, when it fails; off the event loop."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from operator import mul

import pytest

from daemon import log
from daemon.config import from_text
from daemon.core.errors import UserError
from daemon.learning.embed.minilm import MiniLM
from daemon.learning.embed.models import choose, embedder
from daemon.learning.embed.vectors import Embedder, SharedEmbedder, embedded
from daemon.learning.playbook import look_back as similar_points
from daemon.learning.playbook.look_back import KEPT, SimilarPoints, near
from harness.models.api_servers import Embeds, Fails, Hangs, LlmServer, llm_server
from tests.learning.playbook.books import point

# of the same letters, so the scripted model gives them one vector
TEXTS = ["listen to the server", "buy milk", "enlist the severer to"]


@pytest.fixture
async def server() -> AsyncIterator[LlmServer]:
    async with llm_server() as found:
        yield found


@pytest.fixture
async def found(server: LlmServer) -> AsyncIterator[SimilarPoints]:
    """With the model of the server."""
    settings = from_text(f"[embed]\nbase_url = '{server.url}'")
    shared = SharedEmbedder(lambda: embedder(choose(settings, {}), settings))
    yield SimilarPoints(shared, 0.99, log.get("test"))
    await shared.close()


def of(make: Callable[[], Embedder | None]) -> SimilarPoints:
    return SimilarPoints(SharedEmbedder(make), 0.99, log.get("test"))


@pytest.mark.shows("I44")
async def test_texts_of_one_meaning_are_pairs_and_asked_for_once(
    server: LlmServer, found: SimilarPoints
) -> None:
    """The same texts again cost nothing; what is remembered is bounded."""
    server.script(Embeds(), *[Embeds() for _ in range(KEPT + 1)])
    for _ in range(3):
        assert await found.pairs(TEXTS) == ((0, 2),)
    assert len(server.got) == 1
    assert await found.pairs(["one"]) == await found.pairs([]) == ()
    for i in range(KEPT + 1):
        await found.pairs(["a", f"b{i}"])
    assert len(found._known) == KEPT


async def test_a_failure_is_logged_once_and_leaves_all_as_it_was(
    server: LlmServer,
    found: SimilarPoints,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """No answer, a wrong one, none in time, wrong settings: no pairs, and the next time it is tried again."""

    def logged() -> str:
        said = capsys.readouterr()
        return said.out + said.err

    server.script(Fails(500), Embeds(without=1), Embeds(), Hangs())
    assert await found.pairs(TEXTS) == ()
    assert await found.pairs(TEXTS) == ()
    assert logged().count("meanings are not compared") == 1
    assert await found.pairs(TEXTS) == ((0, 2),)
    monkeypatch.setattr(similar_points, "EMBED_S", 0.2)
    assert await found.pairs(["other", "texts"]) == ()
    assert "no answer in 0.2 s" in logged()

    def wrong() -> Embedder | None:
        raise UserError("embed.key_file can't be read")

    assert await of(wrong).pairs(TEXTS) == ()
    assert "embed.key_file can't be read" in logged()


POINTS = [point(f"pat-{i:03d}", text) for i, text in enumerate(TEXTS, 1)]


@pytest.mark.shows("LEARN-14")
async def test_without_a_model_there_are_no_pairs(server: LlmServer) -> None:
    """And nothing is sent."""
    off = from_text("[embed]\nprovider = 'none'")
    assert await of(lambda: embedder(choose(off, {}), off)).named(POINTS, set()) == []
    assert server.got == []


async def test_pairs_are_named(server: LlmServer, found: SimilarPoints) -> None:
    """Not those that a person approved both: neither would go."""
    server.script(Embeds())
    assert await found.named(POINTS, set()) == [("pat-001", "pat-003")]
    assert await found.named(POINTS, {"pat-001"}) == [("pat-001", "pat-003")]
    assert await found.named(POINTS, {"pat-001", "pat-003"}) == []


@pytest.mark.shows("LEARN-14")
@pytest.mark.needs("embeddings")
async def test_the_model_on_this_machine_holds_up_nobody() -> None:
    """While it is loaded and computes, the event loop goes on; a contradiction is near too, which is why the
    curator decides.
    """
    texts = [
        "Prefer small pull requests",
        "Pull requests should be kept small",
        "Increase the timeout when CI is slow",
        "Decrease the timeout when CI is slow",
        *(f"Point {i} is about something else: {'word ' * (i % 7)}" for i in range(40)),
    ]
    made = MiniLM()
    found = SimilarPoints(SharedEmbedder(lambda: made), 0.85, log.get("test"))
    work, ticks = asyncio.create_task(found.pairs(texts)), 0
    while not work.done():
        await asyncio.sleep(0.01)
        ticks += 1
    assert {(0, 1), (2, 3)} <= set(work.result())
    assert ticks > 10
    assert made.loaded
    await made.close()
    assert not made.loaded


@pytest.mark.parametrize("size", [0, 1, 20, 300])
def test_near_finds_every_pair(size: int) -> None:
    """Each once, the lower place first."""
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
