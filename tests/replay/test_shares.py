"""Shares with their intervals."""

from __future__ import annotations

import pytest

from daemon.replay.shares import wilson


def test_the_interval_is_wilsons() -> None:
    """Known values; nothing to divide by leaves all open; no end leaves 0 to 1."""
    found = wilson(18, 20)
    assert (round(found.low, 3), round(found.high, 3), found.value) == (0.699, 0.972, 0.9)
    assert (wilson(0, 0).value, wilson(0, 0).low, wilson(0, 0).high) == (None, 0.0, 1.0)
    assert wilson(0, 5).low == pytest.approx(0.0)
    assert wilson(5, 5).high == pytest.approx(1.0)
