"""The calls read in order: folders, stashes and other trees of the repository."""

from __future__ import annotations

from tests.support.transcripts import PASSED, bash, edit, evidence_of, opened

TWO_FAILED = "2 failed, 5 passed in 0.12s"


def test_a_lasting_shell_keeps_its_folder() -> None:
    """Claude Code's Bash stays where the last ``cd`` went."""
    inside = bash("cd api && pytest", PASSED)
    for shell, is_open in (("Bash", False), ("bash", True)):
        calls = (bash("cd api", tool=shell), edit(), bash("pytest", TWO_FAILED, 1, tool=shell), inside)
        assert bool(opened("Fix the bug", *calls)) is is_open


def test_stashed_runs_are_left_out() -> None:
    """A look at the old state under ``git stash`` is no run of this work."""
    calls = (edit(), bash("pytest", PASSED), bash("git stash && pytest; git stash pop", TWO_FAILED, 0))
    found = evidence_of("Fix the bug", *calls)
    assert [r.outcome for r in found.of("check")] == ["passed"]
    assert not found.open
