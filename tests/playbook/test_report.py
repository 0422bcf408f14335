"""What may be said of a playbook's worth."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.playbook.report import compared, share


@given(st.integers(0, 5_000), st.integers(0, 5_000))
def test_an_interval_holds_its_share(a: int, b: int) -> None:
    """For any numbers: from 0 to 1, around the share, and narrower the more there is."""
    complete, tasks = min(a, b), max(a, b)
    found = share(complete, tasks)
    assert 0.0 <= found.low <= found.high <= 1.0
    if tasks:
        assert found.low <= complete / tasks + 1e-9
        assert found.high >= complete / tasks - 1e-9
        wider = share(complete, tasks)
        narrow = share(complete * 4, tasks * 4)
        assert narrow.high - narrow.low <= wider.high - wider.low + 1e-9


def test_a_known_interval() -> None:
    """Eight of ten: from 49 to 94 percent (Wilson)."""
    found = share(8, 10)
    assert (round(found.low, 3), round(found.high, 3)) == (0.49, 0.943)


@pytest.mark.shows("LEARN-20")
def test_no_more_is_claimed_than_the_numbers_carry() -> None:
    """Few tasks, nobody held out, intervals that overlap: nothing is said. Else in both directions."""
    many, few = share(95, 100), share(40, 100)
    assert "nothing can be compared" in compared(many, share(0, 0))
    assert "too few" in compared(share(9, 9), few)
    assert "too few" in compared(many, share(0, 9))
    assert "no difference" in compared(share(55, 100), share(50, 100))
    assert compared(many, few).endswith("more often")
    assert compared(few, many).endswith("less often")
