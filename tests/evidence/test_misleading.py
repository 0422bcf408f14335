"""No row contradicts the log beside it, and the changes are those that are left at the end."""

from __future__ import annotations

import pytest

from daemon.core.evidence import Evidence
from daemon.core.transcript import ToolCall
from tests.support.transcripts import PASSED, RED, TEST, bash, edit, evidence_of, failed, opened, write

WORKFLOW = "\n".join(
    [
        "== unit",
        "FAILED tests/test_a.py::test_x - assert 1 == 2",
        "1 failed, 6 passed in 0.12s",
        *(f"step {i} of the build: compiled module number {i} without a warning" for i in range(120)),
        "== docs built",
        "all steps ran",
    ]
)


def changed(evidence: Evidence) -> dict[str, tuple[str, ...]]:
    """The lines that changed by file."""
    return {f.path: f.lines for f in evidence.files}


@pytest.mark.shows("I24")
@pytest.mark.parametrize("command", ["make ci", "pytest -q; make docs", "pytest -q || true"])
def test_a_failed_test_early_in_a_workflow(command: str) -> None:
    """A workflow that ends with exit 0 after a failed test has not passed, and the log shows the failure."""
    evidence = evidence_of("Fix it", edit(), bash(command, WORKFLOW, 0))
    row = evidence.of("check")[0]
    assert row.outcome != "passed"
    assert any(
        "FAILED tests/test_a.py::test_x" in line for line in (*evidence.log[-1].said, *evidence.log[-1].raw)
    )


def test_a_workflow_that_passed() -> None:
    """The word alone is no failure: a long output whose runner passed has passed."""
    fine = "\n".join(["test_error_is_shown PASSED", *("ok" for _ in range(3_000)), "7 passed in 0.12s"])
    assert evidence_of("Fix it", edit(), bash("pytest -v", fine, 0)).of("check")[0].outcome == "passed"


@pytest.mark.parametrize(
    "calls", [(bash("pytest > /dev/null; echo end", "end"),), (bash("gh run view 4", "?"),)]
)
def test_an_outcome_that_code_can_not_tell(calls: tuple[ToolCall, ...]) -> None:
    """The row names the call instead of saying that nothing shows."""
    row = next(r for r in evidence_of("Fix it", edit(), *calls).rows if r.kind in {"check", "git"})
    assert "(see A2)" in row.text
    assert "not visible" not in row.text


@pytest.mark.parametrize(
    "back",
    [
        "git checkout -- src/a.py",
        "git restore src/a.py",
        "git checkout -- .",
        "git reset --hard",
        "git restore src",
    ],
)
def test_a_reverted_edit(back: str) -> None:
    """What git put back is no change; what was made after it is one."""
    assert "src/a.py" not in changed(evidence_of("Fix it", edit("/repo/src/a.py", "x", "y"), bash(back)))
    again = evidence_of("Fix it", edit("src/a.py", "x", "y"), bash(back), edit("src/a.py", "x", "z"))
    assert changed(again)["src/a.py"] == ("- x", "+ z")


def test_another_commits_state_is_a_change() -> None:
    """A file that was taken from another branch was changed by a command."""
    evidence = evidence_of("Fix it", bash("git checkout main -- src/a.py"))
    assert [(f.path, f.how) for f in evidence.files] == [("src/a.py", "by_command")]


def test_the_branch_of_a_merge() -> None:
    """A branch is no file."""
    for command in (
        "git merge feature/x",
        "git rebase origin/main",
        "git pull origin main",
        "git reset --hard HEAD~1",
    ):
        evidence = evidence_of("Merge it", bash(command, "Fast-forward"))
        assert not {"feature/x", "origin/main", "main", "HEAD~1"} & set(changed(evidence))


def test_the_same_test_twice() -> None:
    """Two edits that share lines are one change: no added line is shown twice."""
    test = "def test_new():\n    assert add(1, 2) == 3"
    first = edit("tests/test_a.py", "import add", f"import add\n\n{test}")
    second = edit(
        "tests/test_a.py",
        f"{test}\n\ndef test_old():",
        f"{test}\n\ndef test_more():\n    pass\n\ndef test_old():",
    )
    lines = changed(evidence_of("Add a test", first, second))["tests/test_a.py"]
    assert len(set(lines)) == len(lines)
    assert "+ def test_new():" in lines
    assert "+ def test_more():" in lines


def test_an_archive_that_was_cleared_away() -> None:
    """Deleting a build product is no edit: the run before it is still the last word."""
    row = evidence_of("Fix it", edit(), TEST, bash("rm dist.tar.gz release.zip")).of("check")[0]
    assert row.position == "after_last_write"
    row = evidence_of("Fix it", edit(), TEST, bash("rm src/b.py")).of("check")[0]
    assert row.position == "before_last_write"


def test_a_killed_exploration() -> None:
    """A command that was killed proves nothing by itself; one that a later run replaced has no row."""
    killed = bash("find / -name x.conf", "Command timed out after 120s", 124)
    (row,) = evidence_of("Fix it", edit(), killed).of("unmet")
    assert not row.open
    assert evidence_of("Fix it", edit(), killed, bash("find / -name x.conf", "/etc/x.conf")).of("unmet") == ()


def test_stand_ins_for_code() -> None:
    """Code that was cut away is open; a stub may have been asked for, so it is said; a filled one is gone."""
    cut = write("a.py", "def a():\n    return 1\n\n# ... rest of the file unchanged ...\n")
    assert [r.kind for r in opened(cut)] == ["unmet"]
    stub = write("a.py", "def a():\n    raise NotImplementedError")
    (row,) = evidence_of("Add it", stub).of("unmet")
    assert not row.open
    filled = edit("a.py", "raise NotImplementedError", "return 1")
    assert evidence_of("Add it", stub, filled).of("unmet") == ()


def test_an_edit_that_failed() -> None:
    """It is said where nothing changed the file after it, and not twice where it was the last call."""
    miss = failed("edit", filePath="/repo/b.py", oldString="x", newString="y")
    (row,) = evidence_of("Change a and b", edit("/repo/a.py"), miss, TEST).of("unmet")
    assert ("b.py" in row.text, row.open) == (True, False)
    assert evidence_of("Change b", miss, edit("/repo/b.py"), TEST).of("unmet") == ()
    last = evidence_of("Change a and b", edit("/repo/a.py"), miss)
    assert (last.of("unmet"), [r.open for r in last.of("tool_error")]) == ((), [True])


def test_a_lasting_shell_keeps_its_folder() -> None:
    """Claude Code's Bash stays where the last ``cd`` went."""
    for shell, is_open in (("Bash", False), ("bash", True)):
        red = bash("pytest", "2 failed, 5 passed in 0.12s", 1, tool=shell)
        calls = (bash("cd api", tool=shell), edit(), red, bash("cd api && pytest", PASSED))
        assert bool(opened(*calls)) is is_open


def test_rows_and_log_name_the_same_call() -> None:
    """Each check says at which call it ran."""
    evidence = evidence_of("Fix it", edit(), RED)
    assert evidence.of("check")[0].text.startswith("test at A2: `pytest -q` failed")
    assert "A2" in [act.id for act in evidence.log]
