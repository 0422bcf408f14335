"""What the final text says was done, and what it admits."""

from __future__ import annotations

import pytest

from daemon.evidence.answer.claims import admissions, claims
from tests.support.tables import tables

ROWS = tables("requests")


@pytest.mark.parametrize(("final", "topics"), ROWS["claims"])
def test_what_is_a_claim(final: str, topics: list[str]) -> None:
    """Wishes, conditions, negations, questions and code are none."""
    assert {c.topic for c in claims(final)} == set(topics)


def test_what_is_admitted() -> None:
    """A part that is not done, where no reason is given for it."""
    assert admissions("Weekly is in. Monthly rules are not yet implemented.") == (
        "Monthly rules are not yet implemented.",
    )
    assert admissions("Monthly rules are not implemented, as you asked to keep them out of scope.") == ()
    assert admissions("Is monthly not yet implemented?") == ()
