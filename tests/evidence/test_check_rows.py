"""Check rows: which failures prove unfinished work, and above all which don't."""

from __future__ import annotations

import pytest

from daemon.core.evidence import Row
from daemon.core.transcript import ToolCall
from tests.support.transcripts import PASSED, RED, TEST, bash, edit, evidence_of

TWO_FAILED = "2 failed, 5 passed in 0.12s"
FAIL, PASS = bash("pytest", TWO_FAILED, 1), bash("pytest", PASSED)
FAIL_Q = bash("pytest -q", TWO_FAILED, 1)
README = edit("README.md")
ESLINT = (
    "/repo/scripts/old.js\n  4:7  error  'fs' is not used  no-unused\n\n✖ 1 problem (1 error, 0 warnings)"
)
LINT = bash("npx eslint .", ESLINT, 1)
API = bash("cd api && npm test", "Tests: 1 failed, 1 total", 1)
ON_MAIN = bash("git worktree add -q /tmp/main main && cd /tmp/main && pytest -q", RED.output, 1)
BASE = "git stash -q && pytest -q; git stash pop -q"
SAME = bash(BASE, "FAILED tests/test_a.py::test_x\n1 failed, 6 passed in 0.12s")
MORE = bash("pytest -q", "FAILED tests/test_a.py::test_x\n2 failed, 5 passed in 0.12s", 1)
BEFORE = bash("pytest -q", "FAILED tests/test_a.py::test_x\n1 failed, 6 passed in 0.12s", 1)


def the_check(*calls: ToolCall) -> Row:
    (row,) = evidence_of("Fix the bug", *calls).of("check")
    return row


WHERE = {
    "failed after the last edit": ((edit(), FAIL_Q), "failed", "after_last_write", True),
    "failed, then passed": ((FAIL, edit(), bash("pytest -q", PASSED)), "passed", "after_last_write", False),
    "never run again": ((edit(), FAIL, edit()), "failed", "before_last_write", True),
    "masked, the summary shows": (
        (edit(), bash("pytest 2>&1 | tail -5", f"...\n{TWO_FAILED}\n", 0)),
        "failed",
        "after_last_write",
        True,
    ),
    "masked, nothing shows": ((edit(), bash("pytest || true", "", 0)), "unknown", "after_last_write", False),
    "passed, then a document": ((edit(), PASS, README), "passed", "after_last_write", False),
    "passed, then a note": ((edit(), PASS, edit("notes.txt")), "passed", "after_last_write", False),
    "failed, then a document": ((edit(), FAIL_Q, README), "failed", "after_last_write", True),
    "lint failed, then a document": ((edit(), LINT, README), "failed", "before_last_write", False),
}


@pytest.mark.shows("I24")
@pytest.mark.parametrize(("calls", "outcome", "position", "is_open"), WHERE.values(), ids=WHERE)
def test_how_and_where_it_ended(
    calls: tuple[ToolCall, ...], outcome: str, position: str, *, is_open: bool
) -> None:
    """The tool result decides, not what the final text says of it; a document mends and outdates nothing."""
    row = the_check(*calls)
    assert (row.outcome, row.position, row.open) == (outcome, position, is_open)


def test_what_a_row_says() -> None:
    """The command to type again with its folder, the summary, and that nothing ran since."""
    row = the_check(edit(), FAIL_Q)
    assert (row.command, row.detail) == ("pytest -q", TWO_FAILED)
    assert "not run again" in the_check(edit(), FAIL, edit()).text
    (row,) = evidence_of("Fix it", edit(), API, bash("npm test", "", 0, workdir="/repo/web")).open
    assert row.command == "cd api && npm test"


def test_two_checks_in_one_call() -> None:
    """A chain that stops says which one failed only where the output does."""
    both = bash("ruff check . && pytest", f"All checks passed!\n{TWO_FAILED}", 1)
    rows = evidence_of("Fix it", edit(), both).of("check")
    assert [(r.command, r.outcome) for r in rows] == [("ruff check .", "passed"), ("pytest", "failed")]


SETTLED = {  # calls → open, settled
    "lint of a file nobody wrote": ((edit("src/a.js"), LINT), False, True),
    "lint of a written file": ((edit("scripts/old.js"), LINT), True, False),
    "the same without the work": ((edit(), RED, SAME), False, True),
    "more than without the work": ((edit(), MORE, SAME), True, False),
    "red in a worktree of main": ((edit(), RED, ON_MAIN), False, True),
    "the same before the first edit": ((BEFORE, edit(), BEFORE), False, True),
    "more than before the first edit": ((BEFORE, edit(), MORE), True, False),
    "red without an edit": ((RED,), False, False),
    "red after a document": ((README, RED), False, False),
}


@pytest.mark.shows("I24", "I25")
@pytest.mark.parametrize(("calls", "is_open", "settled"), SETTLED.values(), ids=SETTLED)
def test_what_is_settled(calls: tuple[ToolCall, ...], is_open: bool, settled: bool) -> None:
    """A failure is open after an edit of code, and where the runs don't show that it is older than the
    work.
    """
    row = the_check(*calls)
    assert (row.outcome, row.open, row.settled) == ("failed", is_open, settled)


CLOCK = "FAILED tests/test_a.py::test_clock - assert 1 == 2\n1 failed, 9 passed in 2s"
BOTH = "FAILED tests/test_a.py::test_clock\nFAILED tests/test_a.py::test_login\n2 failed, 9 passed in 2s"


def test_failed_tests_that_failed_before_the_first_edit() -> None:
    """Their names are said, so that nobody blames the work for them."""
    row = the_check(bash("pytest", CLOCK, 1), edit(), bash("pytest", BOTH, 1))
    assert "failed tests: tests/test_a.py::test_clock; tests/test_a.py::test_login" in row.text
    assert row.text.endswith("; failed before the first edit too: tests/test_a.py::test_clock")


def test_flaky_runs_show() -> None:
    """Failed, then passed without an edit in between."""
    assert "flaky: failed 1x" in the_check(edit(), FAIL_Q, TEST).text
    assert "flaky" not in the_check(FAIL_Q, edit(), TEST).text
    generated = bash("python3 gen.py && pytest", PASSED)
    assert "flaky" not in the_check(edit(), FAIL_Q, generated).text, "it may have written what was missing"
    assert "flaky: failed 1x" in the_check(edit(), FAIL_Q, bash("cat a.py"), TEST).text


@pytest.mark.shows("I24")
@pytest.mark.parametrize(
    "path",
    ["requirements-dev.txt", "requirements/test.txt", "constraints.txt", "lib/CMakeLists.txt", "data/a.txt"],
)
def test_an_edit_of_a_text_file_is_an_edit(path: str) -> None:
    """It may have mended the failure: a run whose end is not visible replaces it, no run answers nothing."""
    assert "flaky" not in the_check(edit(), FAIL_Q, edit(path), TEST).text
    masked = bash("pytest -q > /dev/null; echo finished", "finished")
    row = the_check(edit(), FAIL_Q, edit(path), masked)
    assert (row.outcome, row.open) == ("unknown", False)
    row = the_check(edit(), FAIL_Q, edit(path))
    assert (row.position, row.open) == ("before_last_write", True)


def test_a_failure_that_is_older_than_the_work() -> None:
    """The same run failed with the changes stashed away: said, not open."""
    row = the_check(edit(), bash("git stash && pytest; git stash pop", TWO_FAILED, None), FAIL)
    assert (row.open, "it failed too without the changes" in row.text) == (False, True)


JEST = "FAIL src/a.test.ts\nFAIL src/b.test.ts\nTests: 2 failed, 4 total"
JEST_A, JEST_B = (bash(f"npx jest src/{x}.test.ts", "Tests: 1 passed, 1 total") for x in "ab")
WEB = bash("pnpm --filter web test", "Tests: 1 failed, 9 total", 1)
NARROWER = {  # calls → open checks
    "each failed file passed": ((edit(), bash("npx jest", JEST, 1), JEST_A, JEST_B), 0),
    "one of two passed": ((edit(), bash("npx jest", JEST, 1), JEST_A), 1),
    "another package passed": (
        (edit(), WEB, edit(), bash("pnpm --filter api test", "Tests: 9 passed, 9 total")),
        1,
    ),
    "a file of the package passed": (
        (edit(), WEB, edit(), bash("pnpm --filter web test src/a.test.ts", "Tests: 1 passed, 1 total")),
        0,
    ),
}


@pytest.mark.shows("I24")
@pytest.mark.parametrize(("calls", "count"), NARROWER.values(), ids=NARROWER)
def test_a_narrower_run_answers_what_it_reached(calls: tuple[ToolCall, ...], count: int) -> None:
    """Of the tests that a failed run named, each has to pass; of another package nothing is answered."""
    assert len(evidence_of("Fix it", *calls).open) == count
