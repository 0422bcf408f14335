"""Evidence: what the transcript proves, as rows a judge can cite. ``daemon.evidence`` makes them."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

Ending = Literal["statement", "question", "cut_off", "empty"]
CheckKind = Literal["test", "build", "lint"]
RowKind = Literal[
    "write",  # written files, and the place of the last write
    "tests_changed",  # tests deleted, skipped or loosened, or their exit code hidden
    "check",  # a test, build or lint run
    "git",  # a commit, push, pull request or issue, and what came of it
    "run",  # the program, a page or a deployment that was run
    "todo",  # an open entry of the agent's own list
    "denied",  # the person rejected a permission
    "tool_error",  # a failed call without a later success
    "unmet",  # a stand-in for code, an edit that failed, a command that was killed
    "leak",  # a commit holds secrets, or files that nobody asked for
    "ending",  # the host cut the last answer off, or there is none
]
QUESTION_MARKS: Final = ("?", "\uff1f", "\u061f", "\u037e", "\u055e")  # in any script
Position = Literal["", "before_last_write", "after_last_write"]
Outcome = Literal["", "passed", "failed", "unknown"]


class Row(Struct, frozen=True):
    """One fact. ``id`` is what a judge cites (``E1`` …), unique within a case.

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
    settled: bool = False  # a failure that the runs prove to be old, or that a later run overtook


FAILED: Final = 0
"""The rank of a command that failed."""


class Act(Struct, frozen=True):
    """One line of the activity log: a tool call, several reads in a row, or a mark between them.

    ``id``: for cites (``A12``; ``A3-A9`` for several; empty for a mark). ``said``: the decisive lines of its
    output; ``raw``: the first and last lines as printed, shown instead where there is room. ``rank``: the
    order of leaving out (3 before 0; ``FAILED`` for a failed command). ``verifies``: it ran after the last
    edit of code. ``calls``: the number of calls it stands for.
    """

    id: str
    text: str
    said: tuple[str, ...] = ()
    raw: tuple[str, ...] = ()
    rank: int = 3
    verifies: bool = False
    calls: int = 1


class FileChange(Struct, frozen=True):
    """The changes of the task's calls in one file. ``lines``: removed and added lines, with ``-`` and ``+``.

    ``by``: the calls that changed it, by their numbers in the activity log. ``added`` and ``removed`` count
    all lines, ``lines`` may hold fewer.
    """

    path: str
    how: Literal["new", "edited", "deleted", "by_command"]
    by: tuple[str, ...] = ()
    added: int = 0
    removed: int = 0
    lines: tuple[str, ...] = ()


class Evidence(Struct, frozen=True):
    """The rows of a case, the log of its calls, and the changes by file."""

    rows: tuple[Row, ...] = ()
    ending: Ending = "statement"
    tool_calls: int = 0
    writes: int = 0
    code_writes: int = 0  # writes that a check can say something about: no documents
    delegated: bool = False  # a sub-agent may have written
    log: tuple[Act, ...] = ()
    files: tuple[FileChange, ...] = ()

    def of(self, kind: RowKind) -> tuple[Row, ...]:
        return tuple(r for r in self.rows if r.kind == kind)

    @property
    def open(self) -> tuple[Row, ...]:
        """The rows that prove unfinished work."""
        return tuple(r for r in self.rows if r.open)


def ending(text: str, finish: str = "") -> Ending:
    """The ending of an answer, by its form. ``finish``: the host's reason why the model stopped."""
    if finish in {"length", "max_tokens"}:
        return "cut_off"
    end = text.rstrip(" \t\r\n*_`\"')\u00bb\u201d\u2019")
    if not end:
        return "empty"
    return "question" if end.endswith(QUESTION_MARKS) else "statement"
