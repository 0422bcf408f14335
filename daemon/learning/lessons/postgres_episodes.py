"""Episodes in PostgreSQL with pgvector, which several people may share (AC-2.6.3); off unless
``store.url_file`` is set.

Nothing on the server vouches for itself. Which episodes this person wrote, confirmed or dismissed stands in
the daemon's own database (``settled_episodes``), each with a digest of its text. A row that is not there, or
whose text is another one now, is quarantined here until the person confirms it, and its proof counts for
nothing. An episode that its owner took back is dismissed for all. Another's is never deleted, only dismissed
here.

A project is known to several people by its repository; one that has none is its owner's alone. What is read
has limits, because anybody who can write to the server chooses how long a row is.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

import msgspec

from .postgres import Postgres
from .rows import COLUMNS, COUNTS, STATES, USES_DAYS, candidate, floats, listed, plain, values

if TYPE_CHECKING:
    from array import array
    from collections.abc import Callable, Collection, Mapping, Sequence

    from psycopg import AsyncConnection

    from ...store.db import Database
    from ...store.migrations import Migration
    from ..embed.vectors import Vector
    from .episodes import Candidate, Episode, State
    from .rows import Outcome

DAY_MS: Final = 86_400_000
ROW_BYTES: Final = 256 * 1024
ANSWER_BYTES: Final = 4 * 1024 * 1024
KEY: Final = "episodes.key"  # of a version before; see ``_moved``
_STATE, _PROOF = COLUMNS.index("state"), COLUMNS.index("proof")
_SHARED: Final = tuple(name for name in COLUMNS if name != "state")
_TEXTS: Final = tuple(name for name in _SHARED if name not in {"reward", "at"})
_BYTES: Final = " + ".join(f"octet_length(e.{n})" for n in _TEXTS)
_ROW: Final = (
    f"{', '.join('e.withdrawn' if n == 'state' else f'e.{n}' for n in (*COLUMNS, *COUNTS))}, "
    f"{_BYTES} AS row_bytes"
)
_KNOWN: Final = (
    "(CASE WHEN e.withdrawn OR e.id = ANY(%(dismissed)s) THEN 'dismissed' "
    "WHEN e.id = ANY(%(confirmed)s) THEN 'confirmed' ELSE 'quarantined' END)"
)
_HERE: Final = (  # a folder alone names a project for its owner only
    "(%(projects)s::text[] IS NULL OR (e.project = ANY(%(projects)s) AND e.owner = %(me)s) "
    "OR (e.repository <> '' AND e.repository = ANY(%(repositories)s)))"
)
_NEWEST: Final = "e.at DESC, e.id DESC"
_ANY: Final = "replace(plainto_tsquery('simple', %(words)s)::text, '&', '|')::tsquery"
_SIZE: Final = f"{_BYTES} + coalesce(4 * vector_dims(e.embedding), 0)"
_encode = msgspec.json.Encoder().encode

MIGRATIONS: Final[tuple[Migration, ...]] = (
    (
        "0001_episodes",
        (
            """
            CREATE TABLE episode_memory (
                key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
                id TEXT NOT NULL UNIQUE,
                project TEXT NOT NULL,
                query TEXT NOT NULL,
                reward DOUBLE PRECISION NOT NULL,
                problem TEXT NOT NULL,
                lesson TEXT NOT NULL,
                reflection TEXT NOT NULL,
                triggers TEXT NOT NULL,
                cites TEXT NOT NULL,
                files TEXT NOT NULL,
                proof TEXT NOT NULL,
                author TEXT NOT NULL,
                session TEXT NOT NULL,
                turn TEXT NOT NULL,
                task TEXT NOT NULL,
                at BIGINT NOT NULL,
                owner TEXT NOT NULL,
                given INTEGER NOT NULL DEFAULT 0,
                helped INTEGER NOT NULL DEFAULT 0,
                failed INTEGER NOT NULL DEFAULT 0,
                last BIGINT NOT NULL DEFAULT 0,
                model TEXT,
                embedding vector,
                words tsvector GENERATED ALWAYS AS (
                    to_tsvector('simple', left(query, 20000) || ' ' || left(lesson, 20000))
                ) STORED
            )
            """,
            "CREATE INDEX ON episode_memory (project, at, id)",
            "CREATE INDEX ON episode_memory (at, id)",
            "CREATE INDEX ON episode_memory USING gin (words)",
            "CREATE TABLE episode_states (episode BIGINT NOT NULL REFERENCES episode_memory "
            "ON DELETE CASCADE, reader TEXT NOT NULL, state TEXT NOT NULL, mark TEXT NOT NULL, "
            "PRIMARY KEY (episode, reader))",
            "CREATE TABLE episode_uses (episode BIGINT NOT NULL REFERENCES episode_memory ON DELETE CASCADE, "
            "session TEXT NOT NULL, outcome TEXT NOT NULL, at BIGINT NOT NULL, "
            "PRIMARY KEY (episode, session, outcome))",
            "CREATE INDEX ON episode_uses (at)",
        ),
    ),
    (
        "0002_repository",  # '': of a project that nobody else can have
        (
            "ALTER TABLE episode_memory ADD COLUMN repository TEXT NOT NULL DEFAULT ''",
            "CREATE INDEX ON episode_memory (repository, at, id) WHERE repository <> ''",
        ),
    ),
    (
        "0003_withdrawn",  # by its owner; every other word on an episode is kept where it was said
        (
            "ALTER TABLE episode_memory ADD COLUMN withdrawn BOOLEAN NOT NULL DEFAULT false",
            "UPDATE episode_memory SET withdrawn = true FROM episode_states AS s "
            "WHERE s.episode = key AND s.reader = owner AND s.state = 'dismissed'",
        ),
    ),
)


class PostgresEpisodes:
    """See the module; an ``Episodes``. Connects when it is first used."""

    def __init__(
        self,
        url: Callable[[], str],
        db: Database,
        now: Callable[[], int],
        author: str = "",
        repository: Callable[[str], str] = lambda _project: "",
    ) -> None:
        """``url``: gives the address when it is needed. ``db``: the daemon's own database. ``now``: epoch ms.
        ``author``: of episodes that name none. ``repository``: what names a project for everybody, "" for
        nothing; called in a thread.
        """
        self._server = Postgres(url, now, MIGRATIONS)
        self._db, self._now, self._author, self._repository = db, now, author, repository
        self._me = ""  # how the server calls this reader; it tells nothing about the person

    @property
    def name(self) -> str:
        """The server and its database, for people."""
        return self._server.name

    async def add(self, episode: Episode, vector: Vector | None = None) -> bool:
        """See ``Episodes``. That this person wrote it is noted first, so that no kill leaves it unknown."""
        row = dict(zip(COLUMNS, values(replace(episode, author=episode.author or self._author)), strict=True))
        state, given = row.pop("state"), await self._given([episode.project])
        async with self._server.transaction() as c:
            if await self._all(c, "SELECT 1 FROM episode_memory WHERE id = %(id)s", row):
                return False
            await self._settled({row["id"]: (state, _digest(row.values()))})
            row |= {"owner": self._me, "repository": "".join(given["repositories"] or ())}
            row |= {"withdrawn": state == "dismissed", "model": None, "embedding": None}
            if vector is not None:
                row |= {"model": vector.model, "embedding": _text(floats(vector.data))}
            done = await c.execute(
                f"INSERT INTO episode_memory ({', '.join(row)}) "
                f"VALUES ({', '.join(f'%({name})s' for name in row)}) ON CONFLICT (id) DO NOTHING",
                row,
            )
            return done.rowcount == 1

    async def get(self, ids: Collection[str]) -> list[Candidate]:
        """See ``Episodes``."""
        return await self._found("e.id = ANY(%(ids)s)", ids=listed(ids))

    async def page(
        self,
        projects: Collection[str] | None,
        *,
        state: State | None = None,
        after: str = "",
        limit: int = 100,
    ) -> list[Candidate]:
        """See ``Episodes``."""
        return await self._found(
            f"{_HERE} AND (%(state)s::text IS NULL OR {_KNOWN} = %(state)s) "
            "AND (%(after)s = '' OR (e.at, e.id) < (SELECT at, id FROM episode_memory WHERE id = %(after)s))",
            projects=projects,
            state=state,
            after=plain(after),
            limit=limit,
        )

    async def search(
        self, words: str, vector: Vector | None, projects: Collection[str] | None, limit: int
    ) -> list[Candidate]:
        """See ``Episodes``. Vectors are compared one by one: a project has some hundred."""
        live = f"{_HERE} AND {_KNOWN} <> 'dismissed'"
        if vector is None:
            score, where = f"ts_rank(e.words, {_ANY})::float8", f"e.words @@ {_ANY}"
        else:
            numbers = floats(vector.data)
            if not numbers or len(vector.data) % 4:
                return []
            score = "1 - (e.embedding <=> %(vector)s::vector)"
            where = f"e.model = %(model)s AND vector_dims(e.embedding) = {len(numbers)}"
        found = await self._found(
            f"{where} AND {live}",
            'score DESC, e.id COLLATE "C"',
            score=score,
            projects=projects,
            limit=limit,
            words=plain(words),
            model=vector.model if vector is not None else "",
            vector=_text(floats(vector.data)) if vector is not None else "",
        )
        if vector is not None:
            return found
        return [replace(c, similarity=None, bm25=c.similarity) for c in found]

    async def settle(self, ids: Collection[str], state: State) -> int:
        """See ``Episodes``: here, and for all where an episode is one's own."""
        given = await self._given(None)
        async with self._server.transaction() as c:
            rows = await self._rows(c, "e.id = ANY(%(ids)s)", given | {"ids": listed(ids)})
            found = await asyncio.to_thread(self._candidates, rows)
            changed = [one for one in found if one[0].episode.state != state]
            await c.execute(
                "UPDATE episode_memory SET withdrawn = %s WHERE id = ANY(%s) AND owner = %s",
                (state == "dismissed", [one.episode.id for one, _ in changed], self._me),
            )
        await self._settled({one.episode.id: (state, digest) for one, digest in changed})
        return len(changed)

    async def count_use(self, id_: str, session: str, at: int, outcome: Outcome) -> None:
        """See ``Episodes``. Which sessions were counted is forgotten after ``USES_DAYS``."""
        async with self._server.transaction() as c:
            await c.execute(
                "WITH used AS (INSERT INTO episode_uses (episode, session, outcome, at) "
                "SELECT key, %(session)s, %(outcome)s, %(at)s FROM episode_memory WHERE id = %(id)s "
                "ON CONFLICT DO NOTHING RETURNING episode) "
                f"UPDATE episode_memory SET {outcome} = {outcome} + 1, last = greatest(last, %(at)s) "
                "FROM used WHERE key = used.episode",
                {"id": plain(id_), "session": plain(session), "outcome": outcome, "at": at},
            )
            await c.execute(
                "DELETE FROM episode_uses WHERE at < least(%s, (SELECT min(at) FROM episode_uses) + %s)",
                (self._now() - USES_DAYS * DAY_MS, DAY_MS),
            )

    async def forget(self, ids: Collection[str]) -> int:
        """See ``Episodes``: this reader's own. Those of others are dismissed here."""
        given = await self._given(None)
        async with self._server.transaction() as c:
            sql = "DELETE FROM episode_memory WHERE id = ANY(%(ids)s) AND owner = %(me)s RETURNING id"
            gone = {id_ for (id_,) in await self._all(c, sql, given | {"ids": listed(ids)})}
        await self._db.commit(("DELETE FROM settled_episodes WHERE id = ?", [(id_,) for id_ in gone]))
        others = set(listed(ids)) - gone
        return len(gone) + (await self.settle(others, "dismissed") if others else 0)

    async def unembedded(self, model: str, limit: int) -> list[Episode]:
        """See ``Episodes``: this reader's own."""
        where = "e.owner = %(me)s AND e.model IS DISTINCT FROM %(model)s"
        return [c.episode for c in await self._found(where, model=model, limit=limit)]

    async def embed(self, vectors: Mapping[str, Vector]) -> None:
        """See ``Episodes``."""
        async with self._server.transaction() as c, c.cursor() as cursor:
            await cursor.executemany(
                "UPDATE episode_memory SET model = %s, embedding = %s::vector WHERE id = %s",
                [(v.model, _text(floats(v.data)), plain(id_)) for id_, v in sorted(vectors.items())],
            )

    async def counts(self, projects: Collection[str] | None) -> Mapping[str, int]:
        """See ``Episodes``: the states are this reader's."""
        given = await self._given(projects)
        async with self._server.transaction() as c:
            sql = f"SELECT {_KNOWN}, count(*), sum({_SIZE}) FROM episode_memory AS e WHERE {_HERE} GROUP BY 1"
            rows = await self._all(c, sql, given)
        states = {state: int(count) for state, count, _ in rows}
        return {**dict.fromkeys(STATES, 0), **states, "bytes": sum(int(size) for *_, size in rows)}

    async def close(self) -> None:
        """See ``Episodes``. The daemon's database stays open."""
        await self._server.close()

    # --- inside -------------------------------------------------------------------------------------

    async def _given(self, projects: Collection[str] | None) -> dict[str, Any]:
        """What the conditions ask for: this reader's name and word, and the projects."""
        await self._known()
        names = await asyncio.to_thread(lambda: [plain(self._repository(p)) for p in projects or ()])
        said = self._db.read("SELECT id, state FROM settled_episodes WHERE state != 'quarantined'")
        return {
            "me": self._me,
            "projects": None if projects is None else listed(projects),
            "repositories": [name for name in names if name],
            "confirmed": [id_ for id_, state in said if state == "confirmed"],
            "dismissed": [id_ for id_, state in said if state == "dismissed"],
        }

    async def _found(
        self,
        where: str,
        order: str = _NEWEST,
        *,
        score: str = "NULL::float8",
        projects: Collection[str] | None = None,
        **given: object,
    ) -> list[Candidate]:
        all_ = {"limit": None, **await self._given(projects), **given}
        async with self._server.transaction() as c:
            rows = await self._rows(c, where, all_, order, score)
        return [one for one, _ in await asyncio.to_thread(self._candidates, rows)]

    async def _rows(
        self,
        c: AsyncConnection[Any],
        where: str,
        given: Mapping[str, Any],
        order: str = _NEWEST,
        score: str = "NULL::float8",
    ) -> list[Any]:
        """Score and ``_ROW``, up to ``ANSWER_BYTES``."""
        sql = (
            f"SELECT {score} AS score, {_ROW} FROM episode_memory AS e "
            f"WHERE {where} AND {_BYTES} <= {ROW_BYTES} ORDER BY {order} LIMIT %(limit)s"
        )
        return await self._all(
            c,
            "SELECT * FROM (SELECT *, sum(row_bytes) OVER (ROWS UNBOUNDED PRECEDING) AS so_far "
            f"FROM ({sql}) AS found) AS counted WHERE so_far <= {ANSWER_BYTES}",
            {"limit": None, **given},
        )

    async def _all(self, c: AsyncConnection[Any], sql: str, given: Mapping[str, Any]) -> list[Any]:
        return await (await c.execute(sql, given)).fetchall()

    def _candidates(self, rows: Sequence[Any]) -> list[tuple[Candidate, bytes]]:
        """Each with the digest of its text. The state is what was said here of this very text."""
        said = {
            id_: (state, digest)
            for id_, state, digest in self._db.read(
                "SELECT id, state, digest FROM settled_episodes WHERE id IN (SELECT value FROM json_each(?))",
                (_encode([row[1] for row in rows]).decode(),),
            )
        }
        found = []
        for score, *row in rows:
            withdrawn = row[_STATE]
            digest = _digest([*row[:_STATE], *row[_STATE + 1 : len(COLUMNS)]])
            state, known = said.get(row[0], ("quarantined", b""))
            vouched = known == digest
            if not vouched:
                row[_PROOF] = ""
            if withdrawn or state == "dismissed":
                row[_STATE] = "dismissed"
            else:
                row[_STATE] = state if vouched else "quarantined"
            found.append((replace(candidate(row, score), vouched=vouched), digest))
        return found

    async def _settled(self, said: Mapping[str, tuple[str, bytes]]) -> None:
        await self._db.commit(
            (
                "INSERT OR REPLACE INTO settled_episodes (id, state, digest) VALUES (?, ?, ?)",
                [(id_, state, digest) for id_, (state, digest) in said.items()],
            ),
            durable=True,
        )

    async def _known(self) -> None:
        """This reader's name, made when it is first needed."""
        if self._me:
            return
        key = self._db.path.parent / KEY
        try:
            made = bytes.fromhex(key.read_text("ascii").strip())
        except (OSError, ValueError):
            made = b""
        name = _sign(made, [b"reader"])[:16] if made else secrets.token_hex(8)
        if made:
            await self._moved(made, name)
        named = "INSERT INTO shared_reader SELECT ? WHERE NOT EXISTS (SELECT 1 FROM shared_reader)"
        await self._db.commit((named, [(name,)]), durable=True)
        if made:
            key.unlink(missing_ok=True)
            key.with_name(f"{KEY}.used").unlink(missing_ok=True)
        ((self._me,),) = self._db.read("SELECT name FROM shared_reader LIMIT 1")

    async def _moved(self, key: bytes, name: str) -> None:
        """Take over what this reader wrote and settled when a key in the state folder vouched for it."""
        sql = (
            f"SELECT s.mark, s.state, {', '.join(f'e.{n}' for n in _SHARED)} FROM episode_memory AS e "
            "JOIN episode_states AS s ON s.episode = e.key AND s.reader = %(me)s "
            f"WHERE {_BYTES} <= {ROW_BYTES}"
        )
        async with self._server.transaction() as c:
            rows = await self._all(c, sql, {"me": name})
        await self._settled(
            {
                row[0]: (state, _digest(row))
                for mark, state, *row in rows
                if hmac.compare_digest(mark, _sign(key, [repr(part).encode() for part in (state, *row)]))
            }
        )


def _digest(row: Collection[Any]) -> bytes:
    """Of the values of ``_SHARED``."""
    made = [float(value) if name == "reward" else value for name, value in zip(_SHARED, row, strict=True)]
    return sha256(_encode(made)).digest()


def _sign(key: bytes, parts: Sequence[bytes]) -> str:
    return hmac.new(key, b"\0".join(parts), sha256).hexdigest()


def _text(numbers: array[float]) -> str:
    """A vector as pgvector reads it."""
    return f"[{','.join(map(repr, numbers))}]"
