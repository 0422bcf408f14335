"""The net change of a task by file, from edits, writes, patches and here-documents."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.core.evidence import FileChange
from daemon.core.transcript import ToolCall
from daemon.evidence.collect import collect
from daemon.evidence.diffs import MAX_FILES, MAX_LINE, MAX_LINES
from tests.support.hosts.tales import TALES, Tale
from tests.support.transcripts import bash, edit, evidence_of, read, write

TEXTS = st.text(st.sampled_from("ab \n"), min_size=1, max_size=30)


def changes(*calls: ToolCall) -> tuple[FileChange, ...]:
    """What these calls changed."""
    return evidence_of("Fix it", *calls).files


def one(*calls: ToolCall) -> FileChange:
    """The only file that these calls changed."""
    (file,) = changes(*calls)
    return file


@pytest.mark.parametrize("kind", TALES, ids=["opencode", "claude_code"])
def test_both_hosts_edits_and_writes(kind: type[Tale]) -> None:
    """Of an edit its lines, of a new file all, of a file that was read and rewritten the difference."""
    tale = kind()
    tale.types("Fix it")
    tale.reads("src/c.py", "a = 1\nb = 2\nc = 3")
    tale.edits("src/a.py", "def f():\n    return 1", "def f():\n    return 2")
    tale.writes("src/b.py", "x = 1\n\ny = 2\n")
    tale.writes("src/c.py", "a = 1\nb = 5\nc = 3")
    tale.says("Done.")
    found = collect(tale.transcript()).files
    assert found == (
        FileChange("src/a.py", "edited", ("A2",), 1, 1, ("-     return 1", "+     return 2")),
        FileChange("src/b.py", "new", ("A3",), 2, 0, ("+ x = 1", "+ y = 2")),
        FileChange("src/c.py", "edited", ("A4",), 1, 1, ("- b = 2", "+ b = 5")),
    )


@pytest.mark.parametrize(
    "shown",
    [
        "<file>\n00001| 1: a\n00002| b\n</file>",
        "     1→1: a\n     2→b\n\n<system-reminder>\nBe careful.\n</system-reminder>",
        "<path>/r/a.py</path>\n<content>\n1: 1: a\n2: b\n\n(File has more lines. Use 'offset'.)\n</content>",
        "1: a\nb",
    ],
)
def test_what_a_reading_tool_showed(shown: str) -> None:
    """Numbers of lines and notes of the host are no content, in any form that hosts have had."""
    assert one(read("a.py", shown), write("a.py", "1: a\nc")).lines == ("- b", "+ c")


@given(old=TEXTS, new=TEXTS, around=st.text(st.sampled_from("xy"), max_size=30))
def test_an_edit_and_its_undo_leave_nothing(old: str, new: str, around: str) -> None:
    """What was tried and taken back is no change, also where more text was edited around it."""
    assert changes(edit("a.py", old, new), edit("a.py", new, old)) == ()
    back = edit("a.py", f"{around}{new}", f"{around}{old}")
    assert changes(edit("a.py", old, new), back) == ()


def test_several_edits_of_a_file_are_one_change() -> None:
    """From the first state to the last; a file made and edited is new, one removed again is nothing."""
    file = one(edit("a.py", "x = 1", "x = 2"), edit("a.py", "x = 2", "x = 3"), edit("a.py", "x = 3", "x = 4"))
    assert (file.lines, file.by) == (("- x = 1", "+ x = 4"), ("A1", "A2", "A3"))
    made = write("a.py", "x = 1\n")
    new = FileChange("a.py", "new", ("A1", "A2"), 1, 0, ("+ x = 2",))
    assert one(made, edit("a.py", "x = 1", "x = 2")) == new
    assert one(made, write("a.py", "y = 1\n")).lines == ("+ y = 1",)
    assert changes(made, bash("rm a.py")) == ()


def test_deleted_files() -> None:
    """By a command or by a patch; what is written again is there."""
    gone = FileChange("src/a.py", "deleted", ("A1", "A2"))
    assert one(edit(), bash("git rm src/a.py")) == gone
    assert one(bash("rm src/a.py"), edit()).how == "edited"


PATCH = """*** Begin Patch
*** Delete File: src/old.py
*** Add File: src/new.py
+a = 1
+b = 2
*** Update File: src/used.py
@@ def f
-x = 1
+x = 2
*** End Patch"""


@pytest.mark.parametrize("key", ["patchText", "input", "patch"])
def test_patches(key: str) -> None:
    """Each file with its own lines; those that the patch adds or deletes whole are named so."""
    assert changes(ToolCall("c", "apply_patch", "completed", {key: PATCH})) == (
        FileChange("src/old.py", "deleted", ("A1",)),
        FileChange("src/new.py", "new", ("A1",), 2, 0, ("+ a = 1", "+ b = 2")),
        FileChange("src/used.py", "edited", ("A1",), 1, 1, ("- x = 1", "+ x = 2")),
    )


@pytest.mark.parametrize(
    ("command", "how", "lines"),
    [
        ("cat > a.py <<'EOF'\nx = 1\n\ny = 2\nEOF", "new", ("+ x = 1", "+ y = 2")),
        ("mkdir -p b && cat <<EOF > a.py\nx = 1\nEOF\npytest -q", "new", ("+ x = 1",)),
        ("tee a.py <<'EOF'\nx = 1\nEOF", "new", ("+ x = 1",)),
        ("cat >> a.py <<'EOF'\nx = 1\nEOF", "edited", ("+ x = 1",)),
        ("tee -a a.py <<'EOF'\nx = 1\nEOF", "edited", ("+ x = 1",)),
        ("sed -i s/1/2/ a.py", "by_command", ()),
        ("echo x > a.py", "by_command", ()),
    ],
)
def test_commands_that_write(command: str, how: str, lines: tuple[str, ...]) -> None:
    """A here-document shows its text; of other commands only the file is known."""
    file = one(bash(command))
    assert (file.path, file.how, file.lines, file.by) == ("a.py", how, lines, ("A1",))


def test_other_forms_of_edit() -> None:
    """Several edits in a call, a notebook's cell, a call whose text is not known; a failed one is none."""
    several = [{"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": "d"}]
    call = ToolCall("c", "MultiEdit", "completed", {"file_path": "/repo/a.py", "edits": several})
    assert one(call).lines == ("- a", "+ b", "- c", "+ d")
    cell = {"notebook_path": "/repo/n.ipynb", "new_source": "x = 1"}
    assert one(ToolCall("c", "NotebookEdit", "completed", cell)).lines == ("+ x = 1",)
    assert one(ToolCall("c", "write", "completed", {"filePath": "a.py"})).how == "by_command"
    assert changes(edit(error="oldString not found")) == ()


def test_whose_work_it_is() -> None:
    """A sub-agent's edit by its inner call, what a script wrote by its call; no logs or caches."""
    assert one(ToolCall("t", "task", "completed", {}, inner=(read(), edit()))).by == ("A1.2",)
    file = one(bash("python3 - <<'EOF'\nopen('a.py', 'w').write('x')\nEOF"))
    assert (file.how, file.by) == ("by_command", ("A1",))
    by_products = [write(path, "x") for path in ("/tmp/x.py", "out.log", "node_modules/a.js")]
    assert changes(*by_products, bash("rm -rf dist")) == ()


def test_long_changes_are_counted_whole() -> None:
    """Of many lines some are kept, of a long line its ends, of many files the first."""
    file = one(write("a.py", "\n".join(f"line {i}" for i in range(500)) + "\n" + "z" * 9_999))
    assert (file.added, len(file.lines)) == (501, MAX_LINES)
    assert len(one(write("a.py", "z" * 9_999)).lines[0]) <= MAX_LINE + 2
    assert len(changes(*(write(f"f{i}.py", "x") for i in range(MAX_FILES + 9)))) == MAX_FILES


@pytest.mark.shows("I27")
@given(old=st.text(max_size=80), new=st.text(min_size=1, max_size=80), path=st.text(min_size=1, max_size=40))
def test_any_edit_makes_lines_that_are_lines(old: str, new: str, path: str) -> None:
    """Each begins with its sign, and holds no line break of any kind."""
    for file in changes(edit(path, old, new), write(path, new)):
        assert file.path.splitlines() in ([file.path], [])
        assert all(line[:2] in {"+ ", "- "} and line.splitlines() == [line] for line in file.lines)
        assert len(file.lines) <= file.added + file.removed
