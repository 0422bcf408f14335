"""Episodes in PostgreSQL with pgvector, which a team may share (AC-2.6.3); off unless ``store.url_file`` is
set.

Several daemons write at once: each method is one transaction, and rows are locked in one order. The state of
an episode is each reader's own (``readers``): one that somebody else learned is quarantined here until it is
confirmed here, and its proof counts for nothing. One that its owner dismissed is dismissed for all. Another's
is only dismissed for this reader, also by ``forget``, and ``trim`` takes only this reader's.

A project is known to several people by its repository; one that has none is its owner's alone. What is read
has limits, and is decoded beside the event loop. A search in a small project compares all its vectors, one in
a large project asks the index.
"""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ..core.errors import Unavailable, UserError
from .episode_rows import COLUMNS, COUNTS, STATES, USES_DAYS, Copy, candidate, counted, listed, plain, values
from .episode_vectors import floats, packed
from .postgres import Postgres
from .postgres_schema import DIMENSIONS, index
from .postgres_search import BYTES, FITS, HERE, KNOWN, LIVE, WHOSE, bounded, by_words, nearest, text
from .readers import Reader

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from pathlib import Path

    from psycopg import AsyncConnection

    from ..core.episodes import Candidate, Episode, State, Vector
    from .episode_rows import Outcome

Given = Sequence[Any] | Mapping[str, Any]
DAY_MS: Final = 86_400_000
INDEX_MB: Final = (64, 2_048)
"""The memory that the server may use to make an index of vectors: as much as the graph needs, at least and at
most so much. A graph that does not fit takes many times as long."""
_LINKS_BYTES: Final = 1_000  # of one vector in the graph, beside its numbers
_STATE: Final = COLUMNS.index("state")
_PROOF: Final = COLUMNS.index("proof")
_TEXTS: Final = tuple(name for name in COLUMNS if name != "state")
_ROW: Final = ", ".join(
    [
        *("e.key", "s.mark"),
        *(KNOWN if n == "state" else f"e.{n}" for n in COLUMNS),
        *(f"e.{n}" for n in COUNTS),
        f"{BYTES} AS row_bytes",
    ]
)
_NEWEST: Final = "ORDER BY e.at DESC, e.id DESC"
TRIGGERED: Final = 1_000
TRIMMED: Final = 1_000  # of one project at once
AT_ONCE: Final = 16  # rows that are settled in one statement
_SIZE: Final = (
    "octet_length(concat(query, problem, lesson, reflection, triggers, files)) "
    "+ coalesce(4 * vector_dims(embedding), 0)"
)


class PostgresEpisodes:
    """See the module; an ``Episodes``. Connects when it is first used."""

    def __init__(
        self,
        url: Callable[[], str],
        key: Path,
        now: Callable[[], int],
        author: str = "",
        repository: Callable[[str], str] = lambda _project: "",
    ) -> None:
        """``url``: gives the address when it is needed. ``key``: the file of this reader's key, made when
        there is none. ``now``: epoch ms. ``author``: of episodes that name none. ``repository``: what names
        a project for everybody, "" for nothing; called in a thread.
        """
        self._server = Postgres(url, now)
        self._repository = repository
        self._key, self._author = key, author
        self._known_reader: Reader | None = None
        self._now = now
        self._indexed: set[int] = set()

    @property
    def name(self) -> str:
        """The server and its database, for people."""
        return self._server.name

    async def add(self, episode: Episode, vector: Vector | None = None) -> bool:
        """See ``Episodes``."""
        return await self._insert([Copy(episode, vector)], indexed=True) == 1

    async def put(self, copies: Sequence[Copy]) -> None:
        """Store copies out of another store. Those of an id that is here already change nothing."""
        await self._insert(copies, indexed=False)

    async def get(self, ids: Collection[str]) -> list[Candidate]:
        """See ``Episodes``."""
        return await self._candidates("e.id = ANY(%(ids)s)", "", ids=listed(ids))

    async def page(
        self,
        projects: Collection[str] | None,
        *,
        state: State | None = None,
        after: str = "",
        limit: int = 100,
    ) -> list[Candidate]:
        """See ``Episodes``."""
        return await self._candidates(
            f"{HERE} AND (%(state)s::text IS NULL OR {KNOWN} = %(state)s) "
            "AND (%(after)s = '' OR (e.at, e.id) < (SELECT at, id FROM episode_memory WHERE id = %(after)s))",
            "LIMIT %(limit)s",
            **await self._here(projects),
            state=state,
            after=plain(after),
            limit=limit,
        )

    async def search(
        self, words: str, vector: Vector | None, projects: Collection[str] | None, limit: int
    ) -> list[Candidate]:
        """See ``Episodes``."""
        given: dict[str, object] = {
            "reader": self._reader.name,
            **await self._here(projects),
            "limit": limit,
        }
        if vector is None:
            sql, given = by_words(_ROW, given), {**given, "words": plain(words)}
        else:
            numbers = floats(vector.data) if not len(vector.data) % 4 else array("f")
            if not numbers:
                return []
            sql = nearest(_ROW, given, len(numbers))
            given = {**given, "model": vector.model, "vector": text(numbers)}
        async with self._server.reading() as c:
            # not prepared: how a statement is best planned depends on the project and the words
            rows = await (await c.execute(bounded(sql), given, prepare=False)).fetchall()
        of_words = vector is None
        found = await asyncio.to_thread(
            lambda: [
                self._candidate(row, None if of_words else score, score if of_words else None)
                for score, *row in rows
            ]
        )
        return sorted(found, key=lambda x: (-(x.similarity or 0.0), -(x.bm25 or 0.0), x.episode.id))

    async def triggered(self, projects: Collection[str]) -> list[Candidate]:
        """See ``Episodes``."""
        return await self._candidates(
            f"e.triggers <> '[]' AND {LIVE} AND {HERE}", f"LIMIT {TRIGGERED}", **await self._here(projects)
        )

    async def settle(self, ids: Collection[str], state: State) -> int:
        """See ``Episodes``: for this reader."""
        done, all_ = 0, sorted(listed(ids))
        async with self._server.writing() as c:
            for start in range(0, len(all_), AT_ONCE):
                rows = await _all(
                    c,
                    f"SELECT {_ROW} {WHOSE} WHERE e.id = ANY(%(ids)s) AND {FITS} "
                    'ORDER BY e.id COLLATE "C" FOR UPDATE OF e',
                    {"ids": all_[start : start + AT_ONCE], "reader": self._reader.name},
                )
                changed = [row for row in rows if self._candidate(row).episode.state != state]
                await _many(
                    c,
                    "INSERT INTO episode_states (episode, reader, state, mark) VALUES (%s, %s, %s, %s) "
                    "ON CONFLICT (episode, reader) "
                    "DO UPDATE SET state = excluded.state, mark = excluded.mark",
                    [
                        (row[0], self._reader.name, state, self._reader.mark(state, _marked(row[2:])))
                        for row in changed
                    ],
                )
                done += len(changed)
        return done

    async def count_use(self, id_: str, session: str, at: int, outcome: Outcome) -> None:
        """See ``Episodes``."""
        async with self._server.writing() as c:
            await c.execute(
                "WITH used AS (INSERT INTO episode_uses (episode, session, outcome, at) "
                "SELECT key, %(session)s, %(outcome)s, %(at)s FROM episode_memory WHERE id = %(id)s "
                "ON CONFLICT DO NOTHING RETURNING episode) "
                f"UPDATE episode_memory SET {outcome} = {outcome} + 1, last = greatest(last, %(at)s) "
                "FROM used WHERE key = used.episode",
                {"id": plain(id_), "session": plain(session), "outcome": outcome, "at": at},
            )

    async def forget(self, ids: Collection[str]) -> int:
        """See ``Episodes``: this reader's own. Those of others are dismissed, for this reader."""
        rows = await self._rows(
            "DELETE FROM episode_memory WHERE id = ANY(%(ids)s) AND owner = %(reader)s RETURNING id",
            ids=listed(ids),
        )
        others = set(listed(ids)) - {id_ for (id_,) in rows}
        return len(rows) + (await self.settle(others, "dismissed") if others else 0)

    async def unembedded(self, model: str, limit: int) -> list[Episode]:
        """See ``Episodes``: this reader's own."""
        found = await self._candidates(
            "e.owner = %(reader)s AND e.model IS DISTINCT FROM %(model)s",
            "LIMIT %(limit)s",
            model=model,
            limit=limit,
        )
        return [c.episode for c in found]

    async def embed(self, vectors: Mapping[str, Vector]) -> None:
        """See ``Episodes``."""
        async with self._server.writing() as c:
            await self._index(c, {len(v.data) // 4 for v in vectors.values()})
            await _many(
                c,
                "UPDATE episode_memory SET model = %s, embedding = %s::vector WHERE id = %s",
                [(v.model, text(floats(v.data)), plain(id_)) for id_, v in sorted(vectors.items())],
            )

    async def counts(self, projects: Collection[str] | None) -> Mapping[str, int]:
        """See ``Episodes``: the states are this reader's."""
        rows = await self._rows(
            f"SELECT {KNOWN}, count(*), sum({_SIZE}) {WHOSE} WHERE {HERE} GROUP BY 1",
            **await self._here(projects),
        )
        states = {state: int(count) for state, count, _ in rows if state in STATES}
        return {**dict.fromkeys(STATES, 0), **states, "bytes": sum(int(size) for *_, size in rows)}

    async def trim(self, project: str, keep: int) -> Sequence[str]:
        """See ``Episodes``. It also forgets which sessions were counted, when that is long ago."""
        rows = await self._rows(
            "DELETE FROM episode_memory WHERE key IN (SELECT e.key "
            f"{WHOSE} WHERE e.project = %(project)s AND e.owner = %(reader)s "
            f"ORDER BY {KNOWN} = 'dismissed' DESC, e.helped > e.failed, e.given > 0, e.at, e.id "
            f"LIMIT least({TRIMMED}, greatest(0, (SELECT count(*) FROM episode_memory "
            "WHERE project = %(project)s AND owner = %(reader)s) - %(keep)s))) RETURNING left(id, 32)",
            project=plain(project),
            keep=keep,
        )
        await self._rows(
            "DELETE FROM episode_uses WHERE "
            f"at < least(%(before)s, (SELECT min(at) FROM episode_uses) + {DAY_MS}) RETURNING 1",
            before=self._now() - USES_DAYS * DAY_MS,
        )
        return [id_ for (id_,) in rows]

    async def analyze(self) -> None:
        """Index the vectors and let the server count words anew, after very many came."""
        async with self._server.writing() as c:
            await c.execute("SET LOCAL statement_timeout = 0")
            sizes = await _all(
                c,
                "SELECT vector_dims(embedding), count(*) FROM episode_memory WHERE embedding IS NOT NULL "
                "GROUP BY 1",
            )
            graph_mb = max((many * (2 * size + _LINKS_BYTES) // 1_000_000 for size, many in sizes), default=0)
            memory = min(max(graph_mb, INDEX_MB[0]), INDEX_MB[1])
            await c.execute(f"SET LOCAL maintenance_work_mem = '{memory}MB'")
            await self._index(c, {size for size, _ in sizes})
            await c.execute("ANALYZE episode_memory")

    async def close(self) -> None:
        """See ``Episodes``."""
        await self._server.close()

    @property
    def _reader(self) -> Reader:
        if self._known_reader is None:
            try:
                self._known_reader = Reader(self._key)
            except UserError as error:
                raise Unavailable(str(error)) from None
        return self._known_reader

    # --- inside -------------------------------------------------------------------------------------

    async def _here(self, projects: Collection[str] | None) -> dict[str, list[str] | None]:
        """What ``HERE`` asks for."""
        if projects is None:
            return {"projects": None, "repositories": None}
        names = await asyncio.to_thread(lambda: [self._repository(p) for p in projects])
        return {"projects": listed(projects), "repositories": listed([name for name in names if name])}

    async def _candidates(self, where: str, rest: str, **given: object) -> list[Candidate]:
        """The newest first, within the limits."""
        sql = bounded(f"SELECT {_ROW} {WHOSE} WHERE {where} AND {FITS} {_NEWEST} {rest}")
        rows = await self._rows(sql, **given)
        return await asyncio.to_thread(lambda: [self._candidate(row) for row in rows])

    async def _rows(self, sql: str, **given: object) -> list[Any]:
        async with self._server.reading() as c:
            return await _all(c, sql, {"reader": self._reader.name, **given})

    async def _insert(self, copies: Sequence[Copy], *, indexed: bool) -> int:
        """How many were new. Without ``indexed`` an index that is missing is left to ``analyze``: it is made
        much faster when all are there.
        """
        named = [
            c if c.episode.author else replace(c, episode=replace(c.episode, author=self._author))
            for c in sorted(copies, key=lambda c: c.episode.id)
        ]
        rows = [(values(c.episode), c) for c in named]
        projects = {c.episode.project for c in named}
        repositories = await asyncio.to_thread(lambda: {p: plain(self._repository(p)) for p in projects})
        me = self._reader
        async with self._server.writing() as c:
            if indexed:
                await self._index(c, {len(x.vector.data) // 4 for x in named if x.vector is not None})
            added = await _many(
                c,
                f"INSERT INTO episode_memory ({', '.join(_TEXTS)}, {', '.join(COUNTS)}, "
                "owner, repository, model, embedding) "
                f"VALUES ({', '.join(['%s'] * (len(_TEXTS) + len(COUNTS) + 3))}, %s::vector) "
                "ON CONFLICT (id) DO NOTHING",
                [
                    (
                        *_marked(row),
                        *counted(x.use),
                        me.name,
                        repositories[x.episode.project],
                        x.vector.model if x.vector is not None else None,
                        text(floats(x.vector.data)) if x.vector is not None else None,
                    )
                    for row, x in rows
                ],
            )
            await _many(
                c,
                "INSERT INTO episode_states (episode, reader, state, mark) SELECT key, owner, %s, %s "
                "FROM episode_memory WHERE id = %s AND owner = %s ON CONFLICT DO NOTHING",
                [
                    (row[_STATE], me.mark(row[_STATE], _marked(row)), plain(x.episode.id), me.name)
                    for row, x in rows
                ],
            )
        return added

    async def _index(self, c: AsyncConnection[Any], sizes: Iterable[int]) -> None:
        """An index for vectors of a size that was not seen yet."""
        for size in sorted(set(sizes) - self._indexed):
            if 0 < size <= DIMENSIONS:
                await c.execute("SELECT pg_advisory_xact_lock(%s)", (size,))
                await c.execute("SET LOCAL statement_timeout = 0")
                await c.execute(index(size))
            self._indexed.add(size)

    def _candidate(
        self, row: Sequence[Any], similarity: float | None = None, score: float | None = None
    ) -> Candidate:
        """From the values of ``_ROW``. A state that this reader did not set is "quarantined", and what proves
        a row that it does not know proves nothing here.
        """
        _, mark, *rest = row
        vouched = bool(mark) and self._reader.knows(mark, rest[_STATE], _marked(rest))
        if not vouched:
            rest[_PROOF] = ""
            if rest[_STATE] != "dismissed":
                rest[_STATE] = "quarantined"
        return replace(candidate(rest, similarity, score), vouched=vouched)


async def _all(c: AsyncConnection[Any], sql: str, given: Given = ()) -> list[Any]:
    return await (await c.execute(sql, given)).fetchall()


async def _many(c: AsyncConnection[Any], sql: str, rows: Sequence[Sequence[Any]]) -> int:
    """How many rows changed. The statements go together, not one by one."""
    if not rows:
        return 0
    async with c.cursor() as cursor:
        await cursor.executemany(sql, rows)
        return cursor.rowcount


def _marked(row: Sequence[Any]) -> list[Any]:
    """The values of ``COLUMNS`` without the state: what a reader's mark is about."""
    found = [*row[:_STATE], *row[_STATE + 1 : len(COLUMNS)]]
    return [float(value) if name == "reward" else value for name, value in zip(_TEXTS, found, strict=True)]


def _data(text: str) -> bytes:
    """Of a vector as pgvector writes it."""
    return packed(array("f", map(float, text.strip("[]").split(","))))
