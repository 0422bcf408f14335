"""Session rows: the folded state, the ``seq`` marks, the off switches and our judge sessions.

Sessions live in memory (an LRU of ``KEPT``) and are written through before any order leaves. A folder that is
switched off is off with everything below it.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..core.errors import BadReply
from ..core.session import Session
from .retention import DAY_MS, old

if TYPE_CHECKING:
    from collections.abc import Callable

    from .db import Statement
    from .readonly import Reads

KEPT = 500
KEEP_DAYS = 90
NAMED = 5  # ids or folders in a message

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Session).decode


class Switched(Struct, frozen=True):
    """The effect of ``reflectd off`` or ``on``. ``target``: the session's whole id, or the folder.
    ``changed``: it was the other way before. ``off_above``: the folder that holds the target off all the
    same, "" for none. ``off_below``: the first folders below the target that are off on their own.
    ``sessions``: the number of stored sessions of the folder.
    """

    target: str
    changed: bool
    off_above: str = ""
    off_below: tuple[str, ...] = ()
    sessions: int = 0


class Sessions:
    """Get and put are synchronous (memory first); statements are handed to the caller's commit."""

    def __init__(self, db: Reads, on_unreadable: Callable[..., object] = lambda **_: None) -> None:
        """``on_unreadable``: told the ``session`` and the ``error`` when a stored row can't be read (I43)."""
        self._db = db
        self._on_unreadable = on_unreadable
        self._memory: OrderedDict[str, Session] = OrderedDict()
        self._pinned: dict[str, Session] = {}  # put but not stored yet: never forgotten
        self._aside: dict[str, object] = {}
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
        """Keep in memory; ``unsaved`` has the states to store."""
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
        rows = [(s.id, s.directory, s.phase, is_open(s), _top(s), now, _encode(s)) for s in states.values()]
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

    def open_in(self, directory: str, since: int, limit: int) -> list[str]:
        """Sessions of a directory, stored after ``since`` (epoch ms), that work or wait to be judged: the
        newest of them.
        """
        rows = self._db.read(
            "SELECT id FROM sessions WHERE directory = ? AND open = 1 AND updated >= ? "
            "ORDER BY updated DESC LIMIT ?",
            (directory, since, limit),
        )
        waiting = {s.id for s in self._pinned.values() if s.directory == directory and is_open(s)}
        return sorted({i for (i,) in rows} | waiting)

    def open_after(self, after: tuple[str, str], limit: int) -> list[tuple[str, str]]:
        """(folder, session) of stored sessions that work or wait to be judged: the page that follows."""
        return [
            (str(directory), str(session))
            for directory, session in self._db.read(
                "SELECT directory, id FROM sessions WHERE open = 1 AND (directory, id) > (?, ?) "
                "ORDER BY directory, id LIMIT ?",
                (*after, limit),
            )
        ]

    def open_folders(self) -> set[str]:
        """Folders with sessions that work or wait to be judged."""
        rows = self._db.read("SELECT DISTINCT directory FROM sessions WHERE open = 1 LIMIT 100")
        return {str(directory) for (directory,) in rows}

    def peek(self, session: str) -> Session | None:
        """As ``get``, for one of many: nothing is moved in or out of memory."""
        return self._pinned.get(session) or self._memory.get(session) or self._load(session)

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
        found = (self.peek(i) for (i,) in rows)
        return [s for s in found if s is not None]

    def newest_in(self, directory: str) -> str:
        """The newest of a person's own sessions in this folder or below it, else in the nearest folder above
        it that has one; "" when there is none. Without a folder, the newest of all.
        """
        above = [directory[:n] for n, c in enumerate(directory) if c == "/" and n]
        first, last = below(directory)
        rows = self._db.read(
            "SELECT id FROM sessions WHERE top = 1 AND directory >= ?1 AND directory < ?3 "
            "AND (directory = ?1 OR directory >= ?2) ORDER BY updated DESC LIMIT ?4",
            (directory, first, last, NAMED),
        ) + self._db.read(
            f"SELECT id FROM sessions WHERE top = 1 AND directory IN ({', '.join('?' * len(above))}) "
            "ORDER BY length(directory) DESC, updated DESC LIMIT ?",
            (*above, NAMED),
        )
        found = (self.peek(i) for (i,) in rows)
        return next((s.id for s in found if s is not None and not s.deleted), "")

    def perhaps_waiting(self, since: int) -> list[Session]:
        """A person's own sessions, stored after ``since`` (epoch ms), that work or were judged to need an
        answer, newest first. Their state says which of them ask something.
        """
        rows = self._db.read(
            "SELECT id FROM sessions WHERE (open = 1 OR phase = 'awaiting_user') AND top = 1 "
            "AND updated >= ? ORDER BY updated DESC LIMIT ?",
            (since, KEPT),
        )
        found = (self.peek(i) for i in {i for (i,) in rows} | self._pinned.keys())
        return [s for s in found if s is not None and _top(s)]

    def matching(self, prefix: str, limit: int) -> list[str]:
        """Ids that begin with ``prefix``: the whole id first, then a person's own sessions; sub-agents' and
        judges' only where it begins none of those.
        """
        rows = self._db.read(
            "SELECT id, top FROM sessions WHERE id >= ? AND id < ? "
            "ORDER BY id = ? DESC, top DESC, id LIMIT ?",
            (prefix, prefix + "\U0010ffff", prefix, limit),
        )
        mine = any(top for _, top in rows)
        return [i for i, top in rows if top or not mine or i == prefix]

    def only(self, prefix: str) -> str:
        """The one session whose id is or begins with this; "" when there is none. Raises ``BadReply``."""
        found = self.matching(prefix, NAMED + 1)
        if len(found) > 1 and found[0] != prefix:
            more = " …" if len(found) > NAMED else ""
            raise BadReply(f"{prefix!r} begins several sessions: {', '.join(found[:NAMED])}{more}")
        return found[0] if found else ""

    def seq(self, instance: str) -> int:
        """The stored ``seq`` mark of an instance, 0 when unknown."""
        rows = self._db.read("SELECT seq FROM instances WHERE id = ?", (instance,))
        return int(rows[0][0]) if rows else 0

    def is_off(self, directory: str) -> bool:
        """Says whether judging is switched off in this folder (I40)."""
        return bool(self._off) and self.off_by(directory) != ""

    def off_by(self, directory: str) -> str:
        """The folder whose switch holds this one off: itself, else the nearest above it; "" for none."""
        place = directory
        while place and place not in self._off:
            place = "" if place == "/" else place.rpartition("/")[0] or "/"
        return place

    def off_folders(self) -> list[str]:
        """The folders that are off, each with everything below it."""
        return sorted(self._off)

    def held_by(self, directory: str) -> list[str]:
        """The sessions in memory that this folder's switch holds off."""
        return [s.id for s in self.in_memory() if self.off_by(s.directory) == directory]

    def switch_session(self, identity: str, *, on: bool) -> tuple[Switched, Session]:
        """Switch a known session. Its new state is put, and waits to be stored."""
        before = self.get(identity) or Session(id=identity)
        after = replace(before, off=not on)
        self.put(after)
        return Switched(identity, before.off is on, self.off_by(after.directory)), after

    def switch_folder(self, directory: str, *, on: bool, now: int) -> tuple[Switched, Statement]:
        """Switch a folder, with what is below it. The statement stores it."""
        first, last = below(directory)
        inside = tuple(f for f in self.off_folders() if first <= f < last and f != directory)
        changed = (directory in self._off) is on
        if on:
            self._off.discard(directory)
            statement: Statement = ("DELETE FROM switches WHERE directory = ?", [(directory,)])
        else:
            self._off.add(directory)
            statement = ("INSERT OR REPLACE INTO switches (directory, at) VALUES (?, ?)", [(directory, now)])
        above = self.off_by(directory.rpartition("/")[0] or "/") if directory != "/" else ""
        ((stored,),) = self._db.read(
            "SELECT count(*) FROM sessions WHERE top = 1 "
            "AND (directory = ? OR directory >= ? AND directory < ?)",
            (directory, first, last),
        )
        return Switched(directory, changed, above, inside[:NAMED], int(stored)), statement

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
            found = _decode(rows[0][0])
        except (msgspec.MsgspecError, TypeError, UnicodeDecodeError, RecursionError) as e:
            self._set_aside(session, rows[0][0], str(e))
            return None
        if found.id != session:
            self._set_aside(session, rows[0][0], "it holds the state of another session")
            return None
        return found

    def _set_aside(self, session: str, body: object, error: str) -> None:
        """An unreadable row counts as none, but it is kept (I43)."""
        if session not in self._aside:
            self._aside[session] = body
            self._on_unreadable(session=session, error=error)

    def aside(self, now: int) -> Statement:
        """Keep an unreadable row before it is written over."""
        rows = [("session", i, now, body) for i, body in self._aside.items() if i in self._pinned]
        return ("INSERT INTO unreadable (kind, id, at, body) VALUES (?, ?, ?, ?)", rows)

    def _keep(self, state: Session) -> None:
        self._memory[state.id] = state
        self._memory.move_to_end(state.id)
        if len(self._memory) > KEPT:
            self._memory.popitem(last=False)


def is_open(s: Session) -> bool:
    """Says whether it needs care when its host comes back, or stays away: it waits to be judged, works, or
    asks.
    """
    return s.recheck or s.phase == "judging" or ((s.busy or bool(s.waiting)) and _top(s))


def _top(s: Session) -> bool:
    """A person's own session: neither a sub-agent's nor a judge's."""
    return not (s.judge or s.parent)


def below(directory: str) -> tuple[str, str]:
    """The names of all folders below this one are at least the first text, and less than the second."""
    place = directory.rstrip("/")
    return f"{place}/", f"{place}0"  # "0" follows "/"


def folders_of(db: Reads) -> list[str]:
    """Every folder in which a session was judged or is known."""
    found = db.read("SELECT directory FROM sessions UNION SELECT directory FROM verdicts ORDER BY directory")
    return [str(directory) for (directory,) in found]


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
    """Retention: sessions, instances and judge ids 90 days (docs/service.md)."""
    before = now - KEEP_DAYS * DAY_MS
    return (
        (f"DELETE FROM sessions WHERE {old('sessions', 'updated')}", [(before,)]),
        (f"DELETE FROM instances WHERE {old('instances', 'updated')}", [(before,)]),
        (f"DELETE FROM judge_sessions WHERE {old('judge_sessions', 'created')}", [(before,)]),
    )
