"""What the final text says was done, and what it admits."""

from __future__ import annotations

import pytest

from daemon.evidence.answer.claims import admissions, claims


@pytest.mark.parametrize(
    ("final", "topics"),
    [
        ("All 12 tests pass, the build succeeds and ruff is clean.", {"tests", "build", "lint"}),
        ("I committed and pushed it.", {"commit", "push"}),
        ("I've pushed the branch.", {"push"}),
        ("Opened PR #12.", {"pr"}),
        ("It is now deployed to staging.", {"deploy"}),
        ("CI is green.", {"ci"}),
        ("Verified in the browser.", {"browser"}),
        ("Alle Tests laufen durch.", {"tests"}),
        ("The tests should pass now.", set()),
        ("I did not run the tests.", set()),
        ("Run the tests to check that they pass.", set()),
        ("2 tests fail.", set()),
        ("Once the tests pass, merge it.", set()),
        ("Do the tests pass?", set()),
        ("```\nall tests pass\n```", set()),
    ],
)
def test_what_is_a_claim(final: str, topics: set[str]) -> None:
    """Wishes, conditions, negations, questions and code are none."""
    assert {c.topic for c in claims(final)} == topics


def test_what_is_admitted() -> None:
    """A part that is not done, where no reason is given for it."""
    assert admissions("Weekly is in. Monthly rules are not yet implemented.") == (
        "Monthly rules are not yet implemented.",
    )
    assert admissions("Monthly rules are not implemented, as you asked to keep them out of scope.") == ()
    assert admissions("Is monthly not yet implemented?") == ()
