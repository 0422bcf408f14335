"""Vectors: their length, their size, and whose they are."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.learning.embed.vectors import vectors

ROW = st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3).filter(lambda row: math.hypot(*row) > 1e-6)


@given(st.lists(ROW, max_size=5))
def test_every_vector_has_length_one(rows: list[list[float]]) -> None:
    """Its direction stays."""
    found = vectors("m", rows)
    assert len(found) == len(rows)
    for row, made in zip(rows, found, strict=True):
        assert math.hypot(*made.row) == pytest.approx(1, abs=1e-5)
        assert [x * math.hypot(*row) for x in made.row] == pytest.approx(
            row, rel=1e-5, abs=1e-6 * math.hypot(*row)
        )


@pytest.mark.parametrize("rows", [[[1.0], [1.0, 2.0]], [[0.0, 0.0]], [[]], [[math.nan]], [[math.inf, 1.0]]])
def test_what_is_no_vector_is_refused(rows: list[list[float]]) -> None:
    """Several sizes, no length, numbers that are none."""
    with pytest.raises(ValueError, match=r"vectors of several sizes|without a length"):
        vectors("m", rows)
