"""Background work that is stored until it is done (see ``engine/jobs``). One row per job.

``kind`` and ``key`` name a job: adding it twice is adding it once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    from .db import Database, Row, Statement

KEPT: Final = 10_000
"""Jobs of one lane; with more the oldest are dropped."""
_COLUMNS: Final = "id, kind, key, lane, due, tries, cursor, body"
_encode = msgspec.json.Encoder().encode


class Job(Struct, frozen=True):
    """``due``: epoch ms. ``cursor``: the progress, in the worker's own words.

    ``lane``: jobs of one lane are done one after the other. ``tries``: the number of failures.
    """

    id: int
    kind: str
    key: str
    lane: str
    due: int
    tries: int
    cursor: str
    body: dict[str, Any]


def add(kind: str, key: str, lane: str, due: int, body: dict[str, Any]) -> Statement:
    """Store a job, unless one with this kind and key waits already."""
    return (
        "INSERT OR IGNORE INTO jobs (kind, key, lane, due, body) VALUES (?, ?, ?, ?, ?)",
        [(kind, key, lane, due, _encode(body))],
    )


def postpone(kind: str, key: str, lane: str, due: int, body: dict[str, Any]) -> Statement:
    """Store a job, or put off the one with this kind and key that waits already."""
    return (
        "INSERT INTO jobs (kind, key, lane, due, body) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (kind, key) DO UPDATE SET due = excluded.due",
        [(kind, key, lane, due, _encode(body))],
    )


def hasten(kind: str, key: str, due: int) -> Statement:
    """A job that waits is due at ``due``, or before."""
    return ("UPDATE jobs SET due = min(due, ?) WHERE kind = ? AND key = ?", [(due, kind, key)])


def hasten_lane(lane: str, due: int) -> Statement:
    """All jobs of the lane are due at ``due``, or before."""
    return ("UPDATE jobs SET due = min(due, ?) WHERE lane = ?", [(due, lane)])


def remove(job: Job) -> Statement:
    """It is done."""
    return ("DELETE FROM jobs WHERE id = ?", [(job.id,)])


def put(job: Job) -> Statement:
    """Store the progress, and the time of the next step."""
    return (
        "UPDATE jobs SET due = ?, tries = ?, cursor = ? WHERE id = ?",
        [(job.due, job.tries, job.cursor, job.id)],
    )


def drop_oldest(lane: str) -> Statement:
    """Keep the newest ``KEPT`` of a lane (I44)."""
    return (
        "DELETE FROM jobs WHERE lane = ? AND id <= "
        "(SELECT id FROM jobs WHERE lane = ? ORDER BY id DESC LIMIT 1 OFFSET ?)",
        [(lane, lane, KEPT)],
    )


def next_of_each_lane(db: Database) -> list[Job]:
    """The job of each lane that is due first, due or not."""
    rows = db.read(
        f"SELECT {_COLUMNS} FROM jobs WHERE id IN (SELECT "
        "(SELECT id FROM jobs WHERE lane = lanes.lane ORDER BY due, id LIMIT 1) "
        "FROM (SELECT DISTINCT lane FROM jobs) AS lanes)"
    )
    return [_job(row) for row in rows]


def waiting(db: Database) -> dict[str, int]:
    """How many jobs of each kind are stored."""
    return dict(db.read("SELECT kind, count(*) FROM jobs GROUP BY kind"))


def _job(row: Row) -> Job:
    identity, kind, key, lane, due, tries, cursor, body = row
    try:
        found = msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        found = {}  # whoever works on it finds nothing to do
    return Job(identity, kind, key, lane, due, tries, cursor, found)
