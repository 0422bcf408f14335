"""One SQLite file, written by one thread with group commit (design/architecture.md).

Owns the connections and the threads; knows no table. WAL, and no disk sync on the host's path: decisions,
which must survive a power cut, are synced after their commit and beside the writer (``Syncs``). A job that
fails is rolled back alone and its caller gets ``Unavailable``; the others of its group are committed. A
corrupt database is kept aside and a new one is begun (I43): ``opened.aside`` names it. A row whose values are
not of their columns' types is moved to the table ``unreadable``: ``opened.rows`` counts them.
"""

from __future__ import annotations

import asyncio
import os
import queue
import secrets
import sqlite3
import threading
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from ..core.errors import Unavailable, UserError, words
from .migrations import MIGRATIONS
from .readonly import text

if TYPE_CHECKING:
    from collections.abc import Callable

OURS: Final = frozenset({"migrations", "unreadable"})
MOST: Final = 1e9  # of a REAL: a cost in USD
_WRONG: Final = {
    "TEXT": "typeof({c}) != 'text'",
    # no clock and no count has more
    "INTEGER": f"(typeof({{c}}) != 'integer' OR {{c}} NOT BETWEEN 0 AND {1 << 53})",
    "BLOB": "typeof({c}) NOT IN ('blob', 'text')",
    "SIGNED": f"(typeof({{c}}) NOT IN ('real', 'integer') OR {{c}} NOT BETWEEN -{MOST:.0f} AND {MOST:.0f})",
    "REAL": f"(typeof({{c}}) NOT IN ('real', 'integer') OR {{c}} NOT BETWEEN 0 AND {MOST:.0f})",
}


def set_aside(c: sqlite3.Connection, now: int) -> dict[str, int]:
    """Move rows with a value that is not of its column's type to ``unreadable``, as SQL literals: they would
    stop the daemon at its start (I43). Table → how many, for those that had any. ``now``: epoch ms.

    A BLOB's content is not looked at: the decoder leaves out what it can't decode. The tables behind a
    full-text index are SQLite's own.
    """
    found = {}
    tables = [name for (name,) in c.execute("SELECT name FROM pragma_table_list WHERE type = 'table'")]
    for table in tables:
        if table in OURS or table.startswith("sqlite_"):
            continue
        columns = list(c.execute(f"PRAGMA table_info({table})"))
        damaged = " OR ".join(_damaged(name, kind, needed) for _, name, kind, needed, *_ in columns)
        if c.execute(f"SELECT 1 FROM {table} WHERE {damaged} LIMIT 1").fetchone() is None:
            continue
        values = " || ', ' || ".join(f"quote({name})" for _, name, *_ in columns)
        key = columns[0][1]
        c.execute("BEGIN IMMEDIATE")
        c.execute(
            "INSERT INTO unreadable (kind, id, at, body) "
            f"SELECT ?, quote({key}), ?, {values} FROM {table} WHERE {damaged}",
            (table, now),
        )
        found[table] = c.execute(f"DELETE FROM {table} WHERE {damaged}").rowcount
        c.execute("COMMIT")
    return found


def _damaged(name: str, kind: str, needed: int) -> str:
    """SQL: is the column's value of another type, or missing where there must be one?"""
    wrong = _WRONG.get(kind.upper(), "0").format(c=name)
    return f"({name} IS NULL OR {wrong})" if needed else f"({name} IS NOT NULL AND {wrong})"


Waiting = tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]

COMMITS: Final = 200
"""Commits after which the WAL is moved. One is two to ten pages: about as often as SQLite's own 1,000."""
LONGEST: Final = 4_000
"""Pages of the WAL at which the writer moves it itself, because the thread beside it does not keep up."""
PASSES: Final = 4  # each moves what was committed during the one before, ever less


def sync_data(fd: int) -> None:
    """Have the disk keep the file's content. Raises ``OSError``."""
    getattr(os, "fdatasync", os.fsync)(fd)  # macOS has no fdatasync


def sync_folder(folder: str | Path) -> None:
    """Have the disk keep which files the folder has. Raises ``OSError``: some file systems can't."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


class Syncs:
    """Syncs the WAL, in a thread beside the writer: no event waits for a sync. Callers during a sync share
    the next one.

    A commit is in the WAL when it returns (``synchronous=NORMAL``): ``kill -9`` does not lose it. After
    ``synced`` a power cut does not either, as with ``synchronous=FULL``.
    """

    def __init__(self, database: Path, sync: Callable[[int], None] = sync_data) -> None:
        """The database must be open, so that its WAL is there and stays. Raises ``OSError``."""
        place = os.path.realpath(database)
        self._folder = os.path.dirname(place)  # noqa: PTH120 - a text, as SQLite makes the name
        self._fd = os.open(f"{place}-wal", os.O_RDONLY | os.O_CLOEXEC)
        self._sync = sync
        self._queue: queue.SimpleQueue[Waiting | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="reflectd-sync", daemon=True)
        self._thread.start()

    async def synced(self) -> None:
        """Returns when earlier commits are on the disk. Raises ``Unavailable``."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        self._queue.put((loop, done))
        await done

    def close(self) -> None:
        """Sync the pending requests, then end."""
        self._queue.put(None)
        self._thread.join()
        os.close(self._fd)

    def _run(self) -> None:
        with suppress(OSError):  # some file systems can't
            sync_folder(self._folder)  # the WAL may be new; SQLite would do it with the first sync of its own
        while (asked := self._queue.get()) is not None:
            waiting: list[Waiting | None] = [asked]
            with suppress(queue.Empty):
                while waiting[-1] is not None:
                    waiting.append(self._queue.get_nowait())
            error: OSError | None = None
            try:
                self._sync(self._fd)
            except OSError as e:
                error = e
            for each in waiting:
                if each is None:
                    return
                with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                    each[0].call_soon_threadsafe(_synced, each[1], error)


def _synced(done: asyncio.Future[None], error: OSError | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(Unavailable(f"the database could not be synced: {error}"))


class Checkpoints:
    """Moves the WAL into the file now and then, so that it does not grow. Readers and the writer go on."""

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connection = connect()
        self._commits = 0
        self._wanted: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="reflectd-checkpoint", daemon=True)
        self._thread.start()

    def committed(self) -> None:
        """The writer tells of each commit."""
        self._commits += 1
        if self._commits >= COMMITS:
            self._commits = 0
            self._wanted.put(True)

    def close(self) -> None:
        """End after the move under way."""
        self._wanted.put(False)
        self._thread.join()
        self._connection.close()

    def _run(self) -> None:
        while self._wanted.get():
            with suppress(sqlite3.Error):  # the next one, or the writer, tries again
                self._move()

    def _move(self) -> None:
        """When all is moved, the writer begins the WAL anew."""
        for _ in range(PASSES):
            busy, pages, moved = self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            if busy or moved >= pages:
                return


KEPT: Final = 2
_MIDDLE: Final = ".before-"


def back_up(c: sqlite3.Connection, path: Path, migration: str) -> None:
    """Copy the database to the file of this migration, the first that it lacks: because of it the older
    reflectd refuses the newer database, and names the copy. Synced, 0600, under its name only when whole.

    Raises ``UserError`` when the disk refuses: the upgrade waits, and nothing was changed.
    """
    temporary = path.with_name(
        f".reflectd-{secrets.token_hex(8)}.tmp"
    )  # of a killed daemon: `app` removes it
    try:
        fd = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with closing(sqlite3.connect(temporary)) as copy:
                copy.execute("PRAGMA journal_mode=OFF")
                c.backup(copy)
            os.fsync(fd)
        finally:
            os.close(fd)
        temporary.replace(_file(path, migration))
        with suppress(OSError):  # some file systems can't
            sync_folder(path.parent)
    except (OSError, sqlite3.OperationalError) as e:
        size = path.stat().st_size / 1e6
        raise UserError(
            f"{path} ({size:.1f} MB) could not be copied before its upgrade, so it is as it was: {words(e)}. "
            "Make room on that disk"
        ) from e
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def drop_older(path: Path, migration: str) -> None:
    """Keep the copy of this migration and the newest other ones."""
    mine = _file(path, migration)
    with suppress(OSError):
        others = [file for file in path.parent.glob(f"{path.name}{_MIDDLE}*") if file != mine]
        for file in sorted(others, key=lambda file: file.stat().st_mtime_ns)[: 1 - KEPT]:
            file.unlink()


def way_back(path: Path, migration: str) -> str:
    """The way back to an older reflectd, which lacks this migration: with the copy, where there is one."""
    kept = _file(path, migration)
    if not kept.is_file():
        return "or set daemon.state_dir to another folder"
    return (
        f"or go back to {kept.name}, the copy from before that upgrade: put it in the place of {path.name} "
        "and move its -wal and -shm away (docs/upgrade.md)"
    )


def _file(path: Path, migration: str) -> Path:
    return path.with_name(f"{path.name}{_MIDDLE}{migration}")


Row = tuple[Any, ...]
Statement = tuple[str, Sequence[Row]]
"""SQL and the rows to run it with (``executemany``)."""

GROUP = 512
CORRUPT = ("malformed", "not a database", "corrupt", "disk image")


class ConflictError(Unavailable):
    """A constraint refused one statement; the database itself works."""


class _Job(Struct):
    statements: Sequence[Statement]
    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[int]
    changed: int = 0
    error: Exception | None = None


class Opened(Struct, frozen=True):
    """The state of the file when opened. ``aside``: the new place of a corrupt one. ``rows``: the number of
    damaged rows of each table that were moved to ``unreadable``.
    """

    aside: Path | None = None
    rows: Mapping[str, int] = field(default_factory=dict)


class Database:
    """The write side is ``commit``; the read side is ``read`` (on the caller's thread)."""

    def __init__(self, path: Path, now: Callable[[], int], sync: Callable[[int], None] = sync_data) -> None:
        """Open and migrate ``path``, creating folder (0700) and file (0600). Raises ``UserError``.

        ``sync`` has the disk keep an open file's writes, or raises ``OSError``.
        """
        self.path = path
        self._queue: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._closed = False
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.opened = Opened()
        try:
            self._conn, rows = _open(path, now())
        except sqlite3.DatabaseError as e:
            if not any(word in str(e) for word in CORRUPT):
                raise UserError(
                    f"cannot open the database {path}: {e}. Mend the folder or set daemon.state_dir"
                ) from e
            self.opened = Opened(aside=_set_aside(path, now()))
            self._conn, rows = _open(path, now())
        self.opened = replace(self.opened, rows=rows)
        self._conn.execute("PRAGMA synchronous=NORMAL")
        self._conn.execute(f"PRAGMA wal_autocheckpoint={LONGEST}")
        self._reader = _connect(path)
        self._reader_lock = threading.Lock()
        self._checkpoints = Checkpoints(lambda: _connect(path))
        try:
            self._syncs = Syncs(path, sync)
        except OSError as e:
            raise UserError(f"cannot open the log of the database {path}: {words(e)}") from e
        self._thread = threading.Thread(target=self._run, name="reflectd-store", daemon=True)
        self._thread.start()

    async def commit(self, *statements: Statement, durable: bool = False) -> int:
        """Run the statements in one transaction. Returns the number of changed rows when it is stored,
        and, if ``durable``, synced.

        Raises ``Unavailable`` when it could not be stored (disk full, read-only, locked for 5 s) or synced,
        and ``ConflictError`` when a constraint refused a statement.
        """
        if self._closed:
            raise Unavailable("the database is closed")
        loop = asyncio.get_running_loop()
        job = _Job(statements, loop, loop.create_future())
        self._queue.put(job)
        changed = await job.done
        if durable:
            await self.synced()
        return changed

    async def synced(self) -> None:
        """Returns when a power cut can't take earlier commits back. Raises ``Unavailable`` when the disk
        refuses; the commits are in the database all the same.
        """
        if self._closed:
            raise Unavailable("the database is closed")
        await self._syncs.synced()

    def read(self, sql: str, parameters: Row = ()) -> list[Row]:
        """Rows of a query. Blocking, a few µs for the small queries of the engine.

        Raises ``Unavailable`` when the database is closed: the daemon ends, and a host may still ask.
        """
        with self._reader_lock:
            if self._closed:
                raise Unavailable("the database is closed")
            return self._reader.execute(sql, parameters).fetchall()

    def close(self) -> None:
        """Write what is queued, then close. Idempotent."""
        if self._closed:
            return
        self._closed = True
        self._queue.put(None)
        self._thread.join()
        self._syncs.close()
        self._checkpoints.close()
        with suppress(sqlite3.Error):
            self._conn.execute("PRAGMA optimize")
        self._reader.close()
        self._conn.close()

    def _run(self) -> None:
        stop = False
        while not stop:
            jobs: list[_Job] = []
            job = self._queue.get()
            while True:
                if job is None:
                    stop = True
                    break
                jobs.append(job)
                if len(jobs) >= GROUP:
                    break
                try:
                    job = self._queue.get_nowait()
                except queue.Empty:
                    break
            if jobs:
                self._group(jobs)
                _resolve(jobs)

    def _group(self, jobs: list[_Job]) -> None:
        """All jobs in one transaction; one by one when that fails, so that a bad one fails alone."""
        try:
            self._transaction(jobs)
        except (sqlite3.Error, OverflowError, ValueError, TypeError) as e:
            if len(jobs) == 1:
                jobs[0].error = e
                return
            for job in jobs:
                self._group([job])

    def _transaction(self, jobs: list[_Job]) -> None:
        c = self._conn
        c.execute("BEGIN IMMEDIATE")
        try:
            for job in jobs:
                before = c.total_changes
                for sql, rows in job.statements:
                    c.executemany(sql, rows)
                job.changed = c.total_changes - before
            c.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                c.execute("ROLLBACK")
            raise
        self._checkpoints.committed()


def _resolve(jobs: list[_Job]) -> None:
    loops = {job.loop for job in jobs}
    for loop in loops:
        mine = [job for job in jobs if job.loop is loop]
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_answer, mine)


def _answer(jobs: list[_Job]) -> None:
    for job in jobs:
        if job.done.done():
            continue
        if job.error is None:
            job.done.set_result(job.changed)
        else:
            kind = ConflictError if isinstance(job.error, sqlite3.IntegrityError) else Unavailable
            job.done.set_exception(kind(f"the database could not be written: {job.error}"))


def _connect(path: Path) -> sqlite3.Connection:
    c = sqlite3.connect(path, timeout=5.0, isolation_level=None, check_same_thread=False)
    c.text_factory = text
    return c


def _open(path: Path, now: int) -> tuple[sqlite3.Connection, dict[str, int]]:
    """A migrated connection, and how many damaged rows of each table were kept aside.

    The size of the WAL is bounded by the checkpoints (``Checkpoints``).
    """
    c = _connect(path)
    try:
        path.chmod(0o600)
        c.execute("PRAGMA journal_mode=WAL")
        c.execute("PRAGMA journal_size_limit=16777216")
        found = [str(line) for (line,) in c.execute("PRAGMA quick_check(100)")]
        if found != ["ok"] and not all(line.startswith("NULL value in ") for line in found):
            raise sqlite3.DatabaseError("database disk image is malformed")
        migrate(c, path)
        if missing := _missing(c):
            raise sqlite3.DatabaseError(f"the database is malformed: it has no {missing}")
        return c, set_aside(c, now)
    except BaseException:
        c.close()
        raise


def _missing(c: sqlite3.Connection) -> str:
    """A table or column that a new database has and this one lacks; "" when it has all."""
    query = (
        "SELECT t.name || '.' || i.name FROM sqlite_schema AS t, pragma_table_info(t.name) AS i "
        "WHERE t.type = 'table'"
    )
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as whole:
        migrate(whole, Path(":memory:"))
        return min((name for (name,) in {*whole.execute(query)} - {*c.execute(query)}), default="")


def migrate(
    c: sqlite3.Connection, path: Path, migrations: Sequence[tuple[str, Sequence[str]]] = MIGRATIONS
) -> None:
    """Run the migrations that the database does not have yet, each in its own transaction. A database that
    has some is copied before.

    Raises ``UserError`` when a newer version of reflectd wrote the database, or it can't be copied.
    """
    c.execute(
        "CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, at TEXT DEFAULT CURRENT_TIMESTAMP)"
    )
    done = {name for (name,) in c.execute("SELECT name FROM migrations")}
    unknown = done - {name for name, _ in migrations}
    if unknown:
        raise UserError(
            f"{path} was written by a newer reflectd (migration {min(unknown)}). "
            f"Update reflectd, {way_back(path, min(unknown))}"
        )
    missing = [(name, statements) for name, statements in migrations if name not in done]
    copied = bool(done and missing)
    if copied:
        back_up(c, path, missing[0][0])
    for name, statements in missing:
        c.execute("BEGIN IMMEDIATE")
        try:
            for statement in statements:
                c.execute(statement)
            c.execute("INSERT INTO migrations (name) VALUES (?)", (name,))
            c.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                c.execute("ROLLBACK")
            raise
    if copied:
        drop_older(path, missing[0][0])


def _set_aside(path: Path, now: int) -> Path:
    """Rename the corrupt file and its WAL; nothing is overwritten."""
    while (aside := path.with_name(f"{path.name}.corrupt-{now}")).exists():
        now += 1
    for suffix in ("", "-wal", "-shm"):
        part = path.with_name(path.name + suffix)
        if part.exists():
            part.rename(aside.with_name(aside.name + suffix))
    return aside
