"""Builders for tests: tool calls as opencode records them, and a task: a request, its calls, an answer."""

from __future__ import annotations

import itertools

from daemon.core.evidence import Evidence, Row
from daemon.core.transcript import Message, Todo, ToolCall, Transcript
from daemon.evidence.collect import collect

_ids = itertools.count()

PASSED = "7 passed in 0.10s"
FAILED = "FAILED tests/test_a.py::test_x\n1 failed, 6 passed in 0.12s"


def _call(tool: str, given: dict[str, object], output: str = "", error: str = "") -> ToolCall:
    status = "error" if error else "completed"
    return ToolCall(f"c{next(_ids)}", tool, status, given, output, error=error)


def bash(
    command: str, output: str = "", code: int | None = 0, *, tool: str = "bash", **more: str
) -> ToolCall:
    """A command that ran; ``tool="Bash"`` is Claude Code's shell, which keeps its folder."""
    given: dict[str, object] = {"command": command, **more}
    return ToolCall(f"c{next(_ids)}", tool, "completed", given, output, exit=code)


def edit(path: str = "src/a.py", old: str = "x = 1", new: str = "x = 2", error: str = "") -> ToolCall:
    """An edit of a file, or with ``error`` one that failed."""
    return _call("edit", {"filePath": path, "oldString": old, "newString": new}, "" if error else "ok", error)


def write(path: str, text: str) -> ToolCall:
    """A file that is written whole."""
    return _call("write", {"filePath": path, "content": text}, "Wrote file successfully.")


def read(path: str = "src/a.py", output: str = "x = 1") -> ToolCall:
    """A look at a file."""
    return _call("read", {"filePath": path}, output)


def failed(tool: str, error: str = "oldString not found", **given: object) -> ToolCall:
    """A call that ended in an error."""
    return _call(tool, given, error=error)


def task(
    ask: str | tuple[str, ...],
    *calls: ToolCall,
    final: str = "Done.",
    todos: tuple[Todo, ...] = (),
    finish: str = "stop",
    agent: str = "build",
    directory: str = "/repo",
) -> Transcript:
    """One task: what was asked, one message with the calls, and the final text."""
    asked = (ask,) if isinstance(ask, str) else ask
    messages = (
        *(Message(f"u{i}", "user", i + 1, text, human=True) for i, text in enumerate(asked)),
        Message("a", "assistant", 8, calls=calls, finish="tool-calls", agent=agent),
        Message("z", "assistant", 9, final, finish=finish, agent=agent),
    )
    return Transcript("ses", messages, todos=todos, directory=directory)


def evidence_of(ask: str | tuple[str, ...], *calls: ToolCall, final: str = "Done.") -> Evidence:
    """The evidence of one task."""
    return collect(task(ask, *calls, final=final))


def opened(*calls: ToolCall, ask: str = "Fix the bug", final: str = "Done.") -> list[Row]:
    """The open rows of one task."""
    return list(evidence_of(ask, *calls, final=final).open)


TEST = bash("pytest -q", PASSED)
RED = bash("pytest -q", FAILED, 1)
COMMIT = bash("git commit -am 'Fix'", "[main 1a2b3c4] Fix\n 1 file changed")
PUSH = bash("git push", "To github.com:a/b.git\n   1a2b3c4..5d6e7f8  main -> main")
