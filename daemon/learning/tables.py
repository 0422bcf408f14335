"""The tables of learning: judged cases that wait (``spool``), texts that were learned (``learned``), the tags
of points (``learned_tags``), and the texts that each session was given (``injections``).

Statements are handed to a commit, together with the job that they follow from. A case or an origin is bytes
here; its user decodes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import msgspec
from msgspec import Struct

from ..core.given import known_as
from ..store.retention import old

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..store.db import Row, Statement
    from ..store.readonly import Reads

DAY_MS: Final = 86_400_000
SPOOL_DAYS: Final = 7
SPOOL_BYTES: Final = 50_000_000
CASE_BYTES: Final = 1_000_000  # of one case; a larger one is not learned from
INJECTIONS_DAYS: Final = 90
KEEP_DAYS: Final = 400
TEXTS_KEPT: Final = 500  # quarantined ones of one project; of more the oldest go
State = Literal["quarantined", "confirmed", "dismissed"]
_ADDED: Final = "ON CONFLICT (directory, what) DO UPDATE SET count = count + excluded.count"
_encode = msgspec.json.Encoder().encode


class Text(Struct, frozen=True):
    """A text that was learned. ``replaces``: the names of the points that it stands for once it counts.
    ``session`` and ``at``: where and when it was learned. ``why``: one sentence. ``proof``: the row or the
    words that confirmed it.
    """

    id: int
    directory: str
    state: str
    section: str
    text: str
    replaces: tuple[str, ...]
    session: str
    at: int
    why: str = ""
    proof: str = ""


class _Origin(Struct):
    why: str = ""
    proof: str = ""


# --- judged cases that wait -----------------------------------------------------------------------


def keep_case(session: str, turn: str, directory: str, at: int, body: bytes) -> Statement:
    """Spool the case of one turn; one that the turn had goes."""
    return (
        "INSERT OR REPLACE INTO spool (session, turn, directory, at, size, body) VALUES (?, ?, ?, ?, ?, ?)",
        [(session, turn, directory, at, len(body), body)],
    )


def drop_cases(session: str, turns: Iterable[str]) -> Statement:
    return ("DELETE FROM spool WHERE session = ? AND turn = ?", [(session, turn) for turn in turns])


def cases(db: Reads, session: str) -> list[tuple[str, int, bytes]]:
    """(turn, at, case) of the session's turns that wait and whose verdict still stands, oldest first."""
    return db.read(
        "SELECT spool.turn, spool.at, spool.body FROM spool JOIN verdicts USING (session, turn) "
        "WHERE session = ? ORDER BY spool.at, spool.turn",
        (session,),
    )


def look_again(kind: str, session: str, lane: str, due: int, body: bytes) -> Statement:
    """A job for the session, if cases of it wait: they came while it was learned from."""
    return (
        "INSERT OR IGNORE INTO jobs (kind, key, lane, due, body) SELECT ?, ?, ?, ?, ? "
        "WHERE EXISTS (SELECT 1 FROM spool WHERE session = ?)",
        [(kind, session, lane, due, body, session)],
    )


def retry(kind: str, directory: str, mark: str, due: int) -> Statement:
    """The jobs of this folder that wait for a model, their cursors marked, are due at ``due``, or before."""
    return (
        "UPDATE jobs SET due = min(due, ?) WHERE kind = ? AND cursor LIKE ? "
        "AND json_valid(CAST(body AS TEXT)) AND CAST(body AS TEXT) ->> '$.directory' = ?",
        [(due, kind, f"{mark}%", directory)],
    )


def waiting(db: Reads) -> tuple[int, int]:
    """How many cases wait, and their bytes."""
    ((count, size),) = db.read("SELECT count(*), total(size) FROM spool")
    return count, int(size)


def prune(now: int) -> list[Statement]:
    """Cases of seven days or beyond 50 MB lapse and are counted; other rows have their own age."""
    over = (
        "at <= coalesce((SELECT max(at) FROM "
        "(SELECT at, sum(size) OVER (ORDER BY at DESC, session, turn) AS total FROM spool) "
        f"WHERE total > {SPOOL_BYTES}), -1)"
    )
    return [
        *lapse("spool", f"{old('spool')} OR {over}", now - SPOOL_DAYS * DAY_MS),
        (f"DELETE FROM injections WHERE {old('injections')}", [(now - INJECTIONS_DAYS * DAY_MS,)]),
        (f"DELETE FROM learned_tags WHERE {old('learned_tags')}", [(now - KEEP_DAYS * DAY_MS,)]),
        (
            "DELETE FROM learned WHERE state = 'quarantined' AND id IN (SELECT id FROM (SELECT id, "
            "row_number() OVER (PARTITION BY directory ORDER BY id DESC) AS n FROM learned "
            "WHERE state = 'quarantined') WHERE n > ?)",
            [(TEXTS_KEPT,)],
        ),
    ]


def lapse(
    table: str, where: str, before: int, what: str = "lapsed", directory: str = "directory"
) -> list[Statement]:
    """Delete these rows, and count them for their projects. ``where``: SQL with one parameter, ``before``."""
    counted = (
        "INSERT INTO learned_counts (directory, what, count) "
        f"SELECT coalesce({directory}, ''), '{what}', count(*) FROM {table} WHERE {where} GROUP BY 1 {_ADDED}"
    )
    return [(counted, [(before,)]), (f"DELETE FROM {table} WHERE {where}", [(before,)])]


def count(directory: str, what: str, number: int = 1) -> Statement:
    """Add to a project's number of ``what``."""
    return (
        f"INSERT INTO learned_counts (directory, what, count) VALUES (?, ?, ?) {_ADDED}",
        [(directory, what, number)],
    )


def counts(db: Reads, of: str = "") -> dict[str, int]:
    """All projects together. ``of``: how the names begin (``memory.``); else those without a dot."""
    rows = db.read("SELECT what, sum(count) FROM learned_counts GROUP BY what")
    mine = (row for row in rows if (row[0].startswith(of) if of else "." not in row[0]))
    return {what.removeprefix(of): int(n) for what, n in mine}


# --- texts ----------------------------------------------------------------------------------------

_TEXT: Final = "id, directory, state, section, text, replaces, session, at, origin"


def quarantine(
    directory: str,
    section: str,
    text: str,
    session: str,
    at: int,
    why: str = "",
    replaces: Sequence[str] = (),
) -> Statement:
    """Keep a new text apart, unless the project has it already: quarantined, confirmed or dismissed."""
    names = msgspec.json.encode(list(replaces)).decode()
    row = (directory, known_as(text), "quarantined", section, text, names, session, at, _encode(_Origin(why)))
    return (
        "INSERT OR IGNORE INTO learned "
        "(directory, digest, state, section, text, replaces, session, at, origin) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [row],
    )


def settle(text: Text, state: State, proof: str) -> Statement:
    """It was confirmed or dismissed. A dismissed text is never learned again."""
    return (
        "UPDATE learned SET state = ?, origin = ? WHERE id = ? AND state = 'quarantined'",
        [(state, _encode(_Origin(text.why, proof)), text.id)],
    )


def texts(db: Reads, directory: str, state: State = "quarantined") -> list[Text]:
    rows = db.read(
        f"SELECT {_TEXT} FROM learned WHERE directory = ? AND state = ? ORDER BY id", (directory, state)
    )
    return [_text(row) for row in rows]


def text(db: Reads, identity: int) -> Text | None:
    rows = db.read(f"SELECT {_TEXT} FROM learned WHERE id = ?", (identity,))
    return _text(rows[0]) if rows else None


def quarantined(db: Reads, session: str = "") -> int:
    """How many texts wait for confirmation, in all projects. ``session``: those that it taught."""
    sql = "SELECT count(*) FROM learned WHERE state = 'quarantined' AND ?1 IN ('', session)"
    ((count,),) = db.read(sql, (session,))
    return int(count)


def confirmed(db: Reads, directory: str) -> set[str]:
    rows = db.read("SELECT digest FROM learned WHERE directory = ? AND state = 'confirmed'", (directory,))
    return {digest for (digest,) in rows}


def _text(row: Row) -> Text:
    identity, directory, state, section, text, replaces, session, at, origin = row
    try:
        names = tuple(msgspec.json.decode(replaces, type=list[str]))
    except msgspec.MsgspecError:
        names = ()
    try:
        known = msgspec.json.decode(origin, type=_Origin)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        known = _Origin()
    return Text(identity, directory, state, section, text, names, session, at, known.why, known.proof)


# --- what became of points ------------------------------------------------------------------------


def tag(directory: str, name: str, session: str, what: str, at: int, why: str) -> Statement:
    """A session's word on a point. The first one counts."""
    return (
        "INSERT OR IGNORE INTO learned_tags (directory, name, session, tag, at, why) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        [(directory, name, session, what, at, why)],
    )


def tags_of(db: Reads, session: str) -> list[tuple[str, str, str]]:
    """(project, name, tag) of each point that this session was counted for."""
    return db.read(
        "SELECT directory, name, tag FROM learned_tags WHERE session = ? ORDER BY directory, name", (session,)
    )


def forget(session: str) -> list[Statement]:
    """The unconfirmed results of this session: its counts, its cases, its texts that are kept apart."""
    return [
        ("DELETE FROM learned_tags WHERE session = ?", [(session,)]),
        ("DELETE FROM spool WHERE session = ?", [(session,)]),
        ("DELETE FROM learned WHERE session = ? AND state = 'quarantined'", [(session,)]),
    ]


# --- what sessions were given ---------------------------------------------------------------------


def uses(db: Reads, directory: str) -> dict[str, int]:
    where = "WHERE directory = ? AND kind = 'point' GROUP BY name"
    return dict(db.read(f"SELECT name, count(DISTINCT session) FROM injections {where}", (directory,)))


def verdicts_with(db: Reads, directory: str) -> list[tuple[str, str, int, int, int, int]]:
    """Of each point and lesson that sessions of this project were given: kind, name, how many tasks of these
    sessions were judged and were complete at their first verdict, and the same of all tasks in the project
    since it was first given.
    """
    return [
        (kind, name, *map(int, counts))
        for kind, name, *counts in db.read(
            "WITH firsts AS (SELECT session, state, min(at) AS at FROM verdicts WHERE directory = ?1 "
            "AND state IN ('complete', 'incomplete') GROUP BY session, task), "
            "g AS (SELECT kind, name, session, min(at) AS at FROM injections "
            "WHERE kind IN ('point', 'lesson') AND session IN (SELECT session FROM firsts) "
            "GROUP BY kind, name, session), "
            "since AS (SELECT kind, name, min(at) AS at FROM g GROUP BY kind, name) "
            "SELECT s.kind, s.name, total(f.at >= g.at), total(f.at >= g.at AND f.state = 'complete'), "
            "count(f.at), total(f.state = 'complete') FROM since s LEFT JOIN firsts f ON f.at >= s.at "
            "LEFT JOIN g ON g.kind = s.kind AND g.name = s.name AND g.session = f.session "
            "GROUP BY s.kind, s.name ORDER BY s.kind, s.name",
            (directory,),
        )
    ]
