"""Verdict rows: exactly one final verdict per turn (I21), and whether its file was written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from daemon.core.verdict import Verdict

if TYPE_CHECKING:
    from daemon.store.db import Database, Statement

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Verdict).decode
DAY_MS = 86_400_000
KEEP_DAYS = 400
LOOKED_AT = 2_000


@dataclass(frozen=True, slots=True)
class StoredVerdict:
    """A verdict and the workspace it belongs to."""

    verdict: Verdict
    directory: str


def add(verdict: Verdict, directory: str, *, once: bool = False) -> Statement:
    """A second verdict for the same turn fails the commit; with ``once`` the first one just stays."""
    verb = "INSERT OR IGNORE" if once else "INSERT"
    return (
        f"{verb} INTO verdicts (session, turn, task, directory, at, state, body) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            (
                verdict.session,
                verdict.turn,
                verdict.task,
                directory,
                verdict.at,
                verdict.state,
                _encode(verdict),
            )
        ],
    )


def remove(session: str, turn: str) -> Statement:
    """Take back a verdict whose text turned out not to be the last (``run`` mode gate)."""
    return ("DELETE FROM verdicts WHERE session = ? AND turn = ?", [(session, turn)])


def filed(verdict: Verdict) -> Statement:
    """Its file is on disk, and so those of the session's earlier turns are over."""
    return (
        "UPDATE verdicts SET filed = 1 WHERE session = ? AND at <= ?",
        [(verdict.session, verdict.at)],
    )


def prune(now: int) -> Statement:
    """Retention: as the ledger, 400 days."""
    return ("DELETE FROM verdicts WHERE at < ?", [(now - KEEP_DAYS * DAY_MS,)])


class Verdicts:
    """The read side."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def unfiled(self) -> list[StoredVerdict]:
        """Newest verdicts whose file a crash may have kept from the disk; older ones are over."""
        rows = self._db.read(
            "SELECT body, directory FROM verdicts AS v WHERE filed = 0 AND at = "
            "(SELECT max(at) FROM verdicts WHERE session = v.session) ORDER BY at"
        )
        return [StoredVerdict(_decode(body), directory) for body, directory in rows]

    def newest(self, session: str = "", limit: int = 50) -> list[StoredVerdict]:
        """Newest first, of one session or all."""
        where, parameters = ("WHERE session = ? ", (session, limit)) if session else ("", (limit,))
        rows = self._db.read(
            f"SELECT body, directory FROM verdicts {where}ORDER BY at DESC LIMIT ?",
            parameters,
        )
        return [StoredVerdict(_decode(body), directory) for body, directory in rows]

    def newest_session(self, directory: str = "") -> str:
        """The session of the newest verdict, in this folder if it has a recent one; "" when there is none."""
        newest = "SELECT session, directory, at FROM verdicts ORDER BY at DESC LIMIT ?"
        rows = self._db.read(
            f"SELECT session FROM ({newest}) ORDER BY directory = ? DESC, at DESC LIMIT 1",
            (LOOKED_AT, directory),
        )
        return str(rows[0][0]) if rows else ""

    def counts(self) -> dict[str, int]:
        """How many verdicts of each state are kept."""
        return dict(self._db.read("SELECT state, count(*) FROM verdicts GROUP BY state"))
