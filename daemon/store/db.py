"""One SQLite file, written by one thread with group commit (design/architecture.md).

Owns the connections and the threads; knows no table. WAL, and no disk sync on the host's path: decisions,
which must survive a power cut, are synced after their commit and beside the writer. A job that fails is
rolled back alone and its caller gets ``Unavailable``; the others of its group are committed. A corrupt
database is kept aside and a new one is begun (I43).
"""

from __future__ import annotations

import asyncio
import os
import queue
import sqlite3
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from ..core.errors import Unavailable, UserError, words
from ..files.safe import sync_folder
from .readonly import text

if TYPE_CHECKING:
    from collections.abc import Callable

Row = tuple[Any, ...]
Statement = tuple[str, Sequence[Row]]
"""SQL and the rows to run it with (``executemany``)."""

MIGRATIONS: Final[tuple[str, ...]] = (Path(__file__).with_name("schema.sql").read_text("utf-8"),)
"""SQL scripts. A database has run the first ``user_version`` of them. Never edit one that has shipped."""
GROUP: Final = 512
CORRUPT: Final = ("malformed", "not a database", "corrupt", "disk image")
COMMITS: Final = 200
"""Commits after which the WAL is moved. One is two to ten pages: about as often as SQLite's own 1,000."""
LONGEST: Final = 4_000
"""Pages of the WAL at which the writer moves it itself, because the thread beside it does not keep up."""
PASSES: Final = 4  # each moves what was committed during the one before, ever less


def sync_data(fd: int) -> None:
    """Have the disk keep the file's content. Raises ``OSError``."""
    getattr(os, "fdatasync", os.fsync)(fd)  # macOS has no fdatasync


class ConflictError(Unavailable):
    """A constraint refused one statement; the database itself works."""


class _Job(Struct):
    statements: Sequence[Statement]
    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[int]
    changed: int = 0
    error: Exception | None = None


class Database:
    """The write side is ``commit``; the read side is ``read`` (on the caller's thread). ``aside``: the new
    place of a file that was corrupt.
    """

    def __init__(self, path: Path, now: Callable[[], int], sync: Callable[[int], None] = sync_data) -> None:
        """Open and migrate ``path``, creating folder (0700) and file (0600). Raises ``UserError``.

        ``sync`` has the disk keep an open file's writes, or raises ``OSError``.
        """
        self.path = path
        self.aside: Path | None = None
        self._queue: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._closed = False
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            self._conn = _open(path)
        except sqlite3.DatabaseError as e:
            if not any(word in str(e) for word in CORRUPT):
                raise UserError(
                    f"cannot open the database {path}: {e}. Mend the folder or set daemon.state_dir"
                ) from e
            self.aside = _set_aside(path, now())
            self._conn = _open(path)
        self._reader = _connect(path)
        self._reader_lock = threading.Lock()
        self._commits = 0
        self._sync = sync
        place = os.path.realpath(path)
        try:
            self._wal = os.open(f"{place}-wal", os.O_RDONLY | os.O_CLOEXEC)
        except OSError as e:
            raise UserError(f"cannot open the log of the database {path}: {words(e)}") from e
        self._disk = ThreadPoolExecutor(2, "reflectd-disk")
        self._disk.submit(sync_folder, Path(place).parent)  # the WAL may be new; some file systems can't
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
        """Returns when a power cut can't take earlier commits back. A commit is in the WAL when it returns
        (``synchronous=NORMAL``), so that ``kill -9`` does not lose it; here the disk keeps the WAL. Raises
        ``Unavailable`` when the disk refuses; the commits are in the database all the same.
        """
        if self._closed:
            raise Unavailable("the database is closed")
        try:
            await asyncio.get_running_loop().run_in_executor(self._disk, self._sync, self._wal)
        except OSError as e:
            raise Unavailable(f"the database could not be synced: {e}") from e

    def read(self, sql: str, parameters: Row = ()) -> list[Row]:
        """Rows of a query. Blocking, a few µs for the small queries of the engine.

        Raises ``Unavailable`` when the database is closed: the daemon ends, and a host may still ask.
        """
        with self._reader_lock:
            if self._closed:
                raise Unavailable("the database is closed")
            return self._reader.execute(sql, parameters).fetchall()

    def close(self) -> None:
        """Write and sync what is queued, then close. Idempotent."""
        if self._closed:
            return
        self._closed = True
        self._queue.put(None)
        self._thread.join()
        self._disk.shutdown()
        os.close(self._wal)
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
        self._commits += 1
        if self._commits % COMMITS == 0:
            self._disk.submit(_move_wal, self.path)


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


def _move_wal(path: Path) -> None:
    """Move the WAL into the file, so that it does not grow; when all is moved, the writer begins it anew.
    Readers and the writer go on. After an error the next move, or the writer, tries again.
    """
    with closing(_connect(path)) as c:
        for _ in range(PASSES):
            busy, pages, moved = c.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            if busy or moved >= pages:
                return


def _connect(path: Path) -> sqlite3.Connection:
    c = sqlite3.connect(path, timeout=5.0, isolation_level=None, check_same_thread=False)
    c.text_factory = text
    return c


def _open(path: Path) -> sqlite3.Connection:
    """A migrated connection. Raises ``UserError`` and ``sqlite3.DatabaseError``."""
    c = _connect(path)
    try:
        path.chmod(0o600)
        c.execute("PRAGMA journal_mode=WAL")
        c.execute("PRAGMA journal_size_limit=16777216")
        c.execute(f"PRAGMA wal_autocheckpoint={LONGEST}")
        if c.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
            raise sqlite3.DatabaseError("database disk image is malformed")
        migrate(c, path)
        c.execute("PRAGMA synchronous=NORMAL")
    except BaseException:
        c.close()
        raise
    return c


def migrate(c: sqlite3.Connection, path: Path, migrations: Sequence[str] = MIGRATIONS) -> None:
    """Run the migrations that the database does not have yet, each in its own transaction. A database that
    has some is copied before, to ``<name>.version-<how many>``.

    Raises ``UserError`` when a newer version of reflectd wrote the database, or it can't be copied.
    """
    (done,) = c.execute("PRAGMA user_version").fetchone()
    if done > len(migrations):
        kept = _copy_of(path, len(migrations))
        back = (
            f"go back to {kept.name}, the copy from before that upgrade: put it in the place of {path.name} "
            "and move its -wal and -shm away (docs/upgrade.md)"
        )
        way = back if kept.is_file() else "set daemon.state_dir to another folder"
        raise UserError(f"{path} was written by a newer reflectd. Update reflectd, or {way}")
    if 0 < done < len(migrations):
        _copy(c, path, _copy_of(path, done))
    for number, script in enumerate(migrations[done:], done + 1):
        try:
            c.executescript(f"BEGIN IMMEDIATE;{script};PRAGMA user_version = {number};COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                c.execute("ROLLBACK")
            raise


def _copy_of(path: Path, version: int) -> Path:
    return path.with_name(f"{path.name}.version-{version}")


def _copy(c: sqlite3.Connection, path: Path, to: Path) -> None:
    """A copy of the database, synced, 0600. An upgrade waits until the disk takes one."""
    try:
        to.unlink(missing_ok=True)
        to.touch(0o600)
        c.execute("VACUUM INTO ?", (str(to),))
        with to.open("rb") as file:
            os.fsync(file.fileno())
    except (OSError, sqlite3.OperationalError) as e:
        with suppress(OSError):
            to.unlink(missing_ok=True)
        raise UserError(
            f"{path} could not be copied before its upgrade, so it is as it was: {words(e)}. Make room on "
            "that disk"
        ) from e


def _set_aside(path: Path, now: int) -> Path:
    """Rename the corrupt file and its WAL; nothing is overwritten."""
    while (aside := path.with_name(f"{path.name}.corrupt-{now}")).exists():
        now += 1
    for suffix in ("", "-wal", "-shm"):
        part = path.with_name(path.name + suffix)
        if part.exists():
            part.rename(aside.with_name(aside.name + suffix))
    return aside
