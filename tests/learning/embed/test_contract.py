"""What every embedder keeps to: the real model on this machine, and the API over real sockets."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from operator import mul

import pytest

from daemon.learning.embed.minilm import MiniLM
from daemon.learning.embed.models import BATCH, OpenAIEmbedder
from daemon.learning.embed.vectors import Embedder, Vector
from harness.models.api_servers import Embeds, llm_server

A, B = "apple pie with cream", "the database migration fails"


@pytest.fixture(params=[pytest.param("minilm", marks=pytest.mark.needs("embeddings")), "openai"])
async def made(request: pytest.FixtureRequest) -> AsyncIterator[Embedder]:
    """An embedder; the server, where there is one, answers as often as it is asked."""
    if request.param == "minilm":
        local = MiniLM()
        yield local
        await local.close()
        return
    async with llm_server() as server:
        server.script(*[Embeds() for _ in range(20)])
        remote = OpenAIEmbedder(api_key="", model="small", base_url=server.url)
        yield remote
        await remote.close()


def close_to(one: list[Vector], other: list[Vector]) -> bool:
    pairs = zip(one, other, strict=True)
    return all(sum(map(mul, a.row, b.row)) > 0.99999 for a, b in pairs)


async def test_a_vector_for_each_text_in_their_order(made: Embedder) -> None:
    """Of length 1, all of one size, named by their model; the same text has the same vector."""
    found = await made.embed([A, B, A])
    assert [math.hypot(*v.row) for v in found] == pytest.approx([1, 1, 1])
    assert {v.model for v in found} == {made.model}
    assert found[0] == found[2] != found[1]


async def test_a_vector_does_not_depend_on_what_else_was_asked(made: Embedder) -> None:
    """More texts than one request holds: each has the vector that it has alone."""
    texts = [f"{A} number {'i' * n}" for n in range(BATCH + 2)]
    many = await made.embed([*texts, B])
    assert len(many) == len(texts) + 1
    assert close_to(many[-1:], await made.embed([B]))
    assert close_to(many[3:4], await made.embed(texts[3:4]))
