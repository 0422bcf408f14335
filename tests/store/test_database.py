"""The one SQLite file: groups, failures, corruption, another version, syncs (real files, real threads)."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import sqlite3
import stat
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from daemon.core.errors import Unavailable, UserError
from daemon.store.db import COMMITS, MIGRATIONS, Database, migrate, sync_data

NOW = 1_700_000_000_000
INSERT = "INSERT INTO instances (id, seq, updated) VALUES (?, ?, ?)"


def opened(path: Path) -> Database:
    return Database(path, lambda: NOW)


async def put(db: Database, *names: str, seq: object = 1, durable: bool = False) -> int:
    return await db.commit((INSERT, [(n, seq, NOW) for n in names]), durable=durable)


def names(db: Database) -> set[str]:
    return {n for (n,) in db.read("SELECT id FROM instances")}


async def test_many_commits_at_once(tmp_path: Path) -> None:
    """Concurrent commits are grouped; when ``commit`` returns, the row is readable."""
    db = opened(tmp_path / "db")

    async def one(n: int) -> None:
        assert await put(db, f"i{n}", durable=n % 7 == 0) == 1
        assert db.read("SELECT 1 FROM instances WHERE id = ?", (f"i{n}",))

    await asyncio.gather(*(one(n) for n in range(2_000)))
    assert len(names(db)) == 2_000
    db.close()
    again = opened(tmp_path / "db")
    assert len(names(again)) == 2_000
    again.close()


@pytest.mark.parametrize(
    "bad",
    [
        ("INSERT INTO no_such_table VALUES (?)", [(1,)]),
        (INSERT, [("twice", 1, NOW), ("twice", 1, NOW)]),
        (INSERT, [("short", 1)]),
        (INSERT, [("object", object(), NOW)]),
        (INSERT, [("huge", 2**63, NOW)]),
        (INSERT, [("half \ud800", 1, NOW)]),
        (INSERT, [(None, None, None)]),
        ("not sql", [()]),
    ],
    ids=["table", "twice", "short", "object", "huge", "surrogate", "null", "sql"],
)
async def test_a_failing_job_fails_alone(tmp_path: Path, bad: tuple[str, list[tuple[object, ...]]]) -> None:
    """What can't be stored is ``Unavailable`` for its caller only, and the store goes on."""
    db = opened(tmp_path / "db")
    jobs = [put(db, f"before{n}") for n in range(5)]
    jobs += [db.commit((INSERT, [("partner", 1, NOW)]), bad)]
    jobs += [put(db, f"after{n}") for n in range(5)]
    async with asyncio.timeout(10):
        found = await asyncio.gather(*jobs, return_exceptions=True)
    failed = [isinstance(f, Unavailable) for f in found]
    assert failed == [False] * 5 + [True] + [False] * 5
    assert names(db) == {f"{w}{n}" for w in ("before", "after") for n in range(5)}
    db.close()


@pytest.mark.shows("I42")
async def test_closed(tmp_path: Path) -> None:
    """What was queued before the close is stored; afterwards a commit is refused, a close is nothing."""
    db = opened(tmp_path / "db")
    jobs = [asyncio.ensure_future(put(db, f"i{n}")) for n in range(50)]
    await asyncio.sleep(0)
    db.close()
    assert await asyncio.gather(*jobs) == [1] * 50
    with pytest.raises(Unavailable, match="closed"):
        await put(db, "late")
    db.close()


def test_private_files(tmp_path: Path) -> None:
    """Folder 0700, files 0600, whatever the umask."""
    old = os.umask(0)
    try:
        db = opened(tmp_path / "state" / "db")
        db.read("SELECT 1")
        modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in (tmp_path / "state").iterdir()}
        db.close()
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700
    assert set(modes.values()) == {0o600}, modes


async def filled(path: Path) -> bytes:
    """A database with rows over many pages; its bytes."""
    db = opened(path)
    await put(db, *(f"{n:05d}" * 20 for n in range(3_000)))
    db.close()
    return path.read_bytes()


def flip(data: bytes) -> bytes:
    """One page in the middle overwritten."""
    page = int.from_bytes(data[16:18], "big")
    at = len(data) // page // 2 * page
    return data[:at] + b"\xff" * page + data[at + page :]


@pytest.mark.shows("I43")
@pytest.mark.parametrize("kind", ["garbage", "text", "truncated", "flipped", "header"])
async def test_a_corrupt_file_is_kept_aside(tmp_path: Path, kind: str) -> None:
    """Moved under a new name with its content intact, and a new one begun."""
    path = tmp_path / "db"
    good = await filled(path)
    bad = {
        "garbage": os.urandom(50_000),
        "text": b"these are not the bytes you are looking for\n" * 500,
        "truncated": good[: len(good) // 2],
        "flipped": flip(good),
        "header": b"SQLite format 4\0" + good[16:],
    }[kind]
    path.write_bytes(bad)
    db = opened(path)
    aside = db.aside
    assert aside == tmp_path / f"db.corrupt-{NOW}"
    assert aside.read_bytes() == bad
    assert names(db) == set()
    assert await put(db, "new") == 1
    db.close()


FUTURE = (*MIGRATIONS, "CREATE TABLE future (id INTEGER)")


def started(path: Path, migrations: tuple[str, ...]) -> int:
    """A start of a reflectd with these migrations: how many rows it finds."""
    with closing(sqlite3.connect(path, isolation_level=None)) as c:
        migrate(c, path, migrations)
        return int(c.execute("SELECT count(*) FROM instances").fetchone()[0])


@contextmanager
def no_file_grows_beyond(size: int) -> Iterator[None]:
    """As a full disk or quota, for this process."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.shows("I43")
async def test_an_upgrade_and_the_way_back(tmp_path: Path) -> None:
    """A full disk stops an upgrade and changes nothing. With room the database is copied (0600), then
    changed. The older version refuses the newer database, which stays as it is, and names the copy, with
    which it works as before. A migration that fails leaves the database as it was.
    """
    path, copy = tmp_path / "db", tmp_path / f"db.version-{len(MIGRATIONS)}"
    good = await filled(path)
    with no_file_grows_beyond(100_000), pytest.raises(UserError, match="could not be copied before its up"):
        started(path, FUTURE)
    assert (path.read_bytes(), copy.exists()) == (good, False)
    with pytest.raises(sqlite3.OperationalError):
        started(path, (*MIGRATIONS, "CREATE TABLE first (id); CREATE TABLE sessions (id)"))
    with closing(sqlite3.connect(path)) as c:
        assert c.execute("SELECT name FROM sqlite_schema WHERE name = 'first'").fetchall() == []
    assert started(path, FUTURE) == 3_000
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    newer = path.read_bytes()
    with pytest.raises(UserError) as refused:
        opened(path)
    for part in ("newer reflectd", f"go back to {copy.name}", "-wal", "docs/upgrade.md"):
        assert part in str(refused.value)
    assert path.read_bytes() == newer
    copy.replace(path)
    db = opened(path)
    assert len(names(db)) == 3_000
    db.close()
    assert started(path, FUTURE) == 3_000
    copy.unlink()
    with pytest.raises(UserError, match=r"set daemon\.state_dir"):
        opened(path)


async def test_locked_by_another(tmp_path: Path) -> None:
    """A lock that is held is waited for; nothing is lost when it goes."""
    db = opened(tmp_path / "db")
    other = sqlite3.connect(tmp_path / "db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    waiting = asyncio.ensure_future(put(db, "waits"))
    await asyncio.sleep(0.1)
    assert not waiting.done()
    other.execute("COMMIT")
    other.close()
    assert await waiting == 1
    db.close()


# --- syncs and the WAL


class Disk:
    """A disk that takes its time for a sync: until ``goes_on`` is set. ``refuses``: it fails."""

    def __init__(self) -> None:
        self.goes_on = threading.Event()
        self.begun = threading.Event()
        self.refuses = False
        self.inodes: list[int] = []

    def sync(self, fd: int) -> None:
        self.begun.set()
        assert self.goes_on.wait(60)
        if self.refuses:
            raise OSError(errno.EIO, "Input/output error")
        self.inodes.append(os.fstat(fd).st_ino)
        sync_data(fd)


async def test_nobody_else_waits_for_a_sync(tmp_path: Path) -> None:
    """While the disk syncs what must survive a power cut, other commits are stored; then it is told."""
    disk = Disk()
    db = Database(tmp_path / "db", lambda: NOW, disk.sync)
    decision = asyncio.ensure_future(put(db, "decision", durable=True))
    await asyncio.to_thread(disk.begun.wait, 60)
    assert await put(db, "event") == 1
    assert {n for (n,) in db.read("SELECT id FROM instances")} == {"decision", "event"}
    assert not decision.done(), "told only when it is synced"
    disk.goes_on.set()
    assert await decision == 1
    assert disk.inodes == [(tmp_path / "db-wal").stat().st_ino], "what is synced is the WAL, once"
    db.close()


async def test_a_disk_that_refuses_a_sync(tmp_path: Path) -> None:
    """Whoever needed the sync is told, others are not, and the next one may work again."""
    disk = Disk()
    disk.goes_on.set()
    db = Database(tmp_path / "db", lambda: NOW, disk.sync)
    disk.refuses = True
    with pytest.raises(Unavailable, match="could not be synced"):
        await put(db, "decision", durable=True)
    assert await put(db, "event") == 1
    disk.refuses = False
    assert await put(db, "again", durable=True) == 1
    db.close()


@pytest.mark.shows("I42")
async def test_a_sync_that_was_asked_for_ends_before_the_close(tmp_path: Path) -> None:
    """The daemon ends, and what waits for the disk still gets it."""
    disk = Disk()
    db = Database(tmp_path / "db", lambda: NOW, disk.sync)
    await put(db, "decision")
    synced = asyncio.ensure_future(db.synced())
    await asyncio.to_thread(disk.begun.wait, 60)
    disk.goes_on.set()
    db.close()
    await synced
    with pytest.raises(Unavailable, match="closed"):
        await db.synced()


async def test_the_log_does_not_grow(tmp_path: Path) -> None:
    """What was committed moves from the WAL into the file while the daemon runs, and the WAL begins anew."""
    path = tmp_path / "db"
    db = Database(path, lambda: NOW)
    wal = path.with_name("db-wal")
    begun = wal_begun(wal)
    n = 0
    async with asyncio.timeout(120):
        while wal_begun(wal) == begun:
            n += 1
            await put(db, f"{n}")
    assert n >= COMMITS
    assert wal.stat().st_size < 20_000_000
    db.close()
    again = Database(path, lambda: NOW)
    assert len(names(again)) == n
    again.close()


def wal_begun(wal: Path) -> int:
    """How often the WAL was begun anew: the checkpoint sequence number of its header."""
    with wal.open("rb") as file:
        return int.from_bytes(file.read(16)[12:], "big")
