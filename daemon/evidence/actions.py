"""The actions of a tool call: checks that it runs, files that it writes, states that it puts aside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from ..core.evidence import CheckKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..core.transcript import ToolCall

# The hosts' tools by name, and their arguments: which run a shell, which keep the agent's own list.

AGENT_TOOLS: Final = frozenset({"task", "agent"})
SHELL_TOOLS: Final = frozenset({"bash", "shell", "execute", "terminal", "run_command"})
LASTING_SHELL: Final = "Bash"  # Claude Code's shell keeps its folder from call to call
WRITE_TOOLS: Final = frozenset(
    (  # noqa: SIM905 -- a word list
        "edit write patch multiedit apply_patch applypatch notebookedit str_replace create_file "
        "write_file edit_file"
    ).split()
)
TODO_TOOLS: Final = frozenset({"todowrite", "todo_write", "todoread", "taskcreate", "taskupdate", "tasklist"})
QUESTION_TOOLS: Final = frozenset({"question", "askuserquestion"})


def text_of(call: ToolCall, *keys: str) -> str:
    """The first of these arguments that is a text."""
    return first_text(call.input, *keys)


def first_text(values: Mapping[str, object], *keys: str) -> str:
    """The first of these values that is a text."""
    for key in keys:  # asked many times for each call of a task: a generator would take twice as long
        value = values.get(key)
        if value and isinstance(value, str):
            return value
    return ""


def questions_of(call: ToolCall) -> tuple[str, ...]:
    """The questions that a tool asked the person."""
    asked = call.input.get("questions", [call.input])
    if call.tool.lower() not in QUESTION_TOOLS or not isinstance(asked, list):
        return ()
    found = (q.get("question") for q in asked[:10] if isinstance(q, dict))
    return tuple(q for q in found if isinstance(q, str))


DeedKind = Literal["commit", "push", "pr", "issue", "ci", "deploy", "run", "unknown"]


class Check(Struct, frozen=True):
    """One run of a runner. ``text``: what to type again. ``cwd``: where, None when it can't be known.

    ``paths`` and ``filters`` narrow what it looks at (none: everything). ``proves_pass``: exit code 0 of
    the whole script means that this run passed; ``proves_fail``: another code means that it failed.
    """

    kind: CheckKind
    tool: str
    eco: str
    text: str
    wrap: bool = False
    cwd: str | None = None
    paths: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()
    proves_pass: bool = True
    proves_fail: bool = True

    def covers(self, other: Check) -> bool:
        """Says whether this run covers ``other``: same kind of tool, same scope or broader."""
        if not self.same_kind(other) or not _within(other.cwd, self.cwd):
            return False
        if not set(self.filters) <= set(other.filters):
            return False
        return not self.paths or (bool(other.paths) and all(self.reaches(p) for p in other.paths))

    def same_kind(self, other: Check) -> bool:
        """Says whether ``path`` (a file, a folder or a test id) lies in this run's scope."""
        if self.kind != other.kind:
            return False
        wraps = (self.wrap or other.wrap) and ("any" in {self.eco, other.eco} or self.eco == other.eco)
        return self.tool == other.tool or wraps

    def reaches(self, path: str) -> bool:
        """Says whether ``path`` (a file, a folder or a test id) lies in this run's scope."""
        if not self.paths or path in self.paths:
            return True
        return any(
            path.startswith(p) and path[len(p) : len(p) + 2].startswith(("/", "::")) for p in self.paths
        )


class Write(Struct, frozen=True):
    """A file the script changes; ``path`` as written."""

    path: str
    by: str


class Stash(Struct, frozen=True):
    """``git stash`` (``away``) or ``git stash pop``: runs between the two judge the old state."""

    away: bool


class Deed(Struct, frozen=True):
    """Another deed of a command: a commit, a push, a pull request, a deployment, a run of the program.

    ``unknown``: a command that no table has; ``text`` names it, so that no rule claims that nothing was done.
    """

    kind: DeedKind
    text: str
    proves_pass: bool = True
    proves_fail: bool = True


Action = Check | Write | Stash | Deed


def _within(inner: str | None, outer: str | None) -> bool:
    """Says whether folder ``inner`` is ``outer`` or lies in it; an unknown folder may be any."""
    if inner is None or outer is None or outer in {"", "."} or inner == outer:
        return True
    return inner.startswith(outer.rstrip("/") + "/")
