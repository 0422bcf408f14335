"""What changes files, and which of the changes matter."""

from __future__ import annotations

import pytest

from daemon.evidence.calls.actions import Write
from daemon.evidence.calls.commands import read_script
from daemon.evidence.calls.writes import is_prose, matters, written_by_tool


def writes(script: str) -> list[str]:
    return [a.path for a in read_script(script, "/repo") if isinstance(a, Write)]


@pytest.mark.parametrize(
    ("script", "paths"),
    [
        ("echo hi > a.py", ["a.py"]),
        ("cat >> src/b.py <<EOF\nx > y\nEOF", ["src/b.py"]),
        ("printf x | tee -a c.cfg", ["c.cfg"]),
        ("sed -i 's/a/b/' d.py", ["d.py"]),
        ("sed -i.bak -e s/a/b/ d.py", ["d.py"]),
        ("perl -pi -e s/a/b/ d.py", ["d.py"]),
        ("mv a b", ["a", "b"]),
        ("rm -rf src/old", ["src/old"]),
        ("cp a b", ["b"]),
        ("git apply fix.patch", ["fix.patch"]),
        ("git checkout -- a.py", ["a.py"]),
        ("git reset --hard", ["git reset"]),
        ("python - <<'E'\nopen('a.py', 'w').write(x)\nE", ["files, by a python script"]),
        ("python -c \"from pathlib import Path; Path('a').write_text('b')\"", ["files, by a python script"]),
        ("ls 2>/dev/null > list.txt", ["list.txt"]),
    ],
)
def test_shell_writes(script: str, paths: list[str]) -> None:
    """Redirections and the commands that change files are writes."""
    assert writes(script) == paths


@pytest.mark.parametrize(
    "script",
    [
        "pytest 2>&1",
        "pytest > out.txt 2>&1",
        "pytest | tee report.txt",
        "pytest 2> err.txt",
        "sed -n 1,5p a.py",
        "git status",
        "git commit -m 'a > b'",
        "git apply --check x.patch",
        "git restore --staged a.py",
        "git checkout main",
        "git switch -c feature",
        "echo 'a > b'",
        'echo "x >> y"',
        "test 1 -gt 0",
        "awk '$1 > 2' data.csv",
        "cat < in.txt",
        "python -c 'print(open(\"a\").read())'",
        "diff <(ls a) <(ls b)",
    ],
)
def test_no_shell_writes(script: str) -> None:
    """Logs of a check, quoted arrows and reading commands write nothing."""
    assert writes(script) == []


@pytest.mark.parametrize(
    "path", ["/dev/null", "/tmp/x.py", "out.log", "node_modules/a/b.js", "dist/x.js", ".git/x"]
)
def test_by_products_do_not_matter(path: str) -> None:
    """Scratch files, caches and build products are no part of the work."""
    assert not matters(path, "/repo")


def test_a_project_in_a_temporary_folder_matters() -> None:
    """A project may itself live under /tmp."""
    assert matters("/tmp/work/src/a.py", "/tmp/work")
    assert is_prose("docs/README.md")
    assert not is_prose("src/a.py")


def test_edit_tools() -> None:
    """Edit tools name their files in several ways; other tools write nothing."""
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n*** Add File: b/c.py\n+x\n*** End Patch"
    assert [w.path for w in written_by_tool("apply_patch", {"patchText": patch})] == ["a.py", "b/c.py"]
    assert written_by_tool("Edit", {"file_path": "x.py"}) == (Write("x.py", "edit"),)
    assert written_by_tool("write", {"filePath": 5}) == (Write("a file", "write"),)
    assert written_by_tool("read", {"filePath": "x.py"}) == ()
