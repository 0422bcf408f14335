"""A PostgreSQL server with pgvector: its address, a pool of connections, migrations under a lock.

The address is in a file of the person's, never in the settings, and no message repeats it: it may hold a
password. Nothing is connected before it is needed. A server that can't be reached is ``Unavailable``, for the
next ``PAUSE_MS`` at once, so that no prompt waits for it again and again.
"""

from __future__ import annotations

import asyncio
import logging
import stat
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..core.errors import Unavailable, UserError, words
from .postgres_schema import MIGRATIONS, SCHEMA

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from psycopg import AsyncConnection
    from psycopg_pool import AsyncConnectionPool

URL_LIMIT: Final = 4 * 1024  # bytes
CONNECT_S: Final = 5
STATEMENT_MS: Final = 30_000
PAUSE_MS: Final = 10_000
MOST: Final = 4  # connections of one daemon
_LOCK: Final = 0x7265666C  # of those who migrate at the same time


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
        import psycopg_pool  # noqa: F401 - whether it is there
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


class Postgres:
    """One for each store. ``url``: gives the address when it is needed. ``now``: epoch ms."""

    def __init__(self, url: Callable[[], str], now: Callable[[], int]) -> None:
        self._url, self._now = url, now
        self.name = "PostgreSQL"
        self._pool: AsyncConnectionPool[Any] | None = None
        self._opening = asyncio.Lock()
        self._closed = False
        self._failed: tuple[int, str] | None = None  # when, and why

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection[Any]]:
        """A connection on which each statement stands alone. Raises ``Unavailable``."""
        pool = await self._ready()
        import psycopg

        try:
            async with pool.connection() as found:
                yield found
        except psycopg.Error as error:
            raise self._unavailable(error) from None

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[AsyncConnection[Any]]:
        """A connection in a transaction that ends with the block. Raises ``Unavailable``."""
        async with self.reading() as found, found.transaction():
            yield found

    async def close(self) -> None:
        """Give back the connections. Idempotent."""
        async with self._opening:
            self._closed = True
            pool, self._pool = self._pool, None
            if pool is not None:
                await pool.close()

    async def _ready(self) -> AsyncConnectionPool[Any]:
        async with self._opening:
            if self._closed:
                raise Unavailable("the episodes are closed")
            if self._failed is not None and self._now() - self._failed[0] < PAUSE_MS:
                raise Unavailable(self._failed[1])
            if self._pool is None:
                self._pool = await self._opened()
            return self._pool

    async def _opened(self) -> AsyncConnectionPool[Any]:
        try:
            url = self._url()
            self.name = named(url)
        except UserError as error:
            self._failed = (self._now(), str(error))
            raise Unavailable(str(error)) from None
        import psycopg
        from psycopg_pool import AsyncConnectionPool

        logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())  # it writes to standard error
        try:
            async with await psycopg.AsyncConnection.connect(url, connect_timeout=CONNECT_S) as first:
                await self._migrate(first)
        except psycopg.Error as error:
            raise self._unavailable(error) from None
        except UserError as error:
            self._failed = (self._now(), str(error))
            raise Unavailable(str(error)) from None
        pool: AsyncConnectionPool[Any] = AsyncConnectionPool(
            url,
            kwargs={
                "connect_timeout": CONNECT_S,
                "autocommit": True,
                "options": f"-c search_path={SCHEMA},public -c statement_timeout={STATEMENT_MS} "
                "-c hnsw.iterative_scan=strict_order -c hnsw.ef_search=100",
            },
            min_size=1,
            max_size=MOST,
            timeout=CONNECT_S,
            open=False,
        )
        await pool.open()
        self._failed = None
        return pool

    async def _migrate(self, c: AsyncConnection[Any]) -> None:
        """One daemon at a time; the others wait and find it done."""
        await c.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        await self._prepare(c)
        rows = await (await c.execute("SELECT name FROM migrations")).fetchall()
        done = {name for (name,) in rows}
        if unknown := done - {name for name, _ in MIGRATIONS}:
            raise UserError(f"{self.name} was written by a newer reflectd ({min(unknown)}); update reflectd")
        for name, statements in MIGRATIONS:
            if name not in done:
                for statement in statements:
                    await c.execute(statement)
                await c.execute("INSERT INTO migrations (name) VALUES (%s)", (name,))

    async def _prepare(self, c: AsyncConnection[Any]) -> None:
        """Schema and extension. A role that may not make them is told who must."""
        import psycopg

        for what, there, make in (
            ("the extension vector (pgvector 0.8 or newer)", "SELECT 1 FROM pg_extension WHERE extname = "
             "'vector'", "CREATE EXTENSION vector"),
            (f"the schema {SCHEMA}", f"SELECT 1 FROM pg_namespace WHERE nspname = '{SCHEMA}'",
             f"CREATE SCHEMA {SCHEMA}"),
        ):  # fmt: skip
            if await (await c.execute(there)).fetchone() is None:
                try:
                    await c.execute(make)
                except psycopg.Error as error:
                    raise UserError(
                        f"{self.name} lacks {what}, and it can't be made: {_first(error)}. "
                        f"Let the database's owner run: {make}"
                    ) from None
        await c.execute(f"SET search_path = {SCHEMA}, public")
        await c.execute(
            "CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, at TIMESTAMPTZ DEFAULT now())"
        )

    def _unavailable(self, error: Exception) -> Unavailable:
        import psycopg

        message = f"{self.name} does not answer: {_first(error)}"
        if isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)):
            self._failed = (self._now(), message)
        return Unavailable(message)


def _first(error: Exception) -> str:
    """The first line: the others quote the statement."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
