"""Counting words in the daemon's own database: what is remembered, and when it is counted anew."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from daemon.store.db import Database
from daemon.store.episode_rows import Copy
from daemon.store.episode_terms import Terms
from daemon.store.episode_words import FEW
from daemon.store.episodes import SqliteEpisodes
from tests.store.episodes import NOW, episode

OFTEN = FEW + 100


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteEpisodes]:
    """With one word in very many episodes, and another one in three."""
    db = Database(tmp_path / "db", lambda: NOW)
    found = SqliteEpisodes(db, lambda: NOW)
    await found.put([Copy(episode(n, f"often {'seldom' if n < 3 else n}")) for n in range(OFTEN)])
    yield found
    await found.close()
    db.close()


@pytest.fixture
def asked(tmp_path: Path, store: SqliteEpisodes) -> Iterator[tuple[sqlite3.Connection, list[str]]]:
    """A connection to it, and the statements that were run on it."""
    del store
    with closing(sqlite3.connect(tmp_path / "db")) as c:
        ran: list[str] = []
        c.set_trace_callback(ran.append)
        yield c, ran


def found(terms: Terms, c: sqlite3.Connection, words: str) -> list[int]:
    return [key for key, _ in terms.said(c, words, None, 50)]


async def test_a_frequent_word_is_counted_once(asked: tuple[sqlite3.Connection, list[str]]) -> None:
    """It finds nothing, and the next search does not count it again; a rare word is counted each time, so
    that what was stored a moment ago is found.
    """
    c, ran = asked
    terms = Terms()
    assert len(found(terms, c, "often seldom")) == 3
    counting = [sql for sql in ran if "count(*)" in sql]
    assert len(counting) == 2
    ran.clear()
    assert len(found(terms, c, "often seldom")) == 3
    assert [sql for sql in ran if '"often"' in sql] == []
    assert len([sql for sql in ran if "count(*)" in sql]) == 1


async def test_a_word_that_became_rare_or_frequent(
    store: SqliteEpisodes, asked: tuple[sqlite3.Connection, list[str]]
) -> None:
    """What was new is found at once; when the store has grown much, frequent words are counted anew."""
    c, ran = asked
    terms = Terms()
    assert found(terms, c, "fresh") == []
    await store.add(episode(5_000, "something fresh"))
    assert len(found(terms, c, "fresh")) == 1
    assert found(terms, c, "often") == []
    await store.put([Copy(episode(n, "something else")) for n in range(6_000, 6_000 + 2 * FEW)])
    ran.clear()
    assert found(terms, c, "often") == [], "still too many"
    assert any('"often"' in sql for sql in ran), "but it was counted"


async def test_a_count_that_was_cut_off_is_not_taken_for_the_whole(
    asked: tuple[sqlite3.Connection, list[str]],
) -> None:
    """The limit grows with the store, and a frequent word stays one that says nothing."""
    c, _ = asked
    terms = Terms()
    for total in (25_000, 25_100):  # up to 500 and up to 502 may have a word
        c.execute(
            "UPDATE episode_memory SET key = ? WHERE key = (SELECT max(key) FROM episode_memory)", (total,)
        )
        assert found(terms, c, "often") == []
