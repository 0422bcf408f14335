"""Vectors: their length, their size, and whose they are."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.learning.embed.vectors import embedded

ROW = st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3).filter(lambda row: math.hypot(*row) > 1e-6)


@given(st.lists(ROW, max_size=5))
def test_every_vector_has_length_one(rows: list[list[float]]) -> None:
    """Its direction stays."""
    found = embedded("m", rows)
    assert (found.dimensions, len(found.rows)) == (3 if rows else 0, len(rows))
    for row, made in zip(rows, found.rows, strict=True):
        assert math.hypot(*made) == pytest.approx(1)
        assert [x * math.hypot(*row) for x in made] == pytest.approx(row)


@pytest.mark.parametrize("rows", [[[1.0], [1.0, 2.0]], [[0.0, 0.0]], [[]], [[math.nan]], [[math.inf, 1.0]]])
def test_what_is_no_vector_is_refused(rows: list[list[float]]) -> None:
    """Several sizes, no length, numbers that are none."""
    with pytest.raises(ValueError, match=r"vectors of several sizes|without a length"):
        embedded("m", rows)
