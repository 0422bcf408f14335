"""The copy of the database from before an upgrade, and the way back with it (real files)."""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
import stat
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import pytest

from daemon.core.errors import UserError
from daemon.store.db import Database, migrate
from daemon.store.migrations import MIGRATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

NOW = 1_700_000_000_000
OLD = MIGRATIONS[:6]
FIRST = MIGRATIONS[6][0]
FUTURE = ("9999_from_the_future", ("CREATE TABLE future (id INTEGER)",))
INSERT = "INSERT INTO instances (id, seq, updated) VALUES (?, 7, ?)"


def written(path: Path, migrations: Sequence[tuple[str, Sequence[str]]] = OLD, rows: int = 1) -> None:
    """What the reflectd with these migrations left behind, with that many rows."""
    with closing(sqlite3.connect(path, isolation_level=None)) as c:
        c.execute("PRAGMA journal_mode=WAL")
        migrate(c, path, migrations)
        c.execute("BEGIN")
        c.executemany(INSERT, [(f"row{n} {'x' * 60}", NOW) for n in range(rows)])
        c.execute("COMMIT")


def upgraded(path: Path) -> None:
    """A start of today's reflectd."""
    Database(path, lambda: NOW).close()


def used_by_the_older(path: Path) -> int:
    """Its start: how many rows it finds."""
    with closing(sqlite3.connect(path, isolation_level=None)) as c:
        migrate(c, path, OLD)
        return int(c.execute("SELECT count(*) FROM instances").fetchone()[0])


def copies(path: Path) -> list[str]:
    return sorted(p.name for p in path.parent.iterdir() if ".before-" in p.name)


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
def test_a_person_who_upgraded_can_go_back(tmp_path: Path) -> None:
    """The older reflectd refuses the newer database and names the copy, with which it works as before; its
    rows, also those that were only in the WAL, are there. Going forward again is an upgrade as the first.
    """
    path = tmp_path / "reflectd.sqlite3"
    written(path, rows=3)
    upgraded(path)
    copy = tmp_path / f"reflectd.sqlite3.before-{FIRST}"
    assert copies(path) == [copy.name]
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    with pytest.raises(UserError) as refused:
        used_by_the_older(path)
    for part in ("newer reflectd", FIRST, f"go back to {copy.name}", "-wal", "docs/upgrade.md"):
        assert part in str(refused.value)
    (tmp_path / "aside").mkdir()
    for file in tmp_path.glob("reflectd.sqlite3*"):
        if file != copy:
            file.rename(tmp_path / "aside" / file.name)
    shutil.copyfile(copy, path)
    assert used_by_the_older(path) == 3
    with closing(sqlite3.connect(path)) as c, c:
        c.execute(INSERT, ("after going back", NOW))
    upgraded(path)
    assert copies(path) == [copy.name]
    with closing(sqlite3.connect(copy)) as c:
        assert c.execute("SELECT count(*) FROM instances").fetchone() == (4,)
        assert c.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_the_last_two_are_kept(tmp_path: Path) -> None:
    """That of this upgrade stays in any case, and of older ones the newest."""
    path = tmp_path / "reflectd.sqlite3"
    for name, age in (("9998_b", 3), ("0001_a", 2), ("0002_c", 1)):
        other = tmp_path / f"{path.name}.before-{name}"
        other.touch()
        os.utime(other, (NOW / 1000 - age, NOW / 1000 - age))
    written(path)
    upgraded(path)
    assert copies(path) == [f"{path.name}.before-0002_c", f"{path.name}.before-{FIRST}"]


@pytest.mark.shows("I43")
def test_an_upgrade_waits_for_room(tmp_path: Path) -> None:
    """On a full disk nothing is changed, no copy and no half of one is left, and the older copy stays; the
    older reflectd goes on with the database, and with room again it is upgraded.
    """
    path = tmp_path / "reflectd.sqlite3"
    written(path, rows=2_000)
    (tmp_path / f"{path.name}.before-0001_a").touch()
    assert path.stat().st_size > 150_000
    with no_file_grows_beyond(100_000), pytest.raises(UserError, match="Make room") as refused:
        upgraded(path)
    assert "could not be copied before its upgrade" in str(refused.value)
    assert used_by_the_older(path) == 2_000
    left = [p.name for p in tmp_path.iterdir() if not p.name.endswith(("-wal", "-shm"))]
    assert sorted(left) == [path.name, f"{path.name}.before-0001_a"]
    upgraded(path)
    assert len(copies(path)) == 2


def test_a_migration_that_fails_leaves_every_copy(tmp_path: Path) -> None:
    """Older copies go only after the upgrade is done."""
    path = tmp_path / "reflectd.sqlite3"
    written(path, MIGRATIONS)
    for name in ("0001_a", "0002_b"):
        (tmp_path / f"{path.name}.before-{name}").touch()
    broken = (*MIGRATIONS, ("9999_broken", ("CREATE TABLE sessions (id)",)))
    with closing(sqlite3.connect(path, isolation_level=None)) as c:
        with pytest.raises(sqlite3.OperationalError):
            migrate(c, path, broken)
        assert len(copies(path)) == 3
        migrate(c, path, (*MIGRATIONS, FUTURE))
    assert copies(path)[-1].endswith("9999_from_the_future")
    assert len(copies(path)) == 2
