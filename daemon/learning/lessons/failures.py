"""Tasks that went badly and wait for their reflexion: one job each, with the worst of their verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from ...store.db import Statement
    from ...store.readonly import Reads

DAY_MS: Final = 86_400_000
KEEP_DAYS: Final = 7
KEPT: Final = 500
BYTES: Final = 200_000  # of one
_encode = msgspec.json.Encoder().encode
_TEXT: Final = "iif(json_valid(CAST(body AS TEXT)), CAST(body AS TEXT), '{}')"
_AT: Final = f"coalesce({_TEXT} ->> '$.at', 0)"
_OLD: Final = (
    f"kind = ? AND ({_AT} < min(?, (SELECT min({_AT}) FROM jobs WHERE kind = ?) + {DAY_MS}) "
    "OR id <= coalesce("
    "(SELECT id FROM jobs WHERE kind = ? ORDER BY id DESC LIMIT 1 OFFSET ?), 0))"
)


def keep(kind: str, key: str, lane: str, due: int, body: dict[str, Any]) -> Statement:
    """Store one, or put off the one of this task that waits; of two the lower ``reward`` stays, the later one
    of equals.
    """
    return (
        "INSERT INTO jobs (kind, key, lane, due, body) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (kind, key) DO UPDATE SET due = excluded.due, body = iif("
        "json_valid(CAST(jobs.body AS TEXT)) AND CAST(excluded.body AS TEXT) ->> '$.reward' "
        "> CAST(jobs.body AS TEXT) ->> '$.reward', jobs.body, excluded.body)",
        [(kind, key, lane, due, _encode(body))],
    )


def drop(kind: str, session: str) -> Statement:
    """Those of this session: a person says that its verdict was wrong."""
    return (
        f"DELETE FROM jobs WHERE kind = ? AND {_TEXT} ->> '$.session' = ?",
        [(kind, session)],
    )


def tasks(db: Reads, session: str) -> list[str]:
    """The tasks of a session that were judged."""
    return [task for (task,) in db.read("SELECT DISTINCT task FROM verdicts WHERE session = ?", (session,))]


def answered(db: Reads, purpose: str, session: str) -> int:
    """How many calls of this purpose were answered for the session."""
    ((count,),) = db.read(
        "SELECT count(*) FROM ledger WHERE purpose = ? AND session = ? AND outcome = 'ok'",
        (purpose, session),
    )
    return int(count)


def prune(kind: str, now: int) -> list[Statement]:
    """Those of seven days, and those beyond the newest 500, lapse and are counted."""
    row = (kind, now - KEEP_DAYS * DAY_MS, kind, kind, KEPT)
    return [
        (
            "INSERT INTO learned_counts (directory, what, count) "
            f"SELECT coalesce({_TEXT} ->> '$.directory', ''), 'memory.lapsed', count(*) FROM jobs "
            f"WHERE {_OLD} GROUP BY 1 "
            "ON CONFLICT (directory, what) DO UPDATE SET count = count + excluded.count",
            [row],
        ),
        (f"DELETE FROM jobs WHERE {_OLD}", [row]),
    ]
