"""Evidence: what the transcript proves, as rows a judge can cite (DESIGN §4). ``collect`` finds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Ending = Literal["statement", "question", "next_steps", "announced", "cut_off", "empty"]
CheckKind = Literal["test", "build", "lint"]
RowKind = Literal[
    "request",  # what the person asked, numbered
    "write",  # files written, and where the last write is
    "check",  # a test, build or lint run
    "todo",  # an open entry of the agent's own list
    "tool_error",  # a failed tool call nothing answered
    "ending",  # how the final text ends
    "denied",  # the person rejected a permission
]
Position = Literal["", "before_last_write", "after_last_write"]
Outcome = Literal["", "passed", "failed", "unknown"]


@dataclass(frozen=True, slots=True)
class Row:
    """One fact. ``id`` is what a judge cites (``E1`` …), unique within a case.

    ``open``: this row alone proves that something is not finished.
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


@dataclass(frozen=True, slots=True)
class Evidence:
    """All rows of one case, in a stable order: requests, writes, checks, todos, errors, ending."""

    rows: tuple[Row, ...] = ()
    ending: Ending = "statement"
    tool_calls: int = 0
    writes: int = 0
    code_writes: int = 0  # writes that a check can say something about: no documents

    def of(self, kind: RowKind) -> tuple[Row, ...]:
        """The rows of one kind."""
        return tuple(r for r in self.rows if r.kind == kind)

    @property
    def open(self) -> tuple[Row, ...]:
        """The rows that prove unfinished work."""
        return tuple(r for r in self.rows if r.open)
