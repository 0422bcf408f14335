"""Tests that get weaker, as edits show it."""

from __future__ import annotations

import pytest

from daemon.core.transcript import ToolCall
from daemon.evidence.edits import has_tests, is_test, weakenings
from tests.support.tables import tables
from tests.support.transcripts import edit

ROWS = tables("weakened")


@pytest.mark.parametrize(("path", "expected"), ROWS["test_files"])
def test_test_files(path: str, expected: bool) -> None:
    """The usual layouts; a name that only holds the word is none."""
    assert is_test(path) is expected


@pytest.mark.parametrize(("path", "old", "new", "changes"), ROWS["weaker"])
def test_weaker(path: str, old: str, new: str, changes: list[str]) -> None:
    """Skips, ``.only``, lost assertions and tests, hidden exit codes; not stronger tests, or other code."""
    found = [w.change for w in weakenings(edit(path, old, new))]
    assert set(changes) <= set(found)
    assert bool(changes) is bool(found)


def test_patches_and_several_edits() -> None:
    """Both hosts' ways to edit: a patch, and a list of edits."""
    patch = "*** Begin Patch\n*** Update File: tests/test_a.py\n-    assert a == 1\n+    pass\n*** End Patch"
    call = ToolCall("p", "apply_patch", "completed", {"patchText": patch})
    assert [w.change for w in weakenings(call)] == ["assertions"]
    edits = [{"old_string": "it('a'", "new_string": "it.skip('a'"}]
    call = ToolCall("m", "MultiEdit", "completed", {"file_path": "a.test.js", "edits": edits})
    assert [w.change for w in weakenings(call)] == ["skipped"]


def test_tests_beside_the_code() -> None:
    """Rust keeps its tests in the file they test."""
    assert has_tests("#[cfg(test)]\nmod tests {\n    #[test]\n    fn x() {}\n}")
    assert not has_tests("fn test_like() {}")
