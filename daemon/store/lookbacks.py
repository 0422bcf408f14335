"""Which sessions a project's playbook has learned from: one row each. A bootstrap leaves them out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .retention import old

if TYPE_CHECKING:
    from .db import Statement
    from .readonly import Reads

DAY_MS: Final = 86_400_000
KEEP_DAYS: Final = 400


def add(directory: str, session: str, at: int) -> Statement:
    """The session was looked back on."""
    return (
        "INSERT OR IGNORE INTO lookbacks (directory, session, at) VALUES (?, ?, ?)",
        [(directory, session, at)],
    )


def of(db: Reads, directory: str) -> set[str]:
    """The project's sessions that were looked back on."""
    rows = db.read("SELECT session FROM lookbacks WHERE directory = ?", (directory,))
    return {session for (session,) in rows}


def prune(now: int) -> Statement:
    """Retention: as the texts that were learned from them, 400 days."""
    return (f"DELETE FROM lookbacks WHERE {old('lookbacks')}", [(now - KEEP_DAYS * DAY_MS,)])
