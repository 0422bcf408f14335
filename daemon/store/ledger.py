"""The ledger: one row per call to a judge, with what it cost (None is unknown, never 0)."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING

from daemon.core.guards import Spent

if TYPE_CHECKING:
    from daemon.store.db import Database, Statement

DAY_MS = 86_400_000
KEEP_DAYS = 400


@dataclass(frozen=True, slots=True)
class Entry:
    """One call. ``outcome``: ``ok``, ``cancelled``, ``timeout`` or ``error: …``. ``cost`` in USD."""

    at: int
    purpose: str
    session: str
    provider: str
    model: str
    input: int
    output: int
    cost: float | None
    ms: int
    outcome: str


def add(entry: Entry) -> Statement:
    """The insert of one row."""
    return (
        "INSERT INTO ledger (at, purpose, session, provider, model, input, output, cost, ms, outcome) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [astuple(entry)],
    )


class Ledger:
    """The read side."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def spent(self, session: str, since: int) -> Spent:
        """USD and unpriced tokens since ``since`` (epoch ms), and the session's USD of all time."""
        today, tokens = self._db.read(
            "SELECT total(cost), sum(iif(cost IS NULL, input + output, 0)) FROM ledger WHERE at >= ?",
            (since,),
        )[0]
        (of_session,) = self._db.read("SELECT total(cost) FROM ledger WHERE session = ?", (session,))[0]
        return Spent(today, of_session, tokens or 0)


def prune(now: int) -> Statement:
    """Retention: 400 days."""
    return ("DELETE FROM ledger WHERE at < ?", [(now - KEEP_DAYS * DAY_MS,)])
