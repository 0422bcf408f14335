"""A change was asked for and only planned."""

from __future__ import annotations

import pytest

from tests.support.transcripts import opened, read


@pytest.mark.shows("I25")
def test_planning_only() -> None:
    """A change was asked for; reading and a plan is not it. A plan that was asked for is."""
    plan = "Here's my plan: I'll move the check into a helper and then update the callers."
    (row,) = opened("Fix the login bug", read(), final=plan)
    assert (row.kind, row.cites) == ("unmet", ("R1",))
    assert opened("Make a plan for fixing the login bug", read(), final=plan) == []
    assert opened("Why does the login fail?", read(), final=plan) == []
    assert opened("Fix the login bug", read(), final="I would, but it is already fixed on main.") == []
