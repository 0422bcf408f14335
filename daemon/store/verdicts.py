"""Verdict rows: exactly one final verdict per turn (I21), and whether its file was written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from ..core.verdict import Verdict
from .retention import DAY_MS, old
from .sessions import below

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .db import Row, Statement
    from .readonly import Reads

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Verdict).decode
KEEP_DAYS = 400
LOOKED_AT = 2_000
TOLD = 100
FOLDERS_OF = 200
ALWAYS: Final = 2**53  # epoch ms: later than anything


class StoredVerdict(Struct, frozen=True):
    """A verdict and the workspace it belongs to."""

    verdict: Verdict
    directory: str


class Round(Struct, frozen=True):
    """A verdict of a session and its number; the oldest verdict that is kept is number 1."""

    number: int
    stored: StoredVerdict


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
    return (f"DELETE FROM verdicts WHERE {old('verdicts')}", [(now - KEEP_DAYS * DAY_MS,)])


class Verdicts:
    """The read side."""

    def __init__(self, db: Reads, on_unreadable: Callable[..., object] = lambda **_: None) -> None:
        """``on_unreadable``: told, once for each row, the ``error`` (I43)."""
        self._db = db
        self._on_unreadable = on_unreadable
        self._told: set[bytes] = set()

    def unfiled(self) -> list[StoredVerdict]:
        """Newest verdicts whose file a crash may have kept from the disk; older ones are over."""
        rows = self._db.read(
            "SELECT body, directory FROM verdicts AS v WHERE filed = 0 AND at = "
            "(SELECT max(at) FROM verdicts WHERE session = v.session) ORDER BY at"
        )
        return self._readable(rows)

    def newest(self, session: str = "", limit: int = 50) -> list[StoredVerdict]:
        """Newest first, of one session or all."""
        where, parameters = ("WHERE session = ? ", (session, limit)) if session else ("", (limit,))
        rows = self._db.read(
            f"SELECT body, directory FROM verdicts {where}ORDER BY at DESC LIMIT ?",
            parameters,
        )
        return self._readable(rows)

    def rounds(
        self, session: str, *, upto: int = 0, since: int = 0, until: int = ALWAYS, limit: int = 50
    ) -> list[Round]:
        """The session's rounds up to number ``upto`` (0: to its last one), not before ``since`` and before
        ``until`` (epoch ms), newest first.
        """
        rows = self._db.read(
            "SELECT body, directory, n FROM (SELECT body, directory, at, "
            "row_number() OVER (ORDER BY at, turn) AS n FROM verdicts WHERE session = ?) "
            "WHERE (? = 0 OR n <= ?) AND at >= ? AND at < ? ORDER BY n DESC LIMIT ?",
            (session, upto, upto, since, until, limit),
        )
        return [
            Round(int(n), stored) for body, folder, n in rows for stored in self._readable([(body, folder)])
        ]

    def how_many(self, session: str) -> int:
        """The number of the session's rounds."""
        return int(self._db.read("SELECT count(*) FROM verdicts WHERE session = ?", (session,))[0][0])

    def sessions(
        self,
        directory: str,
        since: int,
        limit: int,
        *,
        until: int = ALWAYS,
        after: tuple[int, str] = (ALWAYS, ""),
    ) -> list[tuple[int, str]]:
        """Sessions with a round in this folder or below it (empty: in any), not before ``since`` and before
        ``until`` (epoch ms), each with the time of its newest such round; that with the newest first.
        ``after``: those that follow this one.
        """
        inside = "AND (directory = ? OR directory >= ? AND directory < ?) "
        where, parameters = (inside, (directory, *below(directory))) if directory else ("", ())
        rows = self._db.read(
            f"SELECT max(at), session FROM verdicts WHERE at >= ? AND at < ? {where}"
            "GROUP BY session HAVING (max(at), session) < (?, ?) ORDER BY 1 DESC, 2 DESC LIMIT ?",
            (since, until, *parameters, *after, limit),
        )
        return [(int(at), str(session)) for at, session in rows]

    def judged_in(self, folders: Sequence[str]) -> set[str]:
        """Those of the folders in which a session was judged."""
        marks = ", ".join("?" * len(folders))
        rows = self._db.read(
            f"SELECT DISTINCT directory FROM verdicts WHERE directory IN ({marks})", tuple(folders)
        )
        return {str(directory) for (directory,) in rows}

    def newest_session(self, directory: str = "") -> str:
        """The session of the newest verdict, in this folder or below it if one of the newest ``LOOKED_AT`` is
        there; "" when there is none.
        """
        newest = "SELECT session, directory, at FROM verdicts ORDER BY at DESC LIMIT ?"
        rows = self._db.read(
            f"SELECT session FROM ({newest}) "
            "ORDER BY (directory = ? OR directory >= ? AND directory < ?) DESC, at DESC LIMIT 1",
            (LOOKED_AT, directory, *below(directory)),
        )
        return str(rows[0][0]) if rows else ""

    def folders(self) -> set[str]:
        """The folders of the newest verdicts."""
        rows = self._db.read("SELECT directory FROM verdicts ORDER BY at DESC LIMIT ?", (FOLDERS_OF,))
        return {str(directory) for (directory,) in rows}

    def counts(self) -> dict[str, int]:
        """The number of kept verdicts of each state."""
        return dict(self._db.read("SELECT state, count(*) FROM verdicts GROUP BY state"))

    def by_week(self, since: int, until: int, first: int, week: int) -> dict[tuple[int, str], int]:
        """The number of verdicts from ``since`` to ``until`` by week and state. A week is as long as
        ``week``; ``first``: the beginning of the one with the number 0. All in ms.
        """
        rows = self._db.read(
            "SELECT (at - ?) / ? AS week, state, count(*) FROM verdicts WHERE at >= ? AND at < ? "
            "GROUP BY week, state",
            (first, week, since, until),
        )
        return {(int(number), str(state)): int(n) for number, state, n in rows}

    def _readable(self, rows: list[Row]) -> list[StoredVerdict]:
        """The verdicts of these rows (body, directory). An unreadable one is left out, and reported."""
        found = []
        for body, directory in rows:
            try:
                found.append(StoredVerdict(_decode(body), directory))
            except (msgspec.MsgspecError, TypeError, UnicodeDecodeError, RecursionError) as e:
                told = bytes(body) if isinstance(body, bytes) else repr(body).encode()
                if told not in self._told and len(self._told) < TOLD:
                    self._told.add(told)
                    self._on_unreadable(error=str(e))
        return found
