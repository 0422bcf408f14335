"""What a back-test found so far: a database of its own, beside the daemon's, so that it needs no daemon.

A file's stops are stored together with the mark that the file is done, or one by one where each was paid for.
So a command that is killed at any point loses nothing and counts nothing twice. What another judge, another
version or other prompts (``by``) found is kept apart. It can be deleted at any time. ``Unavailable`` when it
can't be used.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from ..core.errors import Unavailable, words
from .readonly import ReadOnly

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path

FILE: Final = "backtest.sqlite3"
FORM: Final = 1  # of the tables; a file with another one is left alone
_TABLES: Final = (
    """CREATE TABLE files (
        id INTEGER PRIMARY KEY, path TEXT NOT NULL, judge TEXT NOT NULL, size INTEGER NOT NULL,
        changed INTEGER NOT NULL, by TEXT NOT NULL, done INTEGER NOT NULL, problem TEXT NOT NULL,
        UNIQUE (path, judge))""",
    """CREATE TABLE stops (
        file INTEGER NOT NULL REFERENCES files ON DELETE CASCADE, turn TEXT NOT NULL, mark TEXT NOT NULL,
        at INTEGER NOT NULL, body TEXT NOT NULL, opinion TEXT NOT NULL, PRIMARY KEY (file, turn))""",
    "CREATE INDEX stops_by_mark ON stops (mark)",
    """CREATE TABLE labels (
        judge TEXT NOT NULL, mark TEXT NOT NULL, answer TEXT NOT NULL, at INTEGER NOT NULL,
        PRIMARY KEY (judge, mark))""",
    "CREATE TEMP TABLE chosen (path TEXT PRIMARY KEY) WITHOUT ROWID",
)


def answers(state_dir: Path) -> list[tuple[str, str]]:
    """All that a person said of feedbacks: judge and answer of each. The file is only read, and none made."""
    path = state_dir / FILE
    if not path.is_file():
        return []
    with ReadOnly(path) as db:
        return db.read("SELECT judge, answer FROM labels ORDER BY judge")


@dataclass(frozen=True, slots=True)
class Version:
    """Which file was read, and by whom. ``changed``: its time of change, ns. ``by``: version and prompts."""

    path: str
    judge: str
    size: int
    changed: int
    by: str


@dataclass(frozen=True, slots=True)
class Kept:
    """One stop. ``mark``: that of its copies too. ``body`` and ``opinion``: JSON, the latter may be empty."""

    turn: str
    mark: str
    at: int
    body: str
    opinion: str = ""


class Backtests:
    """``with Backtests(state_dir) as kept``: open for this command."""

    def __init__(self, state_dir: Path) -> None:
        self.path = state_dir / FILE

    def __enter__(self) -> Self:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            self._db = sqlite3.connect(self.path, timeout=10.0, isolation_level=None)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._db.execute("PRAGMA foreign_keys = ON")
            self._make()
        except (OSError, sqlite3.Error) as e:
            said = words(e) if isinstance(e, OSError) else f"{e}; move it away to begin anew"
            raise Unavailable(f"can't use {self.path}: {said}") from e
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def _make(self) -> None:
        with self._change() as db:
            form = db.execute("PRAGMA user_version").fetchone()[0]
            if form not in {0, FORM}:
                raise Unavailable(f"{self.path} was written by another version of reflectd; move it away")
            if not form:
                for statement in _TABLES[:-1]:
                    db.execute(statement)
                db.execute(f"PRAGMA user_version = {FORM}")
            db.execute(_TABLES[-1])

    @contextmanager
    def _change(self) -> Iterator[sqlite3.Connection]:
        """One transaction."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")
        except sqlite3.Error as e:
            raise Unavailable(f"can't use {self.path}: {e}") from e

    def is_done(self, of: Version) -> bool:
        """Whether all stops of the file, as it is now, are stored."""
        sql = """SELECT path, by FROM files
            WHERE path = ? AND judge = ? AND size = ? AND changed = ? AND by = ? AND done"""
        return bool(self._rows(sql, (of.path, of.judge, of.size, of.changed, of.by)))

    def opinion(self, judge: str, by: str, mark: str) -> str:
        """What was paid for a stop or a copy of it, whatever became of its file; empty for nothing."""
        sql = """SELECT s.opinion, '' FROM stops s JOIN files f ON f.id = s.file
            WHERE s.mark = ? AND f.judge = ? AND f.by = ? AND s.opinion != '' LIMIT 1"""
        found = self._rows(sql, (mark, judge, by))
        return found[0][0] if found else ""

    def put(self, of: Version, stops: Iterable[Kept], *, problem: str = "") -> None:
        """Store all stops of a file, which is done then. ``problem``: why there are none or no more."""
        with self._change() as db:
            file = self._file(db, of)
            db.execute("DELETE FROM stops WHERE file = ?", (file,))
            self._add(db, file, stops)
            db.execute("UPDATE files SET done = 1, problem = ? WHERE id = ?", (problem, file))

    def put_one(self, of: Version, stop: Kept) -> None:
        """Store one stop; the others stay as they are."""
        with self._change() as db:
            self._add(db, self._file(db, of), [stop])

    def end(self, of: Version, turns: Collection[str], *, done: bool, problem: str = "") -> None:
        """All stops that could be stored one by one are. ``turns``: those of the file as it is; what an older
        version had besides is removed when it is ``done``.
        """
        with self._change() as db:
            file = self._file(db, of)
            if done:
                had = db.execute("SELECT turn FROM stops WHERE file = ?", (file,)).fetchall()
                gone = ((file, turn) for (turn,) in had if turn not in turns)
                db.executemany("DELETE FROM stops WHERE file = ? AND turn = ?", gone)
            db.execute("UPDATE files SET done = ?, problem = ? WHERE id = ?", (done, problem, file))

    @staticmethod
    def _file(db: sqlite3.Connection, of: Version) -> int:
        """The row of a file, now with this version. What others than ``by`` found in it is removed."""
        db.execute("DELETE FROM files WHERE path = ? AND judge = ? AND by != ?", (of.path, of.judge, of.by))
        db.execute(
            """INSERT INTO files (path, judge, size, changed, by, done, problem) VALUES (?,?,?,?,?,0,'')
            ON CONFLICT (path, judge) DO UPDATE SET done = 0, size = excluded.size, changed = excluded.changed
            WHERE size != excluded.size OR changed != excluded.changed""",
            (of.path, of.judge, of.size, of.changed, of.by),
        )
        sql = "SELECT id FROM files WHERE path = ? AND judge = ?"
        return int(db.execute(sql, (of.path, of.judge)).fetchone()[0])

    @staticmethod
    def _add(db: sqlite3.Connection, file: int, stops: Iterable[Kept]) -> None:
        rows = ((file, s.turn, s.mark, s.at, s.body, s.opinion) for s in stops)
        db.executemany("INSERT OR REPLACE INTO stops VALUES (?,?,?,?,?,?)", rows)

    def choose(self, paths: Iterable[str]) -> None:
        """From now on only these files are looked at."""
        with self._change() as db:
            db.execute("DELETE FROM chosen")
            db.executemany("INSERT OR IGNORE INTO chosen VALUES (?)", ((path,) for path in paths))

    def results(self, judge: str, by: str, since: int = 0) -> Iterator[tuple[str, str, str]]:
        """Path, mark and body of each stop since then (epoch ms) in the chosen files, in order of time. Of a
        stop and its copies one counts.
        """
        sql = """SELECT min(f.path), s.mark, s.body FROM stops s JOIN files f ON f.id = s.file
            JOIN chosen USING (path) WHERE f.judge = ? AND f.by = ? AND s.at >= ?
            GROUP BY s.mark ORDER BY s.at, s.mark"""
        try:
            yield from self._db.execute(sql, (judge, by, since))
        except sqlite3.Error as e:
            raise Unavailable(f"can't read {self.path}: {e}") from e

    def problems(self, judge: str) -> list[tuple[str, str]]:
        """The chosen files that could not be read, and why."""
        sql = """SELECT path, problem FROM files JOIN chosen USING (path)
            WHERE judge = ? AND problem != '' ORDER BY path"""
        return self._rows(sql, (judge,))

    def label(self, judge: str, mark: str, answer: str, at: int) -> None:
        """Keep what a person said of one feedback; the last word counts."""
        with self._change() as db:
            db.execute("INSERT OR REPLACE INTO labels VALUES (?,?,?,?)", (judge, mark, answer, at))

    def labels(self, judge: str) -> dict[str, str]:
        """What a person said: mark -> answer."""
        return dict(self._rows("SELECT mark, answer FROM labels WHERE judge = ?", (judge,)))

    def _rows(self, sql: str, values: tuple[object, ...]) -> list[tuple[str, str]]:
        try:
            return self._db.execute(sql, values).fetchall()
        except sqlite3.Error as e:
            raise Unavailable(f"can't read {self.path}: {e}") from e
