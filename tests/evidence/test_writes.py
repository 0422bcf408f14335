"""What changes files, and which of the changes matter."""

from __future__ import annotations

import pytest

from daemon.evidence.actions import Write
from daemon.evidence.commands import read_script
from daemon.evidence.edits import is_prose, matters, written_by_tool
from tests.support.tables import tables

ROWS = tables("commands")


@pytest.mark.parametrize(("script", "paths"), ROWS["writes"])
def test_shell_writes(script: str, paths: list[str]) -> None:
    """Redirections and commands that change files; not logs of a check, quoted arrows, reading commands."""
    assert [a.path for a in read_script(script, "/repo") if isinstance(a, Write)] == paths


BY_PRODUCTS = ["/dev/null", "/tmp/x.py", "out.log", "node_modules/a/b.js", "dist/x.js", ".git/x"]


def test_what_matters() -> None:
    """Scratch files, caches and build products do not; a project may itself live under /tmp."""
    assert [path for path in BY_PRODUCTS if matters(path, "/repo")] == []
    assert matters("/tmp/work/src/a.py", "/tmp/work")
    assert [is_prose(path) for path in ("docs/README.md", "src/a.py")] == [True, False]


def test_edit_tools() -> None:
    """Edit tools name their files in several ways; other tools write nothing."""
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n*** Add File: b/c.py\n+x\n*** End Patch"
    assert [w.path for w in written_by_tool("apply_patch", {"patchText": patch})] == ["a.py", "b/c.py"]
    assert written_by_tool("Edit", {"file_path": "x.py"}) == (Write("x.py", "edit"),)
    assert written_by_tool("write", {"filePath": 5}) == (Write("a file", "write"),)
    assert written_by_tool("read", {"filePath": "x.py"}) == ()
