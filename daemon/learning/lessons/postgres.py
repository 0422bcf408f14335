"""Episodes in a PostgreSQL with pgvector that several people may share (AC-2.6.3); off unless
``store.url_file`` is set.

Nothing on the server vouches for itself. Which episodes this person wrote, confirmed or dismissed stands in
the daemon's own database (``settled_episodes``), each with a digest of its text. Any other row, also one
whose text was changed, is quarantined here until the person confirms it, and its proof counts for nothing. An
episode that its owner took back is dismissed for all; another's is never deleted, only dismissed here. A
project is known to several people by its repository; one that has none is its owner's alone. What is read has
limits, because anybody who can write to the server chooses how long a row is.

The address is in a file of the person's, and no message repeats it: it may hold a password. Nothing is
connected before it is needed. A server that can't be reached is ``Unavailable``, for the next ``PAUSE_MS`` at
once.
"""

from __future__ import annotations

import asyncio
import secrets
import stat
from contextlib import asynccontextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ...core.errors import Unavailable, UserError, words
from .episodes import DAY_MS
from .rows import COLUMNS, COUNTS, STATES, USES_DAYS, candidate, floats, listed, plain, values

if TYPE_CHECKING:
    from array import array
    from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence

    from psycopg import AsyncConnection

    from ...store.db import Database
    from ..embed.vectors import Vector
    from .episodes import Candidate, Episode, State
    from .rows import Outcome

URL_LIMIT: Final = 4 * 1024  # bytes
CONNECT_S: Final = 5
STATEMENT_MS: Final = 30_000
PAUSE_MS: Final = 10_000
ROW_BYTES: Final = 256 * 1024
ANSWER_BYTES: Final = 4 * 1024 * 1024
VERSION: Final = "0003_withdrawn"
_LOCK: Final = 0x7265666C  # of those who make the tables at the same time
_STATE, _PROOF = COLUMNS.index("state"), COLUMNS.index("proof")
_SHARED: Final = tuple(name for name in COLUMNS if name != "state")
_TEXTS: Final = tuple(name for name in _SHARED if name not in {"reward", "at"})
_BYTES: Final = " + ".join(f"octet_length(e.{n})" for n in _TEXTS)
_ROW: Final = ", ".join("e.withdrawn" if n == "state" else f"e.{n}" for n in (*COLUMNS, *COUNTS))
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

TABLES: Final = (  # ``repository``: '' of a project that nobody else can have; ``withdrawn``: by its owner
    f"""
    CREATE TABLE episode_memory (
        key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        {", ".join(f"{name} TEXT NOT NULL" for name in (*_TEXTS[1:], "owner"))},
        reward DOUBLE PRECISION NOT NULL,
        at BIGINT NOT NULL,
        given INTEGER NOT NULL DEFAULT 0,
        helped INTEGER NOT NULL DEFAULT 0,
        failed INTEGER NOT NULL DEFAULT 0,
        last BIGINT NOT NULL DEFAULT 0,
        repository TEXT NOT NULL DEFAULT '',
        withdrawn BOOLEAN NOT NULL DEFAULT false,
        model TEXT,
        embedding vector,
        words tsvector GENERATED ALWAYS AS (
            to_tsvector('simple', left(query, 20000) || ' ' || left(lesson, 20000))
        ) STORED
    )
    """,
    "CREATE INDEX ON episode_memory (project, at, id)",
    "CREATE INDEX ON episode_memory (repository, at, id) WHERE repository <> ''",
    "CREATE INDEX ON episode_memory (at, id)",
    "CREATE INDEX ON episode_memory USING gin (words)",
    "CREATE TABLE episode_uses (episode BIGINT NOT NULL REFERENCES episode_memory ON DELETE CASCADE, "
    "session TEXT NOT NULL, outcome TEXT NOT NULL, at BIGINT NOT NULL, "
    "PRIMARY KEY (episode, session, outcome))",
    "CREATE INDEX ON episode_uses (at)",
)


def read_url(name: str) -> str:
    """The address in the file that ``store.url_file`` names. Raises ``UserError``."""
    path = Path(name).expanduser()
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(path.stat().st_mode)
            url = file.read(URL_LIMIT + 1).decode().strip()
    except (OSError, ValueError) as error:
        raise UserError(f"store.url_file: {path} can't be read: {words(error)}") from None
    if mode & 0o077:
        raise UserError(
            f"store.url_file: others may read or write {path} (mode {mode:04o}); run: chmod 600 {path}"
        )
    if not url.startswith(("postgresql://", "postgres://")) or len(url) > URL_LIMIT or len(url.split()) != 1:
        raise UserError(
            f"store.url_file: {path} must hold one line, postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
        )
    return url


def named(url: str) -> str:
    """The server and its database, without a password. Raises ``UserError`` when the address is none, or the
    extra is not installed.
    """
    try:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict
    except ImportError:
        raise UserError(
            "store.url_file needs the extra `postgres`: pip install 'reflectd[postgres]'"
        ) from None
    try:
        found = conninfo_to_dict(url)
    except psycopg.Error:
        raise UserError("store.url_file holds no address that PostgreSQL understands") from None
    place = found.get("host") or found.get("hostaddr") or "this machine"
    return f"PostgreSQL at {place}, database {found.get('dbname') or found.get('user') or ''}"


class PostgresEpisodes:
    """See the module; the same as ``SqliteEpisodes``. Connects when it is first used."""

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
        self._url, self._db, self._now = url, db, now
        self._author, self._repository = author, repository
        self.name = "PostgreSQL"  # and where it is, for people
        self._me = ""  # how the server calls this reader; it tells nothing about the person
        self._conn: AsyncConnection[Any] | None = None
        self._lock = asyncio.Lock()
        self._closed = False
        self._failed = (-PAUSE_MS, "")  # when, and why

    async def add(self, episode: Episode, vector: Vector | None = None) -> bool:
        """See ``SqliteEpisodes``. It is noted first who wrote it, so that no kill leaves it unknown."""
        row = dict(zip(COLUMNS, values(replace(episode, author=episode.author or self._author)), strict=True))
        state, given = row.pop("state"), await self._given([episode.project])
        async with self._transaction() as c:
            if await _all(c, "SELECT 1 FROM episode_memory WHERE id = %(id)s", row):
                return False
            await self._settled({row["id"]: (state, _digest(row.values()))})
            row |= {"owner": self._me, "repository": "".join(given["repositories"])}
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
        """See ``SqliteEpisodes``."""
        return await self._found("e.id = ANY(%(ids)s)", ids=listed(ids))

    async def page(
        self,
        projects: Collection[str] | None,
        *,
        state: State | None = None,
        after: str = "",
        limit: int = 100,
    ) -> list[Candidate]:
        """See ``SqliteEpisodes``."""
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
        """See ``SqliteEpisodes``. Vectors are compared one by one: a project has some hundred."""
        live = f"{_HERE} AND {_KNOWN} <> 'dismissed'"
        order, given = 'score DESC, e.id COLLATE "C"', {"projects": projects, "limit": limit}
        if vector is None:
            score, where = f"ts_rank(e.words, {_ANY})::float8", f"e.words @@ {_ANY} AND {live}"
            found = await self._found(where, order, score=score, words=plain(words), **given)
            return [replace(c, similarity=None, bm25=c.similarity) for c in found]
        numbers = floats(vector.data)
        if not numbers or len(vector.data) % 4:
            return []
        where = f"e.model = %(model)s AND vector_dims(e.embedding) = {len(numbers)} AND {live}"
        given |= {"model": vector.model, "vector": _text(numbers)}
        return await self._found(where, order, score="1 - (e.embedding <=> %(vector)s::vector)", **given)

    async def settle(self, ids: Collection[str], state: State) -> int:
        """See ``SqliteEpisodes``: here, and for all where an episode is one's own."""
        found = await self._read("e.id = ANY(%(ids)s)", ids=listed(ids))
        changed = {one.episode.id: (state, digest) for one, digest in found if one.episode.state != state}
        async with self._transaction() as c:
            await c.execute(
                "UPDATE episode_memory SET withdrawn = %s WHERE id = ANY(%s) AND owner = %s",
                (state == "dismissed", list(changed), self._me),
            )
        await self._settled(changed)
        return len(changed)

    async def count_use(self, id_: str, session: str, at: int, outcome: Outcome) -> None:
        """See ``SqliteEpisodes``. Which sessions were counted is forgotten after ``USES_DAYS``."""
        async with self._transaction() as c:
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
        """See ``SqliteEpisodes``: this reader's own. Those of others are dismissed here."""
        given = await self._given(None)
        async with self._transaction() as c:
            sql = "DELETE FROM episode_memory WHERE id = ANY(%(ids)s) AND owner = %(me)s RETURNING id"
            gone = {id_ for (id_,) in await _all(c, sql, given | {"ids": listed(ids)})}
        await self._db.commit(("DELETE FROM settled_episodes WHERE id = ?", [(id_,) for id_ in gone]))
        others = set(listed(ids)) - gone
        return len(gone) + (await self.settle(others, "dismissed") if others else 0)

    async def unembedded(self, model: str, limit: int) -> list[Episode]:
        """See ``SqliteEpisodes``: this reader's own."""
        where = "e.owner = %(me)s AND e.model IS DISTINCT FROM %(model)s"
        return [c.episode for c in await self._found(where, model=model, limit=limit)]

    async def embed(self, vectors: Mapping[str, Vector]) -> None:
        """See ``SqliteEpisodes``."""
        async with self._transaction() as c, c.cursor() as cursor:
            await cursor.executemany(
                "UPDATE episode_memory SET model = %s, embedding = %s::vector WHERE id = %s",
                [(v.model, _text(floats(v.data)), plain(id_)) for id_, v in sorted(vectors.items())],
            )

    async def counts(self, projects: Collection[str] | None) -> Mapping[str, int]:
        """See ``SqliteEpisodes``: the states are this reader's."""
        given = await self._given(projects)
        async with self._transaction() as c:
            sql = f"SELECT {_KNOWN}, count(*), sum({_SIZE}) FROM episode_memory AS e WHERE {_HERE} GROUP BY 1"
            rows = await _all(c, sql, given)
        states = {state: int(count) for state, count, _ in rows}
        return {**dict.fromkeys(STATES, 0), **states, "bytes": sum(int(size) for *_, size in rows)}

    async def close(self) -> None:
        """See ``SqliteEpisodes``. The daemon's database stays open."""
        async with self._lock:
            self._closed = True
            if self._conn is not None:
                await self._conn.close()

    # --- what is believed ---------------------------------------------------------------------------

    async def _given(self, projects: Collection[str] | None) -> dict[str, Any]:
        """What the conditions ask for: this reader's name and word, and the projects."""
        if not self._me:
            named = "INSERT INTO shared_reader SELECT ? WHERE NOT EXISTS (SELECT 1 FROM shared_reader)"
            await self._db.commit((named, [(secrets.token_hex(8),)]), durable=True)
            ((self._me,),) = self._db.read("SELECT name FROM shared_reader LIMIT 1")
        names = await asyncio.to_thread(lambda: [plain(self._repository(p)) for p in projects or ()])
        said = self._db.read("SELECT id, state FROM settled_episodes WHERE state != 'quarantined'")
        return {
            "me": self._me,
            "projects": None if projects is None else listed(projects),
            "repositories": [name for name in names if name],
            "confirmed": [id_ for id_, state in said if state == "confirmed"],
            "dismissed": [id_ for id_, state in said if state == "dismissed"],
        }

    async def _found(self, where: str, order: str = _NEWEST, **given: Any) -> list[Candidate]:  # noqa: ANN401
        return [one for one, _ in await self._read(where, order, **given)]

    async def _read(
        self,
        where: str,
        order: str = _NEWEST,
        *,
        score: str = "NULL::float8",
        projects: Collection[str] | None = None,
        **given: object,
    ) -> list[tuple[Candidate, bytes]]:
        """What is found, up to ``ANSWER_BYTES``, each with the digest of its text."""
        sql = (
            f"SELECT {score} AS score, {_ROW}, {_BYTES} AS row_bytes FROM episode_memory AS e "
            f"WHERE {where} AND {_BYTES} <= {ROW_BYTES} ORDER BY {order} LIMIT %(limit)s"
        )
        some = (
            "SELECT * FROM (SELECT *, sum(row_bytes) OVER (ROWS UNBOUNDED PRECEDING) AS so_far "
            f"FROM ({sql}) AS found) AS counted WHERE so_far <= {ANSWER_BYTES}"
        )
        values = {"limit": None, **await self._given(projects), **given}
        async with self._transaction() as c:
            rows = await _all(c, some, values)
        return await asyncio.to_thread(self._believed, rows)

    def _believed(self, rows: Sequence[Any]) -> list[tuple[Candidate, bytes]]:
        """The state is what was said here of this very text."""
        sql = "SELECT id, state, digest FROM settled_episodes WHERE id IN (SELECT value FROM json_each(?))"
        said = {id_: word for id_, *word in self._db.read(sql, (_encode([row[1] for row in rows]).decode(),))}
        found = []
        for score, *row in rows:
            withdrawn = row.pop(_STATE)
            digest = _digest(row[: len(_SHARED)])
            state, known = said.get(row[0], ("quarantined", b""))
            vouched = known == digest
            if withdrawn or state == "dismissed":
                row.insert(_STATE, "dismissed")
            else:
                row.insert(_STATE, state if vouched else "quarantined")
            if not vouched:
                row[_PROOF] = ""
            found.append((replace(candidate(row, score), vouched=vouched), digest))
        return found

    async def _settled(self, said: Mapping[str, tuple[str, bytes]]) -> None:
        rows = [(id_, state, digest) for id_, (state, digest) in said.items()]
        put = "INSERT OR REPLACE INTO settled_episodes (id, state, digest) VALUES (?, ?, ?)"
        await self._db.commit((put, rows), durable=True)

    # --- the connection -----------------------------------------------------------------------------

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[AsyncConnection[Any]]:
        """The connection, in a transaction that ends with the block. Raises ``Unavailable``."""
        async with self._lock:
            if self._closed:
                raise Unavailable("the episodes are closed")
            if self._now() - self._failed[0] < PAUSE_MS:
                raise Unavailable(self._failed[1])
            try:
                if self._conn is None or self._conn.closed:
                    self._conn = await self._connected()
                async with self._conn.transaction():
                    yield self._conn
            except UserError as error:
                self._failed = (self._now(), str(error))
                raise Unavailable(str(error)) from None
            except Exception as error:
                import psycopg

                if not isinstance(error, psycopg.Error):
                    raise
                message = f"{self.name} does not answer: {_first(error)}"
                if isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)):
                    self._failed = (self._now(), message)
                raise Unavailable(message) from None

    async def _connected(self) -> AsyncConnection[Any]:
        url = self._url()
        self.name = named(url)
        import psycopg

        made = await psycopg.AsyncConnection.connect(
            url,
            connect_timeout=CONNECT_S,
            autocommit=True,
            prepare_threshold=None,  # how a statement is best planned depends on the project
            options=f"-c search_path=reflectd,public -c statement_timeout={STATEMENT_MS}",
        )
        try:
            async with made.transaction():
                await self._set_up(made)
        except BaseException:
            await made.close()
            raise
        return made

    async def _set_up(self, c: AsyncConnection[Any]) -> None:
        """One daemon at a time; the others wait and find it done. A role that may not make the schema or the
        extension is told who must.
        """
        import psycopg

        await c.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        for what, there in (
            ("EXTENSION vector", "SELECT 1 FROM pg_extension WHERE extname = 'vector'"),
            ("SCHEMA reflectd", "SELECT 1 FROM pg_namespace WHERE nspname = 'reflectd'"),
        ):
            if not await _all(c, there):
                try:
                    await c.execute(f"CREATE {what}")
                except psycopg.Error as error:
                    raise UserError(
                        f"{self.name} lacks {what}, and it can't be made: {_first(error)}. "
                        f"Let the database's owner run: CREATE {what}"
                    ) from None
        await c.execute("CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, at TIMESTAMPTZ)")
        ((newest,),) = await _all(c, "SELECT max(name) FROM migrations")
        if newest is not None and newest > VERSION:
            raise UserError(f"{self.name} was written by a newer reflectd ({newest}); update reflectd")
        if newest is None:
            for statement in TABLES:
                await c.execute(statement)
            await c.execute("INSERT INTO migrations (name, at) VALUES (%s, now())", (VERSION,))


async def _all(c: AsyncConnection[Any], sql: str, given: Mapping[str, Any] | None = None) -> list[Any]:
    return await (await c.execute(sql, given)).fetchall()


def _digest(row: Collection[Any]) -> bytes:
    """Of the values of ``_SHARED``."""
    made = [float(value) if name == "reward" else value for name, value in zip(_SHARED, row, strict=True)]
    return sha256(_encode(made)).digest()


def _text(numbers: array[float]) -> str:
    """A vector as pgvector reads it."""
    return f"[{','.join(map(repr, numbers))}]"


def _first(error: Exception) -> str:
    """The first line: the others quote the statement."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
