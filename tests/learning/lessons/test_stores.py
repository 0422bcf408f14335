"""One contract for every store of episodes: the daemon's own database and PostgreSQL (AC-2.6.3, AC-2.6.4)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from math import cos, radians
from pathlib import Path
from typing import Any

import pytest

from daemon.core.errors import Unavailable
from daemon.learning.embed.vectors import Vector
from daemon.learning.lessons import rows as episode_rows
from daemon.learning.lessons import sqlite as stored
from daemon.learning.lessons.episodes import SIMILAR, Use
from daemon.learning.lessons.postgres import PostgresEpisodes
from daemon.learning.lessons.rows import USES_DAYS
from daemon.learning.lessons.sqlite import SqliteEpisodes, forget_uses
from daemon.store.db import Database
from tests.learning.lessons.rows import MODEL, NOW, episode, hexed, ids, rich, vector
from tests.support.machine.postgres import Postgres

Store = SqliteEpisodes | PostgresEpisodes
Open = Callable[[], Awaitable[Store]]


@pytest.fixture(params=["sqlite", "postgres"])
async def opens(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Open]:
    """Opens the same store of the kind under test again and again."""
    async with AsyncExitStack() as stack:
        db = Database(tmp_path / "db", lambda: NOW)
        stack.callback(db.close)
        if request.param == "sqlite":

            async def again() -> Store:
                return SqliteEpisodes(db)
        else:
            server: Postgres = request.getfixturevalue("postgres")
            url = server.new_database()

            async def again() -> Store:
                return PostgresEpisodes(lambda: url, db, lambda: NOW)

        async def opened() -> Store:
            store = await again()
            stack.push_async_callback(store.close)
            return store

        yield opened


@pytest.fixture
async def store(opens: Open) -> Store:
    return await opens()


@pytest.mark.shows("AC-2.6.3")
async def test_an_episode_comes_back_as_it_was(store: Store) -> None:
    """Every field, whatever the texts hold; the id is taken once."""
    assert await store.add(rich(1), vector(0))
    assert not await store.add(replace(rich(1), lesson="Another."), vector(90))
    (found,) = await store.get([hexed(1), hexed(2)])
    assert found.episode == rich(1)
    assert (found.similarity, found.bm25, found.use) == (None, None, Use())


async def test_texts_that_no_database_holds(store: Store) -> None:
    """Half a character and a zero byte are replaced; the episode is stored and found."""
    assert await store.add(episode(1, "half \ud800 zero \0 end", files=("a\0b",), session="s\ud800"))
    (found,) = await store.search("half zero", None, ["/p", "/\ud800\0"], 5)
    assert found.episode.query == "half ? zero \ufffd end"
    assert found.episode.files == ("a\ufffdb",)
    assert await store.page(["/\0"], after="\0\ud800") == []


async def test_pages_newest_first(store: Store) -> None:
    """Each episode once, whatever the size of the pages; of the same moment by id."""
    for n in range(7):
        await store.add(episode(n, project="/p" if n % 2 else "/q", at=NOW + n // 3))
    await store.settle([hexed(3)], "dismissed")
    found: list[int] = []
    while page := await store.page(None, after=hexed(found[-1]) if found else "", limit=2):
        found += ids(page)
    assert found == [6, 5, 4, 3, 2, 1, 0]
    assert ids(await store.page(["/p"])) == [5, 3, 1]
    assert ids(await store.page(["/p"], state="dismissed")) == [3]
    assert ids(await store.page(["/p"], state="quarantined", after=hexed(5))) == [1]
    assert await store.page([]) == []


@pytest.mark.shows("AC-2.6.4", "SUBTASK-4.4")
async def test_the_nearest_by_meaning(store: Store) -> None:
    """The nearest first, with the cosine; three of them are above 0.70."""
    for n, degrees in enumerate((80, 10, 44, 0, 60)):
        await store.add(episode(n, "§"), vector(degrees))
    await store.add(episode(9, "§"))
    found = await store.search("", vector(0), ["/p"], 4)
    assert ids(found) == [3, 1, 2, 4]
    for one, degrees in zip(found, (0, 10, 44, 60), strict=True):
        assert one.similarity == pytest.approx(cos(radians(degrees)), abs=1e-6)
    assert ids(c for c in found if (c.similarity or 0) > SIMILAR) == [3, 1, 2]


async def test_two_models_are_never_compared(store: Store) -> None:
    """Neither those of another name nor those of another size."""
    await store.add(episode(1, "alpha"), vector(0, "other"))
    await store.add(episode(2, "beta"), vector(0, MODEL, 6))
    await store.add(episode(3, "gamma"), vector(50))
    assert ids(await store.search("alpha", vector(0), None, 5)) == [3]


async def test_the_best_by_words(store: Store) -> None:
    """Without a vector: more and rarer words count more; case doesn't. Task and lesson are looked at."""
    await store.add(episode(1, "migrate the database schema"), vector(0))
    await store.add(episode(2, "the database is slow"), vector(90))
    await store.add(episode(3, "change the colour of a button", lesson="Ask the designer."), vector(90))
    found = await store.search("Database SCHEMA", None, None, 5)
    assert ids(found) == [1, 2]
    assert found[0].bm25 > found[1].bm25 > 0  # type: ignore[operator]
    assert {c.similarity for c in found} == {None}
    assert ids(await store.search("designer", None, None, 5)) == [3]
    near = await store.search("schema", vector(89), None, 1)
    assert (ids(near), near[0].bm25) in [([2], None), ([3], None)], "with a vector words count for nothing"


@pytest.mark.parametrize(
    "words", ["", "  ", '"', "' OR 1=1 --", "a* NEAR(b)", "%s {0} \\", "x" * 9_000, "\0"]
)
async def test_any_words_may_be_asked_for(store: Store, words: str) -> None:
    """They are data, never a query's own signs."""
    await store.add(episode(1), vector(0))
    assert ids(await store.search(words, vector(0), None, 5)) == [1]
    assert ids(await store.search(words, None, None, 5)) in ([], [1])


async def test_only_these_projects(store: Store) -> None:
    """A lesson stays in its project; however many near ones others have."""
    for n in range(40):
        await store.add(episode(n, "shared words", project="/q"), vector(0))
    await store.add(episode(50, "shared words", project="/p"), vector(80))
    await store.add(episode(51, "shared words", project=""), vector(80))
    assert ids(await store.search("shared", vector(0), ["/p"], 3)) == [50]
    assert ids(await store.search("shared", vector(0), [""], 3)) == [51]
    assert await store.search("shared", vector(0), ["/none"], 3) == []
    assert await store.search("shared", vector(0), [], 3) == []
    assert ids(await store.search("shared", None, ["/p"], 3)) == [50]
    assert await store.search("shared", None, [], 3) == []
    assert len(await store.search("", vector(0), None, 3)) == 3


async def test_the_dismissed_are_not_found(store: Store) -> None:
    """By neither meaning nor words, also when they were in memory; they come back when settled
    again.
    """
    for n in range(30):
        await store.add(episode(n, "the same"), vector(n))
    assert len(await store.search("same", vector(0), ["/p"], 2)) >= 2
    assert await store.settle([hexed(n) for n in range(28)], "dismissed") == 28
    assert set(ids(await store.search("same", vector(0), ["/p"], 5))) == {28, 29}
    assert await store.settle([hexed(0), hexed(1)], "quarantined") == 2
    assert ids(await store.search("", vector(0), ["/p"], 1)) == [0]


async def test_states(store: Store) -> None:
    """``settle`` says how many changed; an unknown id is nothing."""
    for n in range(3):
        await store.add(episode(n))
    assert await store.settle([hexed(0), hexed(1), hexed(9)], "confirmed") == 2
    assert await store.settle([hexed(0), hexed(2)], "confirmed") == 1
    assert await store.settle([hexed(0)], "dismissed") == 1
    assert await store.settle([], "confirmed") == 0
    states = [c.episode.state for c in await store.page(None)]
    assert states == ["confirmed", "confirmed", "dismissed"]
    counts = await store.counts(["/p"])
    assert {k: counts[k] for k in ("quarantined", "confirmed", "dismissed")} == {
        "quarantined": 0,
        "confirmed": 2,
        "dismissed": 1,
    }
    assert counts["bytes"] > 100
    assert sum((await store.counts(["/q"])).values()) == 0


async def test_a_session_counts_once(store: Store) -> None:
    """For each outcome; of an episode that is not there nothing is counted."""
    await store.add(episode(1))
    for session, at, outcome in (
        ("a", 5, "given"),
        ("a", 9, "given"),
        ("b", 7, "given"),
        ("a", 8, "helped"),
        ("b", 8, "failed"),
    ):
        await store.count_use(hexed(1), session, NOW + at, outcome)  # type: ignore[arg-type]
    await store.count_use(hexed(2), "a", NOW, "given")
    (found,) = await store.get([hexed(1)])
    assert found.use in {Use(2, 1, 1, NOW + 8), Use(2, 1, 1, NOW + 9)}


async def test_forgotten_is_gone(store: Store) -> None:
    """From every way to it; the id may be used again."""
    await store.add(rich(1), vector(0))
    await store.add(rich(2), vector(1))
    assert len(await store.search("prüfen", None, None, 5)) == 2
    await store.count_use(hexed(1), "s", NOW, "given")
    assert await store.forget([hexed(1), hexed(7)]) == 1
    assert await store.forget([hexed(1)]) == 0
    assert await store.get([hexed(1)]) == []
    assert ids(await store.search("prüfen", None, None, 5)) == [2]
    assert ids(await store.search("", vector(0), None, 5)) == [2]
    assert await store.add(episode(1, "something else"))
    (found,) = await store.get([hexed(1)])
    assert found.use == Use()
    assert await store.search("colour", vector(0, "x"), None, 5) == []


async def test_another_model_embeds_again(store: Store) -> None:
    """What has no vector of the model is told, newest first; an earlier vector is replaced."""
    await store.add(episode(1), vector(0, "old"))
    await store.add(episode(2), vector(0))
    await store.add(episode(3))
    assert ids(await store.unembedded(MODEL, 10)) == [3, 1]
    assert ids(await store.unembedded(MODEL, 1)) == [3]
    assert ids(await store.search("", vector(0, "old"), None, 5)) == [1]
    await store.embed({hexed(1): vector(30), hexed(3): vector(60), hexed(8): vector(0)})
    assert await store.unembedded(MODEL, 10) == []
    assert ids(await store.search("", vector(0), None, 5)) == [2, 1, 3]
    assert await store.search("", vector(0, "old"), None, 5) == []
    await store.embed({hexed(2): vector(90)})
    assert ids(await store.search("", vector(0), None, 5)) == [1, 3, 2]


@pytest.mark.shows("I44")
async def test_sessions_are_forgotten_after_a_while(opens: Open) -> None:
    """The rows that say which session was counted go; what they counted stays."""
    store = await opens()
    await store.add(episode(1))
    day = 86_400_000
    await store.count_use(hexed(1), "long ago", NOW - USES_DAYS * day - 1, "given")
    await store.count_use(hexed(1), "lately", NOW, "given")
    await store._db.commit(forget_uses(NOW))
    for session in ("long ago", "lately"):
        await store.count_use(hexed(1), session, NOW, "given")
    (found,) = await store.get([hexed(1)])
    assert found.use.given == 3  # only the one that is no longer known counts again


async def test_many_at_once(opens: Open) -> None:
    """Two that have the store open add, settle, count and search at the same time; nothing is lost."""
    one, other = await opens(), await opens()

    async def work(store: Store, n: int) -> bool:
        added = await store.add(episode(n), vector(n % 90))
        await store.count_use(hexed(n), f"s{n}", NOW, "given")
        await store.settle([hexed(n)], "confirmed")
        assert len(await store.search("task", vector(n % 90), ["/p"], 3)) >= 1
        return added

    jobs = [work(random.choice((one, other)), n) for n in [*range(60), *range(60)]]
    added = await asyncio.gather(*jobs)
    assert sum(added) == 60
    assert (await one.counts(None))["confirmed"] == 60
    assert [c.use.given for c in await other.page(None)] == [1] * 60
    assert ids(await other.search("", vector(7), None, 1)) == [7]


async def test_what_another_stored_is_found(opens: Open) -> None:
    """Also after this one has loaded vectors: added, replaced and removed ones."""
    one, other = await opens(), await opens()
    await one.add(episode(1), vector(50))
    assert ids(await other.search("", vector(50), None, 5)) == [1]
    assert ids(await other.search("", vector(0), None, 5)) == [1]
    await one.add(episode(2), vector(10))
    await one.embed({hexed(1): vector(5)})
    assert ids(await other.search("", vector(0), None, 5)) == [1, 2]
    await one.forget([hexed(1)])
    assert ids(await other.search("", vector(0), None, 5)) == [2]


@pytest.mark.parametrize("numpy", [True, False])
async def test_vectors_are_compared_in_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, numpy: bool
) -> None:
    """All of them, also those of the last block, with numpy and without; what comes later is too."""
    if not numpy:
        monkeypatch.setattr(episode_rows, "find_spec", lambda _name: None)
    monkeypatch.setattr(stored, "LOADED", 5)
    db = Database(tmp_path / "db", lambda: NOW)
    store = SqliteEpisodes(db)
    for n in range(11):
        await store.add(episode(n), vector(n))
    assert len(await store.search("", vector(1), None, 11)) == 11
    await store.add(episode(11), vector(-0.1))
    assert ids(await store.search("", vector(-0.1), None, 1)) == [11]
    await store.close()
    db.close()


async def test_closed(opens: Open) -> None:
    """Afterwards everything is ``Unavailable``; a second close is nothing."""
    store = await opens()
    await store.add(episode(1))
    await store.close()
    await store.close()
    asked: list[Awaitable[Any]] = [
        store.page(None),
        store.search("task", vector(0), None, 1),
        store.get([hexed(1)]),
        store.counts(None),
    ]
    for one in asked:
        with pytest.raises(Unavailable):
            await one


async def test_a_vector_of_odd_bytes(store: Store) -> None:
    """Damage in a vector: it is not found by it, and searching goes on."""
    await store.add(episode(1, "alpha"), vector(0))
    await store.add(episode(2, "beta"), vector(0, size=4))
    assert ids(await store.search("", Vector(MODEL, b"123"), None, 5)) == []
    assert ids(await store.search("beta", vector(0), None, 5)) == [1]
