"""The table of episodes, with its vectors (AC-2.6.3, AC-2.6.4)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from math import cos, radians
from pathlib import Path

import pytest
from msgspec.structs import replace

from daemon.core.errors import Unavailable
from daemon.learning.lessons.episodes import SIMILAR
from daemon.learning.lessons.store import Episodes
from daemon.store.db import Database
from tests.learning.lessons.rows import MODEL, NOW, episode, hexed, ids, rich, vector


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    db = Database(tmp_path / "db", lambda: NOW)
    yield db
    db.close()


@pytest.fixture
def store(db: Database) -> Episodes:
    return Episodes(db)


@pytest.mark.shows("AC-2.6.3")
async def test_an_episode_comes_back_as_it_was(store: Episodes) -> None:
    """Every field, whatever the texts hold; the id is taken once."""
    assert await store.add(rich(1), vector(0))
    assert not await store.add(replace(rich(1), lesson="Another."), vector(90))
    assert await store.get([hexed(1), hexed(2)]) == [rich(1)]
    (found,) = await store.search(vector(0), None, 5)
    assert found == replace(rich(1), similarity=pytest.approx(1.0))


async def test_texts_that_no_database_holds(store: Episodes) -> None:
    """Half a character and a zero byte are replaced; the episode is stored and found."""
    assert await store.add(episode(1, "half \ud800 zero \0 end", files=("a\0b",), session="s\ud800"))
    (found,) = await store.page(["/p", "/\ud800\0"])
    assert (found.query, found.files) == ("half ? zero \ufffd end", ("a\ufffdb",))
    assert await store.page(["/\0"], after="\0\ud800") == []


async def test_pages_newest_first(store: Episodes) -> None:
    """Each episode once, whatever the size of the pages; of the same moment by id."""
    for n in range(7):
        await store.add(episode(n, project="/p" if n % 2 else "/q", at=NOW + n // 3))
    await store.settle([hexed(3)], "dismissed")
    found: list[int] = []
    while page := await store.page(None, after=hexed(found[-1]) if found else "", limit=2):
        found += ids(page)
    assert found == [6, 5, 4, 3, 2, 1, 0]
    assert ids(await store.page(["/p"])) == [5, 3, 1]
    assert ids(await store.page(["/p"], state="quarantined", after=hexed(5))) == [1]
    assert await store.page([]) == []


@pytest.mark.shows("AC-2.6.4", "SUBTASK-4.4")
async def test_the_nearest_by_meaning(store: Episodes) -> None:
    """The nearest first, with the cosine; three of them are above 0.70. Vectors of another model or size are
    never compared.
    """
    for n, degrees in enumerate((80, 10, 44, 0, 60)):
        await store.add(episode(n, "§"), vector(degrees))
    await store.add(episode(9, "§"))
    await store.add(episode(10, "§"), vector(0, "other"))
    await store.add(episode(11, "§"), vector(0, MODEL, 6))
    found = await store.search(vector(0), ["/p"], 4)
    assert ids(found) == [3, 1, 2, 4]
    for e, degrees in zip(found, (0, 10, 44, 60), strict=True):
        assert e.similarity == pytest.approx(cos(radians(degrees)), abs=1e-6)
    assert ids(e for e in found if (e.similarity or 0) > SIMILAR) == [3, 1, 2]


async def test_what_a_search_leaves_out(store: Episodes) -> None:
    """Other projects, however many near ones they have; the dismissed; of others what waits."""
    for n in range(40):
        await store.add(episode(n, project="/q"), vector(0))
    for n, more in ((50, {}), (51, {"state": "dismissed"}), (52, {"theirs": True})):
        await store.add(episode(n, **more), vector(80))
    await store.add(episode(53, theirs=True, state="confirmed"), vector(85))

    async def search(projects: list[str] | None) -> set[int]:
        return set(ids(await store.search(vector(0), projects, 9)))

    assert await search(["/p"]) == {50, 53}
    assert await search([]) == set()
    assert len(await search(None)) == 9
    await store.settle([hexed(51)], "quarantined")
    assert await search(["/p"]) == {50, 51, 53}


async def test_outcomes_are_counted(store: Episodes) -> None:
    """Of an episode that is not there nothing is."""
    await store.add(episode(1))
    for at, outcome in ((9, "given"), (7, "given"), (8, "failed")):
        await store.count([hexed(1), hexed(2)], NOW + at, outcome)  # type: ignore[arg-type]
    (found,) = await store.get([hexed(1)])
    assert (found.given, found.helped, found.failed, found.last) == (2, 0, 1, NOW + 9)


async def test_forgotten_is_gone(store: Episodes) -> None:
    """From every way to it; the id may be used again."""
    await store.add(rich(1), vector(0))
    await store.add(rich(2), vector(1))
    await store.forget([hexed(1), hexed(7)])
    assert ids(await store.search(vector(0), None, 5)) == [2]
    assert await store.add(episode(1, "something else"))
    assert await store.get([hexed(1)]) == [episode(1, "something else")]


async def test_another_model_embeds_again(store: Episodes) -> None:
    """What has no vector of the model is told, newest first; an earlier vector is replaced."""
    await store.add(episode(1), vector(0, "old"))
    await store.add(episode(2), vector(0))
    await store.add(episode(3))
    assert ids(await store.unembedded(MODEL, 10)) == [3, 1]
    assert ids(await store.unembedded(MODEL, 1)) == [3]
    assert ids(await store.search(vector(0, "old"), None, 5)) == [1]
    await store.embed({hexed(1): vector(30), hexed(3): vector(60), hexed(8): vector(0)})
    assert await store.unembedded(MODEL, 10) == []
    assert ids(await store.search(vector(0), None, 5)) == [2, 1, 3]
    assert await store.search(vector(0, "old"), None, 5) == []


async def test_a_database_that_can_not_be_read(store: Episodes, db: Database) -> None:
    """``Unavailable``: the daemon goes on without lessons."""
    with sqlite3.connect(db.path) as c:
        c.execute("ALTER TABLE episode_memory RENAME TO elsewhere")
    with pytest.raises(Unavailable):
        await store.page(None)
