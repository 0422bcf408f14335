"""Which run replaces or answers which, seen through the rows of the runs that are left."""

from __future__ import annotations

import pytest

from daemon.core.transcript import ToolCall
from tests.support.transcripts import PASSED, bash, edit, evidence_of

TWO_FAILED = "2 failed, 5 passed in 0.12s"
NAMED = f"FAILED tests/test_a.py::test_x - assert\n{TWO_FAILED}"
CORE = "pnpm --filter core test"
RED = bash("pytest", TWO_FAILED, 1)
RED_NAMED = bash("pytest", NAMED, 1)
RED_CORE = bash(CORE, "Tests 2 failed | 8 passed (10)", 1)
CARGO = bash("cargo test", "test result: FAILED. 1 failed", 101)
LOOK = bash("pytest | grep -c x", "3")
GREEN_A, GREEN_B = (bash(f"pytest tests/test_{name}.py", PASSED) for name in "ab")
STASHED = bash("git stash && pytest; git stash pop", TWO_FAILED, 0)
INSIDE = bash("cd api && pytest", PASSED)


CASES = {
    "broader": ((edit(), bash("pytest tests/test_a.py", TWO_FAILED, 1), bash("pytest", PASSED)), []),
    "narrower, without an edit": ((edit(), RED, GREEN_A), ["pytest"]),
    "of what failed": ((edit(), RED_NAMED, edit(), GREEN_A), []),
    "of another file": ((edit(), RED_NAMED, edit(), GREEN_B), ["pytest"]),
    "a part, doubtful": ((edit(), RED, edit(), bash("pytest -k foo", PASSED)), []),
    "another tool": ((edit(), RED, bash("ruff check .", "All checks passed!")), ["pytest"]),
    "a look through grep": ((edit(), RED, LOOK), ["pytest"]),
    "a look after an edit": ((edit(), RED, edit(), LOOK), []),
    "deselected": ((edit(), RED, edit(), bash("pytest --deselect tests/test_a.py::x", PASSED)), ["pytest"]),
    "skipped": ((edit(), CARGO, edit(), bash("cargo test -- --skip slow")), ["cargo test"]),
    "another package": ((RED_CORE, edit(), bash("pnpm --filter web test", "Tests 10 passed (10)")), [CORE]),
    "the same package": ((RED_CORE, edit(), bash(CORE, "Tests 10 passed (10)")), []),
    "the old state under a stash": ((edit(), bash("pytest", PASSED), STASHED), []),
}


@pytest.mark.shows("I24")
@pytest.mark.parametrize(("calls", "still_open"), CASES.values(), ids=CASES)
def test_what_answers_a_failure(calls: tuple[ToolCall, ...], still_open: list[str]) -> None:
    """A pass of the same scope or a broader one; in doubt nothing is held against the work."""
    found = evidence_of("Make the tests in packages/core pass", *calls)
    assert [r.command for r in found.open] == still_open


def test_a_lasting_shell_keeps_its_folder() -> None:
    """Claude Code's Bash stays where the last ``cd`` went."""
    for shell, is_open in (("Bash", False), ("bash", True)):
        calls = (bash("cd api", tool=shell), edit(), bash("pytest", TWO_FAILED, 1, tool=shell), INSIDE)
        assert bool(evidence_of("Fix the bug", *calls).open) is is_open
