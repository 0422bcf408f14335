"""Rows that state what is there: requirements, writes, todos, refusals, errors, runs."""

from __future__ import annotations

from typing import Any

import pytest

from daemon.core.transcript import Todo, ToolCall, Transcript
from daemon.evidence.collect import collect
from tests.support.hosts.tales import TALES, Tale
from tests.support.transcripts import bash, edit, evidence_of, failed, task

REJECTED = "The user rejected permission to use this specific tool call."


TODO_CALL = ToolCall("todo", "todowrite", "completed", {})


def session(*calls: ToolCall, ask: str = "Fix the bug", final: str = "Done.", **more: Any) -> Transcript:
    return task(ask, *calls, final=final, **more)


def test_writes() -> None:
    """Shell writes count; scratch files don't; failed edits don't."""
    calls = (
        edit("a.py"),
        bash("sed -i s/a/b/ b.py"),
        bash("echo x > /tmp/y"),
        failed("edit", filePath="c.py"),
    )
    evidence = collect(session(*calls, edit("d.md")))
    assert (evidence.writes, evidence.code_writes) == (3, 2)
    assert evidence.of("write")[0].text == "files written: a.py, b.py, d.md; last write: d.md (edit)"


def test_todos_count_only_when_used_here() -> None:
    """A list left over from an earlier task proves nothing."""
    todos = (Todo("done", "completed"), Todo("write docs", "pending"), Todo("dropped", "cancelled"))
    assert not collect(session(edit(), todos=todos)).open
    (row,) = collect(session(TODO_CALL, edit(), todos=todos)).open
    assert (row.kind, row.detail) == ("todo", "write docs")


@pytest.mark.parametrize("kind", TALES, ids=["opencode", "claude_code"])
def test_todos_that_the_work_overtook(kind: type[Tale]) -> None:
    """An entry in progress, after which something was written, or whose file was written, is closed."""
    tale = kind()
    tale.types("Add the settings")
    tale.lists(
        ("Write the settings", "in_progress"), ("create config.py", "pending"), ("write docs", "pending")
    )
    tale.writes("src/config.py", "x = 1\n")
    tale.says("Done.")
    rows = collect(tale.transcript()).of("todo")
    assert [(r.detail, r.open) for r in rows] == [
        ("Write the settings", False),
        ("create config.py", False),
        ("write docs", True),
    ]
    assert all("the list was last changed at A1, before later writes" in r.text for r in rows)
    tale = kind()
    tale.types("Add the settings")
    tale.writes("src/config.py", "x = 1\n")
    tale.lists(("Write the settings", "in_progress"))
    tale.says("Done.")
    assert [r.open for r in collect(tale.transcript()).of("todo")] == [True]


def test_last_tool_error_is_open() -> None:
    """The work ended in an error that nothing answered."""
    (row,) = collect(session(edit(), failed("write", filePath="b.py"))).open
    assert (row.kind, "b.py" in row.text) == ("tool_error", True)


@pytest.mark.parametrize(
    ("calls", "final"),
    [
        ((failed("edit"), edit()), "Done."),
        ((failed("edit", filePath="b.py"), bash("ls")), "Done."),
        ((edit(), failed("read", filePath="nope")), "The file does not exist."),
        ((edit(), failed("webfetch", url="http://x")), "Done."),
        ((edit(), failed("github_get_issue")), "Done."),
        ((edit(), failed("edit")), "I could not edit it. Which file do you mean?"),
        ((edit(), failed("bash", REJECTED, command="rm x")), "Okay."),
        ((edit(), failed("bash", "Tool execution aborted")), "Okay."),
    ],
)
def test_tool_errors_that_are_none(calls: tuple[ToolCall, ...], final: str) -> None:
    """Answered errors, look-ups, questions to the person and refusals are not open."""
    assert not collect(session(*calls, final=final)).open


@pytest.mark.shows("I11")
def test_refusals_have_their_own_row() -> None:
    """What the person refused or stopped is no error; a later success settles it, another way names it."""
    evidence = collect(session(edit(), failed("bash", REJECTED, command="git push")))
    assert [r.text for r in evidence.of("denied")] == ["the person refused or stopped bash (git push)"]
    assert not evidence.of("tool_error")
    assert not collect(session(failed("bash", REJECTED, command="rm x"), bash("ls"))).of("denied")
    assert collect(session(bash("sleep 9", "User aborted the command", None))).of("denied")
    anyway = bash("cat > src/a.py <<'EOF'\nx\nEOF")
    (row,) = collect(session(failed("edit", REJECTED, filePath="src/a.py"), anyway)).of("denied")
    assert row.text.endswith(", and A2 then did it another way")


def test_overtaken_run() -> None:
    """A run that failed on the way and worked later is settled."""
    crashed = bash("python bench.py", "ModuleNotFoundError", 1)
    worked = bash("uv run python bench.py", "88412")
    rows = evidence_of("Measure the throughput", crashed, worked, final="88412 per second.").of("run")
    assert [r.settled for r in rows] == [True, False]
