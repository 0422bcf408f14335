"""Vectors in memory: with numpy and without they say the same."""

from __future__ import annotations

import math
import random
from array import array

import pytest

from daemon.store import episode_vectors
from daemon.store.episode_vectors import Matrix, Row, floats, packed
from tests.store.episodes import vector


@pytest.fixture(params=["_Plain", pytest.param("_Numpy", marks=pytest.mark.needs("embeddings"))])
def found(request: pytest.FixtureRequest) -> Matrix:
    made: Matrix = getattr(episode_vectors, request.param)()
    return made


def unit(seed: int, size: int = 24) -> bytes:
    rng = random.Random(seed)
    numbers = [rng.gauss(0, 1) for _ in range(size)]
    length = math.hypot(*numbers)
    return packed(array("f", (n / length for n in numbers)))


def cosine(a: bytes, b: bytes) -> float:
    return sum(x * y for x, y in zip(floats(a), floats(b), strict=True))


def test_the_nearest_are_those_of_a_plain_comparison(found: Matrix) -> None:
    """Whatever comes in how many parts, in all projects and in some."""
    rows = [Row(n, f"/p{n % 3}", unit(n)) for n in range(1, 301)]
    for at in range(0, len(rows), 70):
        found.append(rows[at : at + 70])
    assert found.size == 300
    wanted = unit(1_000)
    for projects in (None, ["/p1"], ["/p0", "/p2", "/none"]):
        here = [row for row in rows if projects is None or row.project in projects]
        best = sorted(here, key=lambda row: -cosine(row.data, wanted))[:7]
        hits = found.nearest(wanted, projects, 7)
        assert [hit.seq for hit in hits] == [row.seq for row in best]
        assert [hit.similarity for hit in hits] == pytest.approx(
            [cosine(r.data, wanted) for r in best], abs=1e-5
        )


def test_few_and_none(found: Matrix) -> None:
    """Fewer than were asked for; no project; no vector; one of another size."""
    assert found.nearest(unit(1), None, 3) == []
    found.append([])
    found.append([Row(1, "/p", unit(1)), Row(2, "/p", unit(2, 12)), Row(3, "/p", unit(3))])
    assert {hit.seq for hit in found.nearest(unit(1), None, 9)} == {1, 3}
    assert found.nearest(unit(1), ["/q"], 3) == []
    assert found.nearest(unit(1), [], 3) == []
    assert found.nearest(unit(1, 12), None, 3) == []


def test_a_vector_in_bytes() -> None:
    """Little-endian, whatever the machine; there and back."""
    assert packed(array("f", [1.0])) == b"\x00\x00\x80\x3f"
    assert list(floats(packed(array("f", [0.5, -2.0])))) == [0.5, -2.0]
    assert cosine(vector(0).data, vector(60).data) == pytest.approx(0.5, abs=1e-6)
