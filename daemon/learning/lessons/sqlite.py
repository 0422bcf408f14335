"""Episodes in the daemon's own database (AC-2.6.3); ``PostgresEpisodes`` does the same, by the same names.

Writes go through the database's one writer; what was learned is stored durably. Reads have a connection of
their own and run in a thread, so that a long search holds up neither the loop nor other readers. A search by
meaning reads the vectors of its projects in blocks and compares them: a project has some hundred. A damaged
index of words is made anew once. Whatever a read meets is ``Unavailable``.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from contextlib import suppress
from heapq import nlargest
from importlib.util import find_spec
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import msgspec

from ...core.errors import Unavailable
from ...store.db import ConflictError
from ...store.readonly import text
from ...store.retention import old
from .episodes import DAY_MS
from .rows import COLUMNS, COUNTS, STATES, USES_DAYS, candidate, cosines, listed, plain, values

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from ...store.db import Database, Statement
    from ..embed.vectors import Vector
    from .episodes import Candidate, Episode, State
    from .postgres import PostgresEpisodes
    from .rows import Outcome

T = TypeVar("T")
Episodes: TypeAlias = "SqliteEpisodes | PostgresEpisodes"

LOADED: Final = 2_000  # vectors that are compared at once
MOST: Final = 250_000  # that one search compares
PLAIN: Final = 10_000  # without numpy: as many as take about a tenth of a second
ASKED: Final = 200  # words of one search
_ALL: Final = ", ".join(f"e.{name}" for name in (*COLUMNS, *COUNTS))
_NAMES: Final = ", ".join((*COLUMNS, *COUNTS))
_MARKS: Final = ", ".join("?" * (len(COLUMNS) + len(COUNTS)))
_THESE: Final = "id IN (SELECT value FROM json_each(?))"
_HERE: Final = "(?1 IS NULL OR e.project IN (SELECT value FROM json_each(?1)))"
_SIZE: Final = (
    "length(query) + length(problem) + length(lesson) + length(reflection) + length(triggers) + "
    "length(files) + coalesce((SELECT length(data) FROM episode_vectors WHERE episode = key), 0)"
)
_encode = msgspec.json.Encoder().encode


class SqliteEpisodes:
    """See the module. Each method raises ``Unavailable`` when the store can't be reached."""

    def __init__(self, db: Database) -> None:
        """Opens nothing yet. ``db`` stays its owner's to close."""
        self._db = db
        self._lock = threading.Lock()
        self._conn: sqlite3.Connection | None = None
        self._closed = False

    async def add(self, episode: Episode, vector: Vector | None = None) -> bool:
        """Store it. False when the store has an episode of this id already; then nothing changes."""
        try:
            await self._db.commit(*_insert(episode, vector), durable=True)
        except ConflictError:
            return False
        return True

    async def get(self, ids: Collection[str]) -> list[Candidate]:
        """Those of these ids that are stored, without scores."""
        rows = await self._read(
            f"SELECT {_ALL} FROM episode_memory AS e WHERE e.{_THESE} ORDER BY at DESC, id DESC",
            (_json(ids),),
        )
        return [candidate(row) for row in rows]

    async def page(
        self,
        projects: Collection[str] | None,
        *,
        state: State | None = None,
        after: str = "",
        limit: int = 100,
    ) -> list[Candidate]:
        """See ``Episodes``."""
        rows = await self._read(
            f"SELECT {_ALL} FROM episode_memory AS e WHERE {_HERE} AND (?2 IS NULL OR e.state = ?2) "
            "AND (?3 = '' OR (e.at, e.id) < (SELECT at, id FROM episode_memory WHERE id = ?3)) "
            "ORDER BY e.at DESC, e.id DESC LIMIT ?4",
            (_json(projects), state, plain(after), limit),
        )
        return [candidate(row) for row in rows]

    async def search(
        self, words: str, vector: Vector | None, projects: Collection[str] | None, limit: int
    ) -> list[Candidate]:
        """The nearest by vector, of the same model only; without one the best by words. No dismissed ones."""

        def search(c: sqlite3.Connection) -> list[Candidate]:
            return self._search(c, words, vector, projects, limit)

        try:
            return await self._in_thread(search)
        except Unavailable as e:
            if "malformed" not in str(e):
                raise
        await self._db.commit(("INSERT INTO episode_words (episode_words) VALUES ('rebuild')", [()]))
        return await self._in_thread(search)

    async def settle(self, ids: Collection[str], state: State) -> int:
        """How many are in that state now that were not."""
        return await self._db.commit(
            (
                f"UPDATE episode_memory SET state = ? WHERE state != ? AND {_THESE}",
                [(state, state, _json(ids))],
            ),
            durable=True,
        )

    async def count_use(self, id_: str, session: str, at: int, outcome: Outcome) -> None:
        """Count once for each session and outcome."""
        id_, session = plain(id_), plain(session)
        await self._db.commit(
            (
                f"UPDATE episode_memory SET {outcome} = {outcome} + 1, last = max(last, ?) WHERE id = ? "
                "AND NOT EXISTS (SELECT 1 FROM episode_uses WHERE episode = key AND session = ? "
                "AND outcome = ?)",
                [(at, id_, session, outcome)],
            ),
            (
                "INSERT OR IGNORE INTO episode_uses (episode, session, outcome, at) "
                "SELECT key, ?, ?, ? FROM episode_memory WHERE id = ?",
                [(session, outcome, at, id_)],
            ),
        )

    async def forget(self, ids: Collection[str]) -> int:
        """Delete them for good. How many there were."""
        there = await self._read(f"SELECT id FROM episode_memory WHERE {_THESE}", (_json(ids),))
        await self._db.commit((f"DELETE FROM episode_memory WHERE {_THESE}", [(_json(ids),)]), durable=True)
        return len(there)

    async def unembedded(self, model: str, limit: int) -> list[Episode]:
        """Those that have no vector of this model, newest first."""
        rows = await self._read(
            f"SELECT {_ALL} FROM episode_memory AS e WHERE NOT EXISTS (SELECT 1 FROM episode_vectors AS v "
            "WHERE v.episode = e.key AND v.model = ?) ORDER BY e.at DESC, e.id DESC LIMIT ?",
            (model, limit),
        )
        return [candidate(row).episode for row in rows]

    async def embed(self, vectors: Mapping[str, Vector]) -> None:
        """Store the vectors of these ids. An earlier vector, of any model, is replaced."""
        await self._db.commit(_vectors(vectors))

    async def counts(self, projects: Collection[str] | None) -> Mapping[str, int]:
        """How many in each state, and ``bytes``."""
        rows = await self._read(
            f"SELECT state, count(*), sum({_SIZE}) FROM episode_memory AS e WHERE {_HERE} GROUP BY state",
            (_json(projects),),
        )
        states = {state: int(count) for state, count, _ in rows if state in STATES}
        return {**dict.fromkeys(STATES, 0), **states, "bytes": sum(int(size) for *_, size in rows)}

    async def close(self) -> None:
        """Give back the connection. The database stays open: it is not this store's."""

        def closed() -> None:
            with self._lock:
                self._closed = True
                if self._conn is not None:
                    with suppress(sqlite3.Error):
                        self._conn.close()

        await asyncio.to_thread(closed)

    # --- in a thread --------------------------------------------------------------------------------

    async def _read(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        return await self._in_thread(lambda c: c.execute(sql, parameters).fetchall())

    async def _in_thread(self, work: Callable[[sqlite3.Connection], T]) -> T:
        def done() -> T:
            with self._lock:
                if self._closed:
                    raise Unavailable("the episodes are closed")
                try:
                    if self._conn is None:
                        self._conn = sqlite3.connect(
                            f"{self._db.path.absolute().as_uri()}?mode=ro",
                            uri=True,
                            isolation_level=None,
                            check_same_thread=False,
                        )
                        self._conn.text_factory = text
                    return work(self._conn)
                except sqlite3.Error as e:
                    raise Unavailable(f"episodes can't be read from {self._db.path}: {e}") from e

        return await asyncio.to_thread(done)

    def _search(
        self,
        c: sqlite3.Connection,
        words: str,
        vector: Vector | None,
        projects: Collection[str] | None,
        limit: int,
    ) -> list[Candidate]:
        if vector is None:
            return self._said(c, words, _json(projects), limit)
        near = self._near(c, vector, projects, limit) if vector.data and not len(vector.data) % 4 else {}
        rows = c.execute(
            f"SELECT e.key, {_ALL} FROM episode_memory AS e "
            "WHERE e.key IN (SELECT value FROM json_each(?)) AND e.state != 'dismissed'",
            (_encode([*near]).decode(),),
        )
        found = [candidate(row, near[key]) for key, *row in rows]
        return sorted(found, key=lambda x: (-(x.similarity or 0.0), x.episode.id))

    def _said(self, c: sqlite3.Connection, words: str, projects: str | None, limit: int) -> list[Candidate]:
        """By BM25, of the episodes that have any of these words."""
        wanted = dict.fromkeys(plain(words).replace('"', " ").split())
        if not wanted:
            return []
        rows = c.execute(
            f"SELECT -bm25(episode_words) AS score, {_ALL} FROM episode_words "
            "CROSS JOIN episode_memory AS e ON e.key = episode_words.rowid "
            f"WHERE {_HERE} AND e.state != 'dismissed' AND episode_words MATCH ?2 "
            "ORDER BY score DESC, e.id LIMIT ?3",
            (projects, " OR ".join(f'"{word}"' for word in list(wanted)[:ASKED]), limit),
        )
        return [candidate(row, None, float(score)) for score, *row in rows]

    def _near(
        self, c: sqlite3.Connection, vector: Vector, projects: Collection[str] | None, limit: int
    ) -> dict[int, float]:
        """Key → cosine, the nearest first. Of very many the newest are compared."""
        rows = c.execute(
            "SELECT v.episode, v.data FROM episode_memory AS e CROSS JOIN episode_vectors AS v "
            "ON v.episode = e.key WHERE v.model = ? AND length(v.data) = ? AND e.state != 'dismissed' "
            f"{'' if projects is None else 'AND e.project IN (SELECT value FROM json_each(?))'} "
            f"ORDER BY e.at DESC LIMIT {PLAIN if find_spec('numpy') is None else MOST}",
            (vector.model, len(vector.data), *([] if projects is None else [_json(projects)])),
        )
        best: list[tuple[int, float]] = []
        while block := rows.fetchmany(LOADED):
            scores = cosines([data for _, data in block], vector.data)
            near = zip((key for key, _ in block), scores, strict=True)
            best = nlargest(limit, [*best, *near], key=itemgetter(1))
        return dict(best)


def forget_uses(now: int) -> Statement:
    """Which sessions were counted is forgotten when that is long ago."""
    return (f"DELETE FROM episode_uses WHERE {old('episode_uses')}", [(now - USES_DAYS * DAY_MS,)])


def _insert(episode: Episode, vector: Vector | None) -> list[Statement]:
    """An episode, the words by which it is found, and its vector. An id that is there is a conflict."""
    words = plain(f"{episode.query}\n{episode.lesson}")
    return [
        (f"INSERT INTO episode_memory ({_NAMES}) VALUES ({_MARKS})", [(*values(episode), 0, 0, 0, 0)]),
        (
            "INSERT INTO episode_words (rowid, terms) SELECT key, ? FROM episode_memory WHERE id = ?",
            [(words, plain(episode.id))],
        ),
        _vectors({} if vector is None else {episode.id: vector}),
    ]


def _vectors(vectors: Mapping[str, Vector]) -> Statement:
    return (
        "INSERT OR REPLACE INTO episode_vectors (episode, model, data) "
        "SELECT key, ?, ? FROM episode_memory WHERE id = ?",
        [(vector.model, vector.data, plain(id_)) for id_, vector in vectors.items()],
    )


def _json(texts: Collection[str] | None) -> str | None:
    return None if texts is None else _encode(listed(texts)).decode()
