"""Session rows: the folded state, the ``seq`` marks, the off switches and our judge sessions.

Sessions live in memory (an LRU of ``KEPT``) and are written through before any order leaves.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

import msgspec

from daemon.core.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from daemon.store.db import Database, Statement

KEPT = 500
DAY_MS = 86_400_000
KEEP_DAYS = 90

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Session).decode


class Sessions:
    """Get and put are synchronous (memory first); statements are handed to the caller's commit."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._memory: OrderedDict[str, Session] = OrderedDict()
        self._pinned: dict[str, Session] = {}  # put but not stored yet: never forgotten
        self._aside: dict[str, object] = {}
        self.on_unreadable: Callable[[str, str], None] = lambda _session, _error: None
        self._off = {d for (d,) in db.read("SELECT directory FROM switches")}

    def get(self, session: str) -> Session | None:
        """The session, from memory or the file; None when never seen."""
        found = self._memory.get(session)
        if found is not None:
            self._memory.move_to_end(session)
            return found
        state = self._pinned.get(session) or self._load(session)
        if state is not None:
            self._keep(state)
        return state

    def put(self, state: Session) -> None:
        """Keep in memory; ``unsaved`` tells what to store."""
        self._pinned[state.id] = state
        self._keep(state)

    def unsaved(self) -> dict[str, Session]:
        """States put since they were last ``saved``."""
        return dict(self._pinned)

    def saved(self, states: dict[str, Session]) -> None:
        """These were committed; those that changed meanwhile stay unsaved."""
        for key, state in states.items():
            self._aside.pop(key, None)
            if self._pinned.get(key) is state:
                del self._pinned[key]

    def statement(self, states: dict[str, Session], now: int) -> Statement:
        """The upsert of these states."""
        rows = [(s.id, s.directory, s.phase, _open(s), _top(s), now, _encode(s)) for s in states.values()]
        return (
            "INSERT INTO sessions (id, directory, phase, open, top, updated, state) "
            "VALUES (?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (id) DO UPDATE SET directory = excluded.directory, phase = excluded.phase, "
            "open = excluded.open, top = excluded.top, updated = excluded.updated, state = excluded.state",
            rows,
        )

    def in_memory(self) -> list[Session]:
        """All sessions in memory, the newest state of each."""
        return list((self._memory | self._pinned).values())

    def open_in(self, directory: str, since: int) -> list[str]:
        """Sessions of a directory, stored after ``since`` (epoch ms), that work or wait to be judged."""
        rows = self._db.read(
            "SELECT id FROM sessions WHERE directory = ? AND open = 1 AND updated >= ?", (directory, since)
        )
        waiting = {s.id for s in self._pinned.values() if s.directory == directory and _open(s)}
        return sorted({i for (i,) in rows} | waiting)

    def has_sibling(self, session: str, prefix: str, since: int) -> bool:
        """Another top-level session's id begins with ``prefix``, and it was active since then (epoch ms)."""
        for s in self._pinned.values():
            if s.id != session and s.id.startswith(prefix) and s.active_at >= since and _top(s):
                return True
        rows = self._db.read(
            "SELECT 1 FROM sessions "
            "WHERE id >= ? AND id < ? AND id != ? AND top = 1 AND updated >= ? LIMIT 1",
            (prefix, prefix + "\x7f", session, since),
        )
        return bool(rows)

    def recent(self, limit: int) -> list[Session]:
        """The newest sessions, memory included."""
        rows = self._db.read("SELECT id FROM sessions ORDER BY updated DESC LIMIT ?", (limit,))
        found = (self._pinned.get(i) or self._memory.get(i) or self._load(i) for (i,) in rows)  # no LRU
        return [s for s in found if s is not None]

    def matching(self, prefix: str, limit: int) -> list[str]:
        """Ids that begin with ``prefix``: the whole id first, a person's own sessions before the others."""
        rows = self._db.read(
            "SELECT id FROM sessions WHERE id >= ? AND id < ? ORDER BY id = ? DESC, top DESC, id LIMIT ?",
            (prefix, prefix + "\U0010ffff", prefix, limit),
        )
        return [i for (i,) in rows]

    def seq(self, instance: str) -> int:
        """The stored ``seq`` mark of an instance, 0 when unknown."""
        rows = self._db.read("SELECT seq FROM instances WHERE id = ?", (instance,))
        return int(rows[0][0]) if rows else 0

    def is_off(self, directory: str) -> bool:
        """The project switch (I40)."""
        return directory in self._off

    def switch(self, directory: str, *, on: bool, now: int) -> Statement:
        """Flip the project switch; the statement stores it."""
        if on:
            self._off.discard(directory)
            return ("DELETE FROM switches WHERE directory = ?", [(directory,)])
        self._off.add(directory)
        return ("INSERT OR REPLACE INTO switches (directory, at) VALUES (?, ?)", [(directory, now)])

    def judge_sessions(self, directory: str) -> dict[str, int]:
        """Judge sessions of ours that were never reported deleted: id and when announced (epoch ms)."""
        return dict(
            self._db.read(
                "SELECT id, created FROM judge_sessions WHERE directory = ? AND deleted = 0", (directory,)
            )
        )

    def _load(self, session: str) -> Session | None:
        rows = self._db.read("SELECT state FROM sessions WHERE id = ?", (session,))
        if not rows:
            return None
        try:
            return _decode(rows[0][0])
        except (msgspec.MsgspecError, TypeError, UnicodeDecodeError) as e:
            self._set_aside(session, rows[0][0], str(e))
            return None

    def _set_aside(self, session: str, body: object, error: str) -> None:
        """A row that cannot be read is as good as none, but it is kept (I43)."""
        if session not in self._aside:
            self._aside[session] = body
            self.on_unreadable(session, error)

    def aside(self, now: int) -> Statement:
        """Keep what could not be read, before it is written over."""
        rows = [("session", i, now, body) for i, body in self._aside.items() if i in self._pinned]
        return ("INSERT INTO unreadable (kind, id, at, body) VALUES (?, ?, ?, ?)", rows)

    def _keep(self, state: Session) -> None:
        self._memory[state.id] = state
        self._memory.move_to_end(state.id)
        if len(self._memory) > KEPT:
            self._memory.popitem(last=False)


def _open(s: Session) -> bool:
    """To be looked after when its host comes back: it waits to be judged, or works."""
    return s.recheck or s.phase == "judging" or (s.busy and _top(s))


def _top(s: Session) -> bool:
    """A person's own session: neither a sub-agent's nor a judge's."""
    return not (s.judge or s.parent)


def mark(marks: dict[str, int], now: int) -> Statement:
    """Store the ``seq`` marks of these instances."""
    return (
        "INSERT INTO instances (id, seq, updated) VALUES (?, ?, ?) "
        "ON CONFLICT (id) DO UPDATE SET seq = excluded.seq, updated = excluded.updated",
        [(i, seq, now) for i, seq in marks.items()],
    )


def judge_created(session: str, directory: str, now: int) -> Statement:
    """Remember a judge session of ours before it is prompted (I1)."""
    return (
        "INSERT OR IGNORE INTO judge_sessions (id, directory, created) VALUES (?, ?, ?)",
        [(session, directory, now)],
    )


def judge_deleted(session: str, now: int) -> Statement:
    """The judge session is gone from the host; its id stays known."""
    return ("UPDATE judge_sessions SET deleted = ? WHERE id = ?", [(now, session)])


def prune(now: int) -> tuple[Statement, ...]:
    """Retention: sessions, instances and judge ids 90 days (DESIGN §3)."""
    old = now - KEEP_DAYS * DAY_MS
    return (
        ("DELETE FROM sessions WHERE updated < ?", [(old,)]),
        ("DELETE FROM instances WHERE updated < ?", [(old,)]),
        ("DELETE FROM judge_sessions WHERE created < ?", [(old,)]),
    )
