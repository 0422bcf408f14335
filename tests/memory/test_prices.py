"""What a call costs by the requirements."""

from __future__ import annotations

import pytest

from daemon.memory.prices import cost_eur


@pytest.mark.shows("I41")
@pytest.mark.parametrize(
    ("tokens", "eur"), [((1_000, 0), 0.001), ((0, 1_000), 0.005), ((700, 200), 0.0017), ((0, 0), None)]
)
def test_subtask_1_5_cost(tokens: tuple[int, int], eur: float | None) -> None:
    """(input / 1000) * 0.001 + (output / 1000) * 0.005; what nobody told is not 0."""
    assert cost_eur(*tokens) == (None if eur is None else pytest.approx(eur))
