"""Check rows: which failures prove unfinished work, and above all which don't."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from daemon.core.evidence import Evidence, Row
from daemon.core.transcript import ToolCall, Transcript
from daemon.evidence.collect import collect
from tests.support.hosts.tales import TALES
from tests.support.transcripts import PASSED, RED, TEST, bash, edit, evidence_of, task

if TYPE_CHECKING:
    from tests.support.hosts.tales import Tale

TWO_FAILED = "2 failed, 5 passed in 0.12s"


ESLINT = (
    "/repo/scripts/old.js\n  4:7  error  'fs' is not used  no-unused\n\n✖ 1 problem (1 error, 0 warnings)"
)


def session(*calls: ToolCall, ask: str = "Fix the bug", final: str = "Done.", **more: Any) -> Transcript:
    return task(ask, *calls, final=final, **more)


def the_check(evidence: Evidence) -> Row:
    (row,) = evidence.of("check")
    return row


@pytest.mark.shows("I24")
def test_failed_after_the_last_edit_is_open() -> None:
    """The tool result decides, not what the final text says about it."""
    row = the_check(collect(session(edit(), bash("pytest -q", TWO_FAILED, 1), final="All tests pass!")))
    assert (row.outcome, row.position, row.open) == ("failed", "after_last_write", True)
    assert row.command == "pytest -q"
    assert row.detail == TWO_FAILED


def test_failed_then_passed_is_answered() -> None:
    """A run that fails before the fix and passes after it is how work goes."""
    evidence = collect(session(bash("pytest", TWO_FAILED, 1), edit(), bash("pytest -q", PASSED)))
    assert the_check(evidence).outcome == "passed"
    assert not evidence.open


def test_failed_before_the_last_edit_and_never_again() -> None:
    """The row says that nothing ran since."""
    row = the_check(collect(session(edit(), bash("pytest", TWO_FAILED, 1), edit())))
    assert (row.position, row.open) == ("before_last_write", True)
    assert "not run again" in row.text


@pytest.mark.shows("I24")
def test_masked_failures_are_read_from_the_summary() -> None:
    """``| tail`` hides the exit code, not the summary line."""
    row = the_check(collect(session(edit(), bash("pytest 2>&1 | tail -5", f"...\n{TWO_FAILED}\n", 0))))
    assert row.open
    row = the_check(collect(session(edit(), bash("pytest || true", "", 0))))
    assert (row.outcome, row.open) == ("unknown", False)


def test_two_checks_in_one_call() -> None:
    """A chain that stops says which one failed only where the output does."""
    evidence = collect(
        session(edit(), bash("ruff check . && pytest", f"All checks passed!\n{TWO_FAILED}", 1))
    )
    assert [(r.command, r.outcome) for r in evidence.of("check")] == [
        ("ruff check .", "passed"),
        ("pytest", "failed"),
    ]


def test_a_folder_is_part_of_the_scope() -> None:
    """The command to type again names the folder."""
    calls = (
        edit(),
        bash("cd api && npm test", "Tests: 1 failed, 1 total", 1),
        bash("npm test", "", 0, workdir="/repo/web"),
    )
    (row,) = collect(session(*calls)).open
    assert row.command == "cd api && npm test"


@pytest.mark.parametrize(
    "calls",
    [
        (edit(), bash("grep -r foo .", "", 1)),
        (edit(), bash("test -f x", "", 1)),
        (edit(), bash("diff a b", "1c1", 1)),
        (edit(), bash("pytest", "bash: pytest: command not found", 127)),
        (edit(), bash("npm test", "npm error Missing script: test", 1)),
        (edit(), bash("python repro.py", "Traceback", 1)),
        (bash("pytest", TWO_FAILED, 1),),
        (edit(), bash("pytest", "", None)),
        (edit("README.md"), bash("pytest", TWO_FAILED, 1)),
        (edit(), bash("pytest", TWO_FAILED, 1), bash("pytest", PASSED), edit()),
    ],
)
def test_nothing_open(calls: tuple[ToolCall, ...]) -> None:
    """Look-ups, runs that never started, and runs without a change prove nothing."""
    assert not collect(session(*calls)).open


@pytest.mark.parametrize(
    ("ask", "final"),
    [
        ("Fix it", "Done. The 2 failing tests are pre-existing and unrelated to this change."),
        ("Fix it", "The remaining failures also fail on main."),
        ("Write a failing test for the bug", "Done."),
        ("Add a test that fails because of #12, and don't fix it", "Done."),
    ],
)
def test_excused_failures_are_left_to_a_judge(ask: str, final: str) -> None:
    """The row stays, with its outcome; it just doesn't prove anything by itself."""
    row = the_check(collect(session(edit(), bash("pytest", TWO_FAILED, 1), ask=ask, final=final)))
    assert (row.outcome, row.open) == ("failed", False)


@pytest.mark.parametrize(
    "ask", ["Fix the failing tests", "Fix the test that fails", "Make the red tests green"]
)
def test_asking_for_a_fix_is_no_excuse(ask: str) -> None:
    """A request about failing tests doesn't ask for failing tests."""
    assert collect(session(edit(), bash("pytest", TWO_FAILED, 1), ask=ask)).open


def test_documents_do_not_age_a_run() -> None:
    """A README edit after the tests leaves them the last word."""
    row = the_check(collect(session(edit(), bash("pytest", PASSED), edit("README.md"))))
    assert row.position == "after_last_write"


@pytest.mark.shows("I24")
@pytest.mark.parametrize(
    ("calls", "final", "is_open"),
    [
        ((TEST, edit(), RED), "The failure is unrelated to my change.", True),
        ((TEST, edit(), RED), "It is a pre-existing failure.", True),
        ((RED, edit(), RED), "It is a pre-existing failure.", False),
        ((edit(), RED), "The failing `test_x` is unrelated.", False),
        ((TEST, edit(), RED), "`test_x` is flaky.", False),
        ((bash("pytest tests/test_b.py", PASSED), edit(), RED), "The failure is unrelated.", False),
    ],
)
def test_what_passed_before_the_work_is_no_old_failure(
    calls: tuple[ToolCall, ...], final: str, *, is_open: bool
) -> None:
    """A check that passed before the first edit and fails after it was broken by this work."""
    assert bool(evidence_of("Cache the balance", *calls, final=final).open) is is_open


@pytest.mark.shows("I24")
@pytest.mark.parametrize(
    ("ask", "written", "is_open"),
    [
        ("Add a filter", "src/a.js", False),
        ("Add a filter", "scripts/old.js", True),
        ("Add a filter and run eslint", "src/a.js", True),
    ],
)
def test_lint_findings_in_files_nobody_wrote(ask: str, written: str, *, is_open: bool) -> None:
    """A style checker's findings in untouched files are old, unless lint was asked for."""
    found = evidence_of(ask, edit(written), bash("npx eslint .", ESLINT, 1))
    assert bool(found.open) is is_open
    (check,) = found.of("check")
    assert check.settled is not is_open


@pytest.mark.shows("I24")
def test_a_type_checker_may_blame_an_untouched_file() -> None:
    """What one file says can break another for a type checker, so its findings count."""
    out = "src/other.py:3: error: Missing argument\nFound 1 error in 1 file (checked 9 source files)"
    assert evidence_of("Add a filter", edit(), bash("mypy .", out, 1)).open


@pytest.mark.shows("I24")
def test_old_failure_is_settled() -> None:
    """What failed without the work too, no more of it, is settled; more of it is not."""
    base = "git stash -q && pytest -q; git stash pop -q"
    same = bash(base, "FAILED tests/test_a.py::test_x\n1 failed, 6 passed in 0.12s")
    final = "Done; test_x fails on the untouched code too."
    (row,) = evidence_of("Add an exporter", edit("/repo/a.py"), RED, same, final=final).of("check")
    assert row.settled
    more = bash("pytest -q", "FAILED tests/test_a.py::test_x\n2 failed, 5 passed in 0.12s", 1)
    (row,) = evidence_of("Add an exporter", edit("/repo/a.py"), more, same, final=final).of("check")
    assert not row.settled


@pytest.mark.parametrize(
    ("ask", "path", "settled"),
    [
        ("Write a failing test for the bug, don't fix it", "/repo/tests/test_a.py", True),
        ("Write a failing test for the bug, then fix it", "/repo/tests/test_a.py", False),
        ("Write a failing test for the bug", "/repo/src/a.py", False),
    ],
)
def test_wanted_red(ask: str, path: str, *, settled: bool) -> None:
    """A failing test that was asked for is settled where only tests were written."""
    (row,) = evidence_of(ask, edit(path), RED, final="It fails.").of("check")
    assert row.settled is settled


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
    row = the_check(collect(tale.transcript()))
    assert "failed tests: tests/test_a.py::test_clock" in row.text
    assert (row.settled, row.open) == (settled, not settled)
    assert ("the person wanted or excluded this failure" in row.text) is settled


def test_failed_tests_that_failed_before_the_first_edit() -> None:
    """Their names are said, so that nobody blames the work for them."""
    row = the_check(collect(session(bash("pytest", CLOCK, 1), edit(), bash("pytest", BOTH, 1))))
    assert "failed tests: tests/test_a.py::test_clock; tests/test_a.py::test_login" in row.text
    assert row.text.endswith("; failed before the first edit too: tests/test_a.py::test_clock")


@pytest.mark.shows("I24")
@pytest.mark.parametrize(
    ("final", "is_open"),
    [
        ("One case (`Weld.AcrossBorder`) fails, a pre-existing quirk, unrelated.", True),
        ("One case (`Weld.AcrossBorder`) is flaky and unrelated.", False),
        (
            "One case (`Weld.AcrossBorder`) fails; I checked that it fails on main too, so it is unrelated.",
            False,
        ),
        ("One case (`Io.Reads`) fails, which is pre-existing.", False),
    ],
)
def test_excuse_for_the_changed_file(final: str, *, is_open: bool) -> None:
    """ "unrelated" without a run that backs it is no excuse for a test of the file that was changed."""
    assert bool(evidence_of("Speed up welding", edit("/repo/src/weld.cpp"), RED, final=final).open) is is_open


def test_errors_in_files_not_touched() -> None:
    """Findings in files that the work never touched, and the text says so, are not open; own ones are."""
    lint = bash("npx eslint .", "\u2716 3 problems (3 errors, 0 warnings)", 1)
    old = "Done. eslint reports three errors in seed.js; they were there before, I didn't touch that file."
    assert not evidence_of("Add a filter", edit("/repo/src/tickets.js"), lint, final=old).open
    own = "Done. eslint reports three errors in `tickets`; they were there before."
    assert evidence_of("Add a filter", edit("/repo/src/tickets.js"), lint, final=own).open
    assert evidence_of("Add a filter", edit("/repo/src/tickets.js"), lint, final="Done.").open


def test_flaky_runs_show() -> None:
    """Failed, then passed without an edit in between."""
    (row,) = evidence_of("Fix it", edit(), bash("pytest -q", TWO_FAILED, 1), TEST).of("check")
    assert "flaky: failed 1x" in row.text
    (row,) = evidence_of("Fix it", bash("pytest -q", TWO_FAILED, 1), edit(), TEST).of("check")
    assert "flaky" not in row.text


TEXTS = [
    "requirements.txt",
    "requirements-dev.txt",
    "requirements/test.txt",
    "constraints.txt",
    "CMakeLists.txt",
    "lib/CMakeLists.txt",
    "tests/data/expected.txt",
    "README.md",
]


@pytest.mark.shows("I24")
@pytest.mark.parametrize("path", TEXTS)
def test_an_edit_of_a_text_file_is_an_edit(path: str) -> None:
    """A failure may be mended by any file. A run whose end is not visible then replaces it."""
    red = bash("pytest -q", TWO_FAILED, 1)
    (row,) = evidence_of("Fix it", edit(), red, edit(path), TEST).of("check")
    assert "flaky" not in row.text
    masked = bash("pytest -q > /dev/null; echo finished", "finished")
    found = evidence_of("Fix it", edit(), red, edit(path), masked)
    assert [(r.outcome, r.open) for r in found.of("check")] == [("unknown", False)]


@pytest.mark.shows("I24")
@pytest.mark.parametrize("path", TEXTS[:-1])
def test_failed_before_the_last_edit_of_a_text_file(path: str) -> None:
    """What a build or a test reads may have mended it, but no run has answered the failure."""
    row = the_check(evidence_of("Fix it", edit(), bash("pytest -q", TWO_FAILED, 1), edit(path)))
    assert (row.position, row.open) == ("before_last_write", True)
    assert "failed before the last edit and was not run again" in row.text


@pytest.mark.shows("I24")
def test_documents_mend_no_test_and_outdate_no_pass() -> None:
    """A README that is written after the tests ran changes nothing about them, red or green."""
    red = bash("pytest -q", TWO_FAILED, 1)
    row = the_check(evidence_of("Fix it", edit(), red, edit("README.md")))
    assert (row.position, row.open) == ("after_last_write", True)
    assert "failed after the last edit of code" in row.text
    for path in ("README.md", "notes.txt"):
        assert the_check(evidence_of("Fix it", edit(), TEST, edit(path))).position == "after_last_write"
    lint = bash("npx eslint .", ESLINT, 1)
    assert the_check(evidence_of("Fix it", edit(), lint, edit("README.md"))).position == "before_last_write"


@pytest.mark.shows("I24")
@pytest.mark.parametrize("path", ["", "README.md", "src/a.py", "requirements.txt"])
def test_a_claim_against_a_failed_check_is_open(path: str) -> None:
    """The last run is red and the text says that the tests pass: open, whatever was edited."""
    before = (edit(path),) if path else ()
    for final in ("The tests pass now.", "All 12 tests pass."):
        row = the_check(evidence_of("Fix it", *before, bash("make test", TWO_FAILED, 2), final=final))
        assert (row.outcome, row.open) == ("failed", True)
        assert row.position != "before_last_write"
    said = "The tests fail: 2 failed, because the network is not available here."
    assert not the_check(evidence_of("Fix it", *before, bash("make test", TWO_FAILED, 2), final=said)).open


def test_a_failure_without_a_claim_and_without_an_edit_is_closed() -> None:
    """Nothing was changed and nothing claimed: a person may have asked how the tests are."""
    for calls in ((), (edit("README.md"),)):
        found = evidence_of("How are the tests?", *calls, bash("make test", TWO_FAILED, 2), final="Two fail.")
        assert not the_check(found).open


def test_a_failure_that_is_older_than_the_work() -> None:
    """The same run failed with the changes stashed away: said, not open."""
    old = bash("git stash && pytest; git stash pop", TWO_FAILED, None)
    (row,) = evidence_of("Fix it", edit(), old, bash("pytest", TWO_FAILED, 1)).of("check")
    assert (row.open, "stashed away" in row.text) == (False, True)


@pytest.mark.shows("I25")
def test_red_in_a_worktree_of_main() -> None:
    """What fails in a checkout of main as well is older than the work."""
    tree = bash("git worktree add -q /tmp/main main && cd /tmp/main && pytest -q", RED.output, 1)
    rows = evidence_of("Change x", edit(), RED, tree, final="test_x fails; on main it fails as well.")
    assert [(r.outcome, r.open, r.settled) for r in rows.of("check")] == [("failed", False, True)]
    own = bash("git worktree add -b fix /tmp/fix && cd /tmp/fix && pytest -q", RED.output, 1)
    assert evidence_of("Change x", edit(), own).open


@pytest.mark.shows("I24")
def test_make_ignores_what_failed() -> None:
    """Make says itself that it ignored a failure, whatever its exit code."""
    red = "21 examples, 2 failures\n\nmake: [Makefile:2: test] Error 1 (ignored)\nfinished\n"
    assert [r.open for r in evidence_of("Change x", edit(), bash("make test", red)).of("check")] == [True]
    assert not evidence_of("Change x", edit(), bash("make test", "21 examples, 2 failures\n")).open
