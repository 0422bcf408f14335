"""When rows may be deleted, why not, and how a person ends that (a real database)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from daemon.store import retention
from daemon.store.db import Database
from daemon.store.retention import DAY_MS, Standstill

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOW = 1_700_000_000_000
HOUR_MS = DAY_MS // 24
YEAR_MS = 365 * DAY_MS


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    db = Database(tmp_path / "db", lambda: NOW)
    yield db
    db.close()


async def looked(db: Database, now: int) -> bool:
    """One look of the daemon: whether it may delete."""
    look = retention.look(db, "rows", now)
    await db.commit(*look.kept)
    return look.may


async def trusted(db: Database, now: int) -> bool:
    """A person says that the clock is right: whether that changed anything."""
    statements = retention.trust_clock(db, "rows", now)
    await db.commit(*statements)
    return bool(statements)


async def begun(db: Database) -> None:
    """A database from which something was deleted ``NOW``."""
    assert not await looked(db, NOW - DAY_MS)
    assert await looked(db, NOW)
    assert retention.standstill(db, "rows", NOW) is None


@pytest.mark.shows("I52")
async def test_a_standstill_says_since_when_and_why(db: Database) -> None:
    """Ahead, back again, and over after a day; the marks of the other kind are not touched."""
    await begun(db)
    jump = NOW + 5 * YEAR_MS
    assert not await looked(db, jump)
    ahead = Standstill("rows", jump, jump + DAY_MS, 5 * YEAR_MS - DAY_MS)
    assert retention.standstill(db, "rows", jump + 5) == ahead
    back = NOW + 2 * HOUR_MS
    assert not await looked(db, back)
    found = retention.standstill(db, "rows", back)
    assert found == Standstill("rows", back, back + DAY_MS, back - jump - DAY_MS)
    assert retention.standstill(db, "lessons", back) is None
    assert not await looked(db, back + DAY_MS - 1)
    assert await looked(db, back + DAY_MS)
    assert retention.standstill(db, "rows", back + DAY_MS) is None
    assert db.read("SELECT count(*) FROM told_once") == [(1,)]


@pytest.mark.shows("I52")
async def test_a_person_ends_it_and_still_only_a_day_goes_in_a_day(db: Database) -> None:
    """After a jump there and back the next time is a day after the last, whoever says yes how often."""
    await begun(db)
    for now in (NOW + 5 * YEAR_MS, NOW + 2 * HOUR_MS):
        assert not await looked(db, now)
    now = NOW + 3 * HOUR_MS
    assert await trusted(db, now)
    assert not await trusted(db, now)
    assert retention.standstill(db, "rows", now) is None
    assert not await looked(db, now)
    assert not await looked(db, NOW + DAY_MS - 1)
    assert await looked(db, NOW + DAY_MS)


@pytest.mark.shows("I52")
async def test_a_yes_does_nothing_where_the_last_time_is_still_to_come(db: Database) -> None:
    """The clock was a year ahead for so long that rows were deleted by it: the day is waited for."""
    await begun(db)
    for now in (NOW + YEAR_MS, NOW + YEAR_MS + DAY_MS):
        await looked(db, now)
    back = NOW + 2 * DAY_MS
    assert not await looked(db, back)
    assert not await trusted(db, back)
    assert retention.standstill(db, "rows", back) is not None
    assert not await looked(db, back + HOUR_MS)
    assert await looked(db, back + DAY_MS)
