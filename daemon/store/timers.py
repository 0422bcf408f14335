"""Pending actions, so that a restart forgets none: one row per session and kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ..core.pending import RANK, Pending

if TYPE_CHECKING:
    from ..core.pending import PendingKind
    from .db import Database, Statement

_COLUMNS = "session, kind, task, turn, due, length, tries"


def put(p: Pending) -> Statement:
    """Set it; an earlier one of the same kind goes."""
    row = (p.session, p.kind, p.task, p.turn, p.due, p.length, p.tries)
    return (f"INSERT OR REPLACE INTO timers ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)", [row])


def remove(p: Pending) -> Statement:
    """It was done, or something else happened first."""
    return ("DELETE FROM timers WHERE session = ? AND kind = ?", [p.key])


def stored(db: Database) -> list[Pending]:
    """All of them; a kind that this version does not know is left out."""
    rows = db.read(f"SELECT {_COLUMNS} FROM timers ORDER BY due", ())
    found = []
    for session, kind, task, turn, due, length, tries in rows:
        if kind in RANK:
            known = cast("PendingKind", kind)
            found.append(
                Pending(str(session), known, str(task), str(turn), int(due), int(length), int(tries))
            )
    return found
