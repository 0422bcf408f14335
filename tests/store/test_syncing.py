"""The disk beside the writer: who waits for a sync, and that the WAL does not grow (real files)."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from pathlib import Path

import pytest

from daemon.core.errors import Unavailable
from daemon.store.db import COMMITS, Database, sync_data

NOW = 1_700_000_000_000
INSERT = "INSERT OR REPLACE INTO instances (id, seq, updated) VALUES (?, ?, ?)"


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


async def put(db: Database, name: str, seq: int = 1, *, durable: bool = False) -> int:
    return await db.commit((INSERT, [(name, seq, NOW)]), durable=durable)


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


async def test_those_who_wait_share_a_sync(tmp_path: Path) -> None:
    """A sync counts for what was committed before it began; those that come meanwhile share the next one."""
    disk = Disk()
    db = Database(tmp_path / "db", lambda: NOW, disk.sync)
    first = asyncio.ensure_future(put(db, "first", durable=True))
    await asyncio.to_thread(disk.begun.wait, 60)
    others = [asyncio.ensure_future(put(db, f"other{n}", durable=True)) for n in range(20)]
    await put(db, "last")  # by now all of them are committed, and ask
    await asyncio.sleep(0)
    disk.goes_on.set()
    assert await asyncio.gather(first, *others) == [1] * 21
    assert len(disk.inodes) == 2
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
            await put(db, "one", n)
    assert n >= COMMITS
    assert wal.stat().st_size < 20_000_000
    db.close()
    again = Database(path, lambda: NOW)
    assert again.read("SELECT seq FROM instances") == [(n,)]
    again.close()


def wal_begun(wal: Path) -> int:
    """How often the WAL was begun anew: the checkpoint sequence number of its header."""
    with wal.open("rb") as file:
        return int.from_bytes(file.read(16)[12:], "big")
