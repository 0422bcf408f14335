"""The one SQLite file: groups, failures, corruption, another version (real files, real threads)."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
from pathlib import Path

import pytest

from daemon.core.errors import Unavailable, UserError
from daemon.store.db import Database
from daemon.store.migrations import MIGRATIONS

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
    aside = db.opened.aside
    assert aside == tmp_path / f"db.corrupt-{NOW}"
    assert aside.read_bytes() == bad
    assert names(db) == set()
    assert await put(db, "new") == 1
    db.close()


@pytest.mark.shows("I43")
async def test_a_newer_version_is_not_touched(tmp_path: Path) -> None:
    """A file of a newer reflectd is refused with words, and stays as it is, byte for byte."""
    path = tmp_path / "db"
    await filled(path)
    with sqlite3.connect(path) as c:
        c.execute("INSERT INTO migrations (name) VALUES ('9999_from_the_future')")
    c.close()
    before = path.read_bytes()
    with pytest.raises(UserError, match="9999_from_the_future"):
        opened(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith("db.")] == []


async def test_an_older_version_is_brought_up(tmp_path: Path) -> None:
    """Named migrations: the oldest schema opens with all of today's tables, and its rows are kept."""
    path = tmp_path / "db"
    with sqlite3.connect(path) as c:
        c.execute("CREATE TABLE migrations (name TEXT PRIMARY KEY, at TEXT DEFAULT CURRENT_TIMESTAMP)")
        for statement in MIGRATIONS[0][1]:
            c.execute(statement)
        c.execute("INSERT INTO migrations (name) VALUES (?)", (MIGRATIONS[0][0],))
        c.execute(INSERT, ("old", 7, NOW))
    c.close()
    db = opened(path)
    assert db.read("SELECT seq FROM instances WHERE id = 'old'") == [(7,)]
    assert {n for (n,) in db.read("SELECT name FROM migrations")} == {n for n, _ in MIGRATIONS}
    db.close()


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
