"""Shares with Wilson's interval."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.engine.page import wilson


@pytest.mark.parametrize(
    ("hits", "of", "low", "high"),
    [(0, 10, 0.0, 0.2775), (5, 10, 0.2366, 0.7634), (10, 10, 0.7225, 1.0), (18, 20, 0.6990, 0.9721)],
)
def test_the_interval_is_wilsons(hits: int, of: int, low: float, high: float) -> None:
    """Compared with published values, to four places."""
    found = wilson(hits, of)
    assert found.value == hits / of
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-4)


def test_nothing_says_nothing() -> None:
    """Without cases there is no share, and it may be any."""
    found = wilson(0, 0)
    assert (found.value, found.low, found.high) == (None, 0.0, 1.0)


@given(st.integers(1, 10_000).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of))))
def test_the_share_is_in_its_interval(counts: tuple[int, int]) -> None:
    """Also at both ends, and the interval stays between 0 and 1."""
    found = wilson(*counts)
    assert found.value is not None
    assert 0.0 <= found.low <= found.value + 1e-12
    assert found.value - 1e-12 <= found.high <= 1.0
