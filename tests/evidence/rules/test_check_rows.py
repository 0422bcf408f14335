"""Check rows: which failures prove unfinished work, and above all which don't."""

from __future__ import annotations

import pytest

from daemon.core.evidence import Row
from daemon.core.transcript import ToolCall
from daemon.evidence.collect import collect
from tests.support.hosts.tales import TALES, Tale
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
LATER = "test_x fails; on main it fails as well."
ON_MAIN = bash("git worktree add -q /tmp/main main && cd /tmp/main && pytest -q", RED.output, 1)
BASE = "git stash -q && pytest -q; git stash pop -q"
SAME = bash(BASE, "FAILED tests/test_a.py::test_x\n1 failed, 6 passed in 0.12s")
MORE = bash("pytest -q", "FAILED tests/test_a.py::test_x\n2 failed, 5 passed in 0.12s", 1)
OLD_TOO = "Done; test_x fails on the untouched code too."
WRITE = "Write a failing test for the bug"
TESTS = "/repo/tests/test_a.py"


def the_check(*calls: ToolCall, ask: str = "Fix the bug", final: str = "Done.") -> Row:
    (row,) = evidence_of(ask, *calls, final=final).of("check")
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
    row = the_check(edit(), FAIL_Q, final="All tests pass!")
    assert (row.command, row.detail) == ("pytest -q", TWO_FAILED)
    assert "not run again" in the_check(edit(), FAIL, edit()).text
    (row,) = evidence_of("Fix it", edit(), API, bash("npm test", "", 0, workdir="/repo/web")).open
    assert row.command == "cd api && npm test"


def test_two_checks_in_one_call() -> None:
    """A chain that stops says which one failed only where the output does."""
    both = bash("ruff check . && pytest", f"All checks passed!\n{TWO_FAILED}", 1)
    rows = evidence_of("Fix it", edit(), both).of("check")
    assert [(r.command, r.outcome) for r in rows] == [("ruff check .", "passed"), ("pytest", "failed")]


SETTLED = {  # (request, calls, final text) → open, settled
    "lint of a file nobody wrote": ("Add a filter", (edit("src/a.js"), LINT), "Done.", False, True),
    "lint of a written file": ("Add a filter", (edit("scripts/old.js"), LINT), "Done.", True, False),
    "lint that was asked for": (
        "Add a filter and run eslint",
        (edit("src/a.js"), LINT),
        "Done.",
        True,
        False,
    ),
    "red, no fix wanted": (f"{WRITE}, don't fix it", (edit(TESTS), RED), "It fails.", False, True),
    "red, fix wanted": (f"{WRITE}, then fix it", (edit(TESTS), RED), "It fails.", False, False),
    "red, code written": (WRITE, (edit(), RED), "It fails.", False, False),
    "the same without the work": ("Add an exporter", (edit(), RED, SAME), OLD_TOO, False, True),
    "more than without the work": ("Add an exporter", (edit(), MORE, SAME), OLD_TOO, None, False),
    "red in a worktree of main": ("Change x", (edit(), RED, ON_MAIN), LATER, False, True),
}


@pytest.mark.shows("I24", "I25")
@pytest.mark.parametrize(("ask", "calls", "final", "is_open", "settled"), SETTLED.values(), ids=SETTLED)
def test_what_is_settled(
    ask: str, calls: tuple[ToolCall, ...], final: str, is_open: bool | None, settled: bool
) -> None:
    """Old findings, a failure that was asked for, one that the untouched code has too."""
    row = the_check(*calls, ask=ask, final=final)
    assert (row.outcome, row.settled) == ("failed", settled)
    assert row.open is is_open or is_open is None


CLOCK = "FAILED tests/test_a.py::test_clock - assert 1 == 2\n1 failed, 9 passed in 2s"
BOTH = "FAILED tests/test_a.py::test_clock\nFAILED tests/test_a.py::test_login\n2 failed, 9 passed in 2s"


@pytest.mark.parametrize("kind", TALES, ids=["opencode", "claude_code"])
@pytest.mark.parametrize(
    ("ask", "output", "settled"),
    [
        ("Fix the login. test_clock is known to be flaky, ignore it.", CLOCK, True),
        ("Fix the login and run the tests, except for test_clock", CLOCK, True),
        ("Behebe den Login. test_clock ist bekannt rot, lass ihn.", CLOCK, True),
        ("Fix the login. Ignore test_other.", CLOCK, False),
        ("Fix the login and test_clock.", CLOCK, False),
        ("Fix the login. Ignore test_clock.", BOTH, False),
    ],
)
def test_a_failure_that_the_person_excluded_by_name(
    kind: type[Tale], ask: str, output: str, *, settled: bool
) -> None:
    """The row names the test, and is settled where every failed test was left out by its name."""
    tale = kind()
    tale.types(ask)
    tale.edits("src/a.py", "1", "2")
    tale.runs("pytest -q", output, 1)
    tale.says("Done.")
    (row,) = collect(tale.transcript()).of("check")
    assert "failed tests: tests/test_a.py::test_clock" in row.text
    assert (row.settled, row.open) == (settled, not settled)
    assert ("the person wanted or excluded this failure" in row.text) is settled


def test_failed_tests_that_failed_before_the_first_edit() -> None:
    """Their names are said, so that nobody blames the work for them."""
    row = the_check(bash("pytest", CLOCK, 1), edit(), bash("pytest", BOTH, 1))
    assert "failed tests: tests/test_a.py::test_clock; tests/test_a.py::test_login" in row.text
    assert row.text.endswith("; failed before the first edit too: tests/test_a.py::test_clock")


def test_flaky_runs_show() -> None:
    """Failed, then passed without an edit in between."""
    assert "flaky: failed 1x" in the_check(edit(), FAIL_Q, TEST).text
    assert "flaky" not in the_check(FAIL_Q, edit(), TEST).text


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


@pytest.mark.shows("I24")
@pytest.mark.parametrize("path", ["", "README.md", "src/a.py", "requirements.txt"])
def test_a_claim_against_a_failed_check_is_open(path: str) -> None:
    """The last run is red and the text says that the tests pass: open, whatever was edited."""
    calls = (*((edit(path),) if path else ()), bash("make test", TWO_FAILED, 2))
    for final in ("The tests pass now.", "All 12 tests pass."):
        row = the_check(*calls, final=final)
        assert (row.outcome, row.open) == ("failed", True)
        assert row.position != "before_last_write"
    said = "The tests fail: 2 failed, because the network is not available here."
    assert not the_check(*calls, final=said).open


def test_a_failure_without_a_claim_and_without_an_edit_is_closed() -> None:
    """Nothing was changed and nothing claimed: a person may have asked how the tests are."""
    for calls in ((), (README,)):
        asked = the_check(
            *calls, bash("make test", TWO_FAILED, 2), ask="How are the tests?", final="Two fail."
        )
        assert not asked.open


def test_a_failure_that_is_older_than_the_work() -> None:
    """The same run failed with the changes stashed away: said, not open."""
    row = the_check(edit(), bash("git stash && pytest; git stash pop", TWO_FAILED, None), FAIL)
    assert (row.open, "stashed away" in row.text) == (False, True)
