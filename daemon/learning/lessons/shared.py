"""Lessons that several people share through a PostgreSQL; off unless ``store.url_file`` is set.

The daemon's own database is the store; the server is where copies pass. ``sync`` of a project writes what was
learned here, takes back what is dismissed or forgotten here, and copies what others learned in the same
repository. Nothing on the server is believed: a copy is read as an import is (``episodes.brought``), waits
for this person's yes (``Episode.theirs``), and is never changed by the server again; its author can only
withdraw it. How much is read has limits, because anybody who can write to the server chooses how many rows
there are.

The address is in a file of the person's, and no message repeats it: it may hold a password.
"""

from __future__ import annotations

import asyncio
import secrets
import stat
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from ...core.errors import BadReply, Unavailable, UserError, words
from .episodes import DAY_MS, UNUSED_DAYS, brought
from .repositories import repository_of
from .store import COLUMNS, LISTS, decode_list, values

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from psycopg import AsyncConnection

    from ...store.db import Database
    from .episodes import Episode
    from .store import Episodes

URL_LIMIT: Final = 4 * 1024  # bytes
CONNECT_S: Final = 5
STATEMENT_MS: Final = 30_000
WAITING: Final = 200  # lessons of others in one project that nobody said yes or no to
READ: Final = 100  # rows of one sync
ROW_BYTES: Final = 32 * 1024
VERSION: Final = "0003_withdrawn"
_LOCK: Final = 0x7265666C  # of those who make the tables at the same time
_NAMES: Final = tuple(name for name in COLUMNS if name not in {"state", "theirs"})
_TEXTS: Final = tuple(name for name in _NAMES if name not in {"reward", "at"})
_BYTES: Final = " + ".join(f"octet_length({name})" for name in _TEXTS)
_MINE: Final = "owner = %(me)s AND repository = %(repository)s AND project = %(project)s"
_OTHERS: Final = "FROM episode_memory WHERE repository = %(repository)s AND owner <> %(me)s"
_WITHDRAWN: Final = f"SELECT id {_OTHERS} AND withdrawn AND id = ANY(%(theirs)s)"
_NEW: Final = (
    f"SELECT {', '.join(_NAMES)} {_OTHERS} AND NOT withdrawn AND at > %(since)s "
    f"AND NOT id = ANY(%(known)s) AND {_BYTES} <= {ROW_BYTES} ORDER BY at DESC LIMIT %(most)s"
)

TABLES: Final = (
    f"""
    CREATE TABLE episode_memory (
        key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        {", ".join(f"{name} TEXT NOT NULL" for name in (*_TEXTS[1:], "owner", "repository"))},
        reward DOUBLE PRECISION NOT NULL,
        at BIGINT NOT NULL,
        withdrawn BOOLEAN NOT NULL DEFAULT false
    )
    """,
    "CREATE INDEX ON episode_memory (repository, at, id)",
)


def address(name: str) -> tuple[str, str]:
    """The address in the file that ``store.url_file`` names, and the server and its database in words,
    without a password. Raises ``UserError``, also when the extra is not installed.
    """
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
    try:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict
    except ImportError:
        raise UserError(
            "store.url_file needs the extra `postgres`: pip install 'reflectd[postgres]'"
        ) from None
    try:
        if not url.startswith(("postgresql://", "postgres://")) or len(url.split()) != 1:
            raise psycopg.ProgrammingError
        found = conninfo_to_dict(url)
    except psycopg.Error:
        raise UserError(
            f"store.url_file: {path} must hold one line, postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
        ) from None
    place = found.get("host") or found.get("hostaddr") or "this machine"
    return url, f"PostgreSQL at {place}, database {found.get('dbname') or found.get('user') or ''}"


class SharedLessons:
    """One for the daemon. ``url_file``: see ``address``. ``author``: of episodes that name none."""

    def __init__(self, url_file: str, db: Database, store: Episodes, author: str) -> None:
        self._url_file, self._db, self._store, self._author = url_file, db, store, author

    async def sync(self, project: str, now_ms: int) -> int:
        """Exchange the lessons of a project; one without a repository is nobody else's. How many of others
        are new. Raises ``Unavailable``.
        """
        repository = await asyncio.to_thread(repository_of, project)
        if not repository:
            return 0
        here = await self._store.page([project], limit=-1)
        own, theirs = [e for e in here if not e.theirs], [e for e in here if e.theirs]
        waiting = sum(e.state == "quarantined" for e in theirs)
        forgotten = [id_ for (id_,) in self._db.read("SELECT id FROM forgotten_episodes")]
        about = {
            "me": await self._me(),
            "repository": repository,
            "project": project,
            "own": [e.id for e in own],
            "forgotten": forgotten,
            "gone": [e.id for e in own if e.state == "dismissed"],
            "theirs": [e.id for e in theirs if e.state != "dismissed"],
            "known": [e.id for e in here],
            "since": now_ms - UNUSED_DAYS * DAY_MS,
            "most": max(0, min(READ, WAITING - waiting)),
        }
        async with self._connected() as c:
            await self._push(c, about, own)
            withdrawn = await _all(c, _WITHDRAWN, about)
            rows = await _all(c, _NEW, about)
        await self._db.commit(("DELETE FROM forgotten_episodes WHERE id = ?", [(id_,) for id_ in forgotten]))
        await self._store.settle([id_ for (id_,) in withdrawn], "dismissed")
        new = await asyncio.to_thread(_copies, rows, project)
        return sum([await self._store.add(e) for e in new])

    async def _push(self, c: AsyncConnection[Any], about: dict[str, Any], own: Sequence[Episode]) -> None:
        """Forgotten ones go from the server, dismissed ones are withdrawn there, new ones that are not
        dismissed are written. What is lost here stays there as it is.
        """
        await c.execute("DELETE FROM episode_memory WHERE owner = %(me)s AND id = ANY(%(forgotten)s)", about)
        await c.execute(
            f"UPDATE episode_memory SET withdrawn = NOT withdrawn WHERE {_MINE} "
            "AND id = ANY(%(own)s) AND withdrawn <> (id = ANY(%(gone)s))",
            about,
        )
        known = {id_ for (id_,) in await _all(c, f"SELECT id FROM episode_memory WHERE {_MINE}", about)}
        new = [e for e in own if e.state != "dismissed" and e.id not in known]
        names = (*_NAMES, "repository")
        async with c.cursor() as cursor:
            await cursor.executemany(
                f"INSERT INTO episode_memory ({', '.join(names)}, owner) "
                f"VALUES ({', '.join(f'%({name})s' for name in names)}, %(me)s) ON CONFLICT (id) DO NOTHING",
                [about | values(replace(e, author=e.author or self._author)) for e in new],
            )

    async def _me(self) -> str:
        """How the server calls this reader; it tells nothing about the person."""
        put = "INSERT INTO shared_reader SELECT ? WHERE NOT EXISTS (SELECT 1 FROM shared_reader)"
        await self._db.commit((put, [(secrets.token_hex(8),)]), durable=True)
        ((name,),) = self._db.read("SELECT name FROM shared_reader LIMIT 1")
        return str(name)

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[AsyncConnection[Any]]:
        """A transaction on the server. Raises ``Unavailable``."""
        try:
            url, name = await asyncio.to_thread(address, self._url_file)
        except UserError as error:
            raise Unavailable(str(error)) from None
        import psycopg

        try:
            async with await psycopg.AsyncConnection.connect(
                url,
                connect_timeout=CONNECT_S,
                options=f"-c search_path=reflectd,public -c statement_timeout={STATEMENT_MS}",
            ) as c:
                await _set_up(c, name)
                yield c
        except psycopg.Error as error:
            raise Unavailable(f"{name} does not answer: {_first(error)}") from None


def _copies(rows: Sequence[Sequence[Any]], project: str) -> list[Episode]:
    """The rows that may be kept."""
    found = []
    for values_ in rows:
        row = dict(zip(_NAMES, values_, strict=True))
        try:
            lists = {name: decode_list(row[name]) for name in LISTS}
            found.append(replace(brought(row | lists, project), theirs=True))
        except (BadReply, msgspec.MsgspecError):
            continue
    return found


async def _set_up(c: AsyncConnection[Any], name: str) -> None:
    """One daemon at a time; the others wait and find it done. A role that may not make the schema is told who
    must.
    """
    import psycopg

    await c.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
    if not await _all(c, "SELECT 1 FROM pg_namespace WHERE nspname = 'reflectd'"):
        try:
            await c.execute("CREATE SCHEMA reflectd")
        except psycopg.Error as error:
            raise Unavailable(
                f"{name} lacks the schema reflectd, and it can't be made: {_first(error)}. "
                "Let the database's owner run: CREATE SCHEMA reflectd"
            ) from None
    await c.execute("CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, at TIMESTAMPTZ)")
    ((newest,),) = await _all(c, "SELECT max(name) FROM migrations")
    if newest is not None and newest > VERSION:
        raise Unavailable(f"{name} was written by a newer reflectd ({newest}); update reflectd")
    if newest is None:
        for statement in TABLES:
            await c.execute(statement)
        await c.execute("INSERT INTO migrations (name, at) VALUES (%s, now())", (VERSION,))


async def _all(c: AsyncConnection[Any], sql: str, about: dict[str, Any] | None = None) -> list[Any]:
    return await (await c.execute(sql, about)).fetchall()


def _first(error: Exception) -> str:
    """The first line: the others quote the statement."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
