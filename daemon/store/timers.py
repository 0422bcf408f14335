"""Pending actions on sessions: stored until they are done, or something else happens first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, cast

from msgspec import Struct

if TYPE_CHECKING:
    from .db import Statement
    from .readonly import Reads

PendingKind = Literal["compaction", "nudge", "idle"]
RANK: Final[dict[PendingKind, int]] = {"compaction": 0, "nudge": 1, "idle": 2}


class Pending(Struct, frozen=True):
    """A later action on a session, unless something else happens first: at most one of each kind. When
    several are due, the one that ranks highest goes first. Feedback takes the place of every nudge.

    ``due``: epoch ms. ``length``: how long it was set for, in ms; one that is late by more is dropped.
    ``tries``: how often it was put off. ``turn``: the answer after which it was set.

    The kind `compaction` looks at a session after its context was summarised, `nudge` at a session that got
    feedback, `idle` at a session whose turn could not be judged yet.
    """

    session: str
    kind: PendingKind
    task: str
    turn: str
    due: int
    length: int
    tries: int = 0

    @property
    def key(self) -> tuple[str, PendingKind]:
        """A new action takes the place of an earlier one with the same key."""
        return self.session, self.kind


_COLUMNS = "session, kind, task, turn, due, length, tries"


def put(p: Pending) -> Statement:
    """Store it, in the place of an earlier one of the same kind."""
    row = (p.session, p.kind, p.task, p.turn, p.due, p.length, p.tries)
    return (f"INSERT OR REPLACE INTO timers ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)", [row])


def remove(p: Pending) -> Statement:
    """It was done, or something else happened first."""
    return ("DELETE FROM timers WHERE session = ? AND kind = ?", [p.key])


def stored(db: Reads) -> list[Pending]:
    """All of them; a kind that this version does not know is left out."""
    rows = db.read(f"SELECT {_COLUMNS} FROM timers ORDER BY due")
    return [
        Pending(
            str(session), cast("PendingKind", kind), str(task), str(turn), int(due), int(length), int(tries)
        )
        for session, kind, task, turn, due, length, tries in rows
        if kind in RANK
    ]
