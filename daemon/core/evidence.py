"""Evidence: what the transcript proves, as rows a judge can cite. ``daemon.evidence`` makes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Ending = Literal["statement", "question", "next_steps", "announced", "cut_off", "empty"]
CheckKind = Literal["test", "build", "lint"]
RowKind = Literal[
    "requirement",  # one thing the person asked for; these rows are R1, R2 …
    "project_rule",  # a line of the project's own rules that asks for a check
    "write",  # files written, and where the last write is
    "tests_changed",  # tests deleted, skipped or loosened, or their exit code hidden
    "check",  # a test, build or lint run
    "git",  # a commit, push, pull request or issue, and what came of it
    "run",  # the program, a page or a deployment that was run
    "todo",  # an open entry of the agent's own list
    "denied",  # the person rejected a permission
    "tool_error",  # a failed tool call nothing answered
    "unmet",  # something asked for that nothing shows as done
    "leak",  # a commit holds secrets, or files that nobody asked for
    "claim",  # the final text says that something was done, and no call shows it
    "offer",  # the final text asks leave for, or puts off, what was asked for
    "ending",  # how the final text ends
]
Topic = Literal[
    "tests",  # run them
    "new_tests",  # write them
    "build",
    "lint",
    "commit",
    "push",
    "pr",
    "ci",
    "deploy",
    "docs",
    "changelog",
    "browser",  # try it by hand; only ever claimed
]
Wants = Literal["change", "answer", "plan", "unclear"]
Position = Literal["", "before_last_write", "after_last_write"]
Outcome = Literal["", "passed", "failed", "unknown"]


@dataclass(frozen=True, slots=True)
class Row:
    """One fact. ``id`` is what a judge cites (``R1`` …, ``E1`` …), unique within a case.

    ``open``: this row alone proves that something is not finished. All other rows are closed.
    """

    id: str
    kind: RowKind
    text: str
    outcome: Outcome = ""
    position: Position = ""
    open: bool = False
    detail: str = ""
    command: str = ""  # a check's command, as it can be typed again
    check: CheckKind | Literal[""] = ""
    topic: Topic | Literal[""] = ""
    settled: bool = False  # a failure or a change of tests that was wanted, is proven old, or was overtaken
    cites: tuple[str, ...] = ()  # the rows this one rests on


@dataclass(frozen=True, slots=True)
class Act:
    """One line of the activity log: a tool call, several reads in a row, or a mark between them.

    ``id``: what a judge cites (``A12``; ``A3-A9`` for several; empty for a mark). ``said``: the lines of its
    output that decide, each one line. ``rank``: what is left out first when there is no room (3 before 0).
    ``calls``: how many calls it stands for.
    """

    id: str
    text: str
    said: tuple[str, ...] = ()
    rank: int = 3
    calls: int = 1


@dataclass(frozen=True, slots=True)
class FileChange:
    """What the task's calls changed in one file. ``lines``: removed and added lines, with ``-`` and ``+``.

    ``by``: the calls that changed it, by their numbers in the activity log. ``added`` and ``removed`` count
    all lines, ``lines`` may hold fewer.
    """

    path: str
    how: Literal["new", "edited", "deleted", "by_command"]
    by: tuple[str, ...] = ()
    added: int = 0
    removed: int = 0
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Evidence:
    """All rows of one case, in the order of ``RowKind``, the log of what was done, and what it changed.

    ``asks`` and ``forbids``: what the task's messages and the project's rules want and rule out, never both;
    the latest word counts. Nothing is asked of the agent that ``asks`` lacks (I26).
    """

    rows: tuple[Row, ...] = ()
    ending: Ending = "statement"
    tool_calls: int = 0
    writes: int = 0
    code_writes: int = 0  # writes that a check can say something about: no documents
    delegated: bool = False  # a sub-agent may have written
    asks: tuple[Topic, ...] = ()
    forbids: tuple[Topic, ...] = ()
    wants: Wants = "unclear"
    messages: int = 1  # that the person typed for this task
    request_bytes: int = 0  # of all of them, in UTF-8
    log: tuple[Act, ...] = ()
    files: tuple[FileChange, ...] = ()

    def of(self, kind: RowKind) -> tuple[Row, ...]:
        """The rows of one kind."""
        return tuple(r for r in self.rows if r.kind == kind)

    @property
    def open(self) -> tuple[Row, ...]:
        """The rows that prove unfinished work."""
        return tuple(r for r in self.rows if r.open)
