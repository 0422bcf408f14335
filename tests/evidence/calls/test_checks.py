"""Which run replaces or answers which, seen through the rows of the runs that are left."""

from __future__ import annotations

import pytest

from tests.support.transcripts import PASSED, bash, edit, evidence_of, opened

TWO_FAILED = "2 failed, 5 passed in 0.12s"


def test_a_broader_pass_answers_a_narrow_failure() -> None:
    """Superseding goes by scope."""
    evidence = evidence_of(
        "Fix the bug", edit(), bash("pytest tests/test_a.py", TWO_FAILED, 1), bash("pytest", PASSED)
    )
    assert not evidence.open


def test_a_narrower_pass_without_an_edit_answers_nothing() -> None:
    """The full run still stands."""
    calls = (edit(), bash("pytest", TWO_FAILED, 1), bash("pytest tests/test_a.py", PASSED))
    assert len(evidence_of("Fix the bug", *calls).open) == 1


def test_a_narrower_pass_of_what_failed_is_enough() -> None:
    """The failing file was named, fixed and run again."""
    output = f"FAILED tests/test_a.py::test_x - assert\n{TWO_FAILED}"
    calls = (edit(), bash("pytest", output, 1), edit(), bash("pytest tests/test_a.py", PASSED))
    assert not evidence_of("Fix the bug", *calls).open
    calls = (edit(), bash("pytest", output, 1), edit(), bash("pytest tests/test_b.py", PASSED))
    assert len(evidence_of("Fix the bug", *calls).open) == 1


def test_a_partial_run_after_the_fix_is_not_held_against_it() -> None:
    """What failed isn't named, the person's agent ran a part: doubtful, so quiet."""
    calls = (edit(), bash("pytest", TWO_FAILED, 1), edit(), bash("pytest -k foo", PASSED))
    assert not evidence_of("Fix the bug", *calls).open


def test_another_tool_answers_nothing() -> None:
    """``ruff`` passing says nothing about ``pytest``."""
    calls = (edit(), bash("pytest", TWO_FAILED, 1), bash("ruff check .", "All checks passed!"))
    assert [r.command for r in evidence_of("Fix the bug", *calls).open] == ["pytest"]


def test_an_unknown_run_hides_a_failure_only_after_an_edit() -> None:
    """Looking at the same failure through ``grep`` doesn't make it go away."""
    look = bash("pytest | grep -c x", "3")
    assert len(evidence_of("Fix the bug", edit(), bash("pytest", TWO_FAILED, 1), look).open) == 1
    assert not evidence_of("Fix the bug", edit(), bash("pytest", TWO_FAILED, 1), edit(), look).open


def test_leaving_out_what_failed_is_no_answer() -> None:
    """A pass of everything else says nothing about what failed."""
    calls = (
        edit(),
        bash("pytest", TWO_FAILED, 1),
        edit(),
        bash("pytest --deselect tests/test_a.py::test_x", PASSED),
    )
    assert [r.kind for r in opened("Fix it", *calls)] == ["check"]
    calls = (
        edit(),
        bash("cargo test", "test result: TWO_FAILED. 1 failed", 101),
        edit(),
        bash("cargo test -- --skip slow"),
    )
    assert [r.kind for r in opened("Fix it", *calls)] == ["check"]


@pytest.mark.shows("I24")
def test_a_run_of_another_package_answers_nothing() -> None:
    """A pass in one package is no answer to a failure in another."""
    red = bash("pnpm --filter core test", "Tests 2 failed | 8 passed (10)", 1)
    green = bash("pnpm --filter web test", "Tests 10 passed (10)")
    ask = "make the tests in packages/core pass"
    assert evidence_of(ask, red, edit("/r/packages/core/a.ts"), green).open
    again = bash("pnpm --filter core test", "Tests 10 passed (10)")
    assert not evidence_of(ask, red, edit("/r/packages/core/a.ts"), again).open
