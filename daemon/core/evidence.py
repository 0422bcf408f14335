"""Evidence: what the transcript proves, as rows a judge can cite (DESIGN §4). ``collect`` finds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Ending = Literal["statement", "question", "next_steps", "announced", "cut_off", "empty"]
CheckKind = Literal["test", "build", "lint"]
RowKind = Literal[
    "requirement",  # one thing the person asked for; these rows are R1, R2 …
    "gate",  # a line of the project's own rules that asks for a check
    "write",  # files written, and where the last write is
    "tests_changed",  # tests deleted, skipped or loosened, or their exit code hidden
    "check",  # a test, build or lint run
    "git",  # a commit, push, pull request or issue, and what came of it
    "run",  # the program, a page or a deployment that was run
    "todo",  # an open entry of the agent's own list
    "denied",  # the person rejected a permission
    "tool_error",  # a failed tool call nothing answered
    "unmet",  # something asked for that nothing shows as done
    "offer",  # the final text asks leave for, or puts off, what was asked for
    "claim",  # what the final text says was done, and the row that shows it
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

    ``open``: this row alone proves that something is not finished. ``outcome`` of a claim: ``passed`` is
    shown by another row, ``failed`` contradicted by one, ``unknown`` neither.
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
class Evidence:
    """All rows of one case, in the order of ``RowKind``.

    ``asks`` and ``forbids``: what the task's messages and the project's rules want and rule out, the latest
    word counting; never both. Gates are asked for only where ``asks`` has them (I26).
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

    def of(self, kind: RowKind) -> tuple[Row, ...]:
        """The rows of one kind."""
        return tuple(r for r in self.rows if r.kind == kind)

    @property
    def open(self) -> tuple[Row, ...]:
        """The rows that prove unfinished work."""
        return tuple(r for r in self.rows if r.open)
