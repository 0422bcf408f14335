"""What learning keeps: cases that wait, texts, tags, names, and what sessions were given."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.core.offers import Offer, compose
from daemon.core.verdict import Verdict
from daemon.learning import tables
from daemon.learning.tables import DAY_MS, SPOOL_BYTES, SPOOL_DAYS
from daemon.store import injections, verdicts
from daemon.store.db import Database

NOW = 1_700_000_000_000


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    db = Database(tmp_path / "db", lambda: NOW)
    yield db
    db.close()


async def judged(db: Database, turn: str, at: int = NOW, body: bytes = b"{}", session: str = "s") -> None:
    verdict = Verdict(session, "t", turn, "complete", at)
    await db.commit(verdicts.add(verdict, "/p"), tables.keep_case(session, turn, "/p", at, body))


async def test_a_case_waits_once_for_each_turn(db: Database) -> None:
    """The newer one of a turn counts; cases come oldest first, and go when they were learned from."""
    await judged(db, "2", NOW + 2)
    await judged(db, "1", NOW + 1)
    await db.commit(tables.keep_case("s", "1", "/p", NOW + 1, b"[]"))
    assert tables.cases(db, "s") == [("1", NOW + 1, b"[]"), ("2", NOW + 2, b"{}")]
    await db.commit(tables.drop_cases("s", ["1"]))
    assert [turn for turn, *_ in tables.cases(db, "s")] == ["2"]


@pytest.mark.shows("I44")
async def test_cases_lapse_after_seven_days(db: Database) -> None:
    """And they are counted, so that `status` can say it."""
    await judged(db, "old", NOW - SPOOL_DAYS * DAY_MS - 1)
    await judged(db, "new", NOW)
    for statement in tables.prune(NOW):
        await db.commit(statement)
    assert [turn for turn, *_ in tables.cases(db, "s")] == ["new"]
    assert tables.counts(db) == {"lapsed": 1}


@pytest.mark.shows("I44")
async def test_cases_hold_at_most_fifty_megabytes(db: Database) -> None:
    """Of more the oldest lapse."""
    for i in range(6):
        await judged(db, str(i), NOW + i, b"x" * (SPOOL_BYTES // 5))
    assert tables.waiting(db) == (6, 6 * (SPOOL_BYTES // 5))
    for statement in tables.prune(NOW):
        await db.commit(statement)
    assert [turn for turn, *_ in tables.cases(db, "s")] == ["1", "2", "3", "4", "5"]


async def test_a_text_is_kept_once_and_a_dismissed_one_stays_away(db: Database) -> None:
    """A tombstone: what a person dismissed is not learned again."""
    add = tables.quarantine("/p", "OTHERS", "Use pathlib.", "s", NOW, "why", ["pat-001"])
    await db.commit(add, add)
    (text,) = tables.texts(db, "/p")
    assert (text.text, text.replaces, text.why) == ("Use pathlib.", ("pat-001",), "why")
    await db.commit(tables.settle(text, "dismissed", "a no"))
    assert tables.confirmed(db, "/p") == set()
    await db.commit(add)
    assert tables.texts(db, "/p") == []


@pytest.mark.shows("REQ-REFL-004")
async def test_a_session_counts_once_for_a_point(db: Database) -> None:
    """However many stretches it has: the first word counts."""
    await db.commit(tables.tag("/p", "pat-001", "s", "helpful", NOW, "it was used"))
    await db.commit(tables.tag("/p", "pat-001", "s", "harmful", NOW, "later"))
    assert db.read("SELECT tag FROM learned_tags") == [("helpful",)]
    assert [name for _, name, _ in tables.tags_of(db, "s")] == ["pat-001"]


@pytest.mark.shows("I50", "LEARN-03")
async def test_what_was_given_is_kept_to_the_byte(db: Database) -> None:
    """Also what is not ASCII, and the heading."""
    offer = Offer(
        "o", "point", "[pat-001] Größe\u00a0\u2028x ", heading="Points: ", directory="/p", name="pat-001"
    )
    await db.commit(injections.give("s", "start", NOW, compose([offer], 1_000)))
    (found,) = injections.given(db, "s")
    assert (found.text, found.heading, found.name) == (offer.text, offer.heading, "pat-001")
    assert injections.given(db, "other") == []
