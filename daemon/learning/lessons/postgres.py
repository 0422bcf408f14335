"""A PostgreSQL server with pgvector: its address, one connection, its migrations.

The address is in a file of the person's, never in the settings, and no message repeats it: it may hold a
password. Nothing is connected before it is needed. A server that can't be reached is ``Unavailable``, for the
next ``PAUSE_MS`` at once, so that no prompt waits for it again and again.
"""

from __future__ import annotations

import asyncio
import stat
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ...core.errors import Unavailable, UserError, words

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from psycopg import AsyncConnection

    from ...store.migrations import Migration

URL_LIMIT: Final = 4 * 1024  # bytes
CONNECT_S: Final = 5
STATEMENT_MS: Final = 30_000
PAUSE_MS: Final = 10_000
SCHEMA: Final = "reflectd"
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

    def __init__(
        self, url: Callable[[], str], now: Callable[[], int], migrations: tuple[Migration, ...]
    ) -> None:
        self._url, self._now, self._migrations = url, now, migrations
        self.name = "PostgreSQL"
        self._conn: AsyncConnection[Any] | None = None
        self._lock = asyncio.Lock()
        self._closed = False
        self._failed = (-PAUSE_MS, "")  # when, and why

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection[Any]]:
        """The connection, in a transaction that ends with the block. Raises ``Unavailable``."""
        async with self._lock:
            if self._closed:
                raise Unavailable("the episodes are closed")
            if self._now() - self._failed[0] < PAUSE_MS:
                raise Unavailable(self._failed[1])
            if self._conn is None or self._conn.closed:
                try:
                    self._conn = await self._connected()
                except UserError as error:
                    self._failed = (self._now(), str(error))
                    raise Unavailable(str(error)) from None
            with self._told():
                async with self._conn.transaction():
                    yield self._conn

    @contextmanager
    def _told(self) -> Iterator[None]:
        import psycopg

        try:
            yield
        except psycopg.Error as error:
            message = f"{self.name} does not answer: {_first(error)}"
            if isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)):
                self._failed = (self._now(), message)
            raise Unavailable(message) from None

    async def close(self) -> None:
        """Give back the connection. Idempotent."""
        async with self._lock:
            self._closed = True
            if self._conn is not None:
                await self._conn.close()

    async def _connected(self) -> AsyncConnection[Any]:
        url = self._url()
        self.name = named(url)
        import psycopg

        with self._told():
            made = await psycopg.AsyncConnection.connect(
                url,
                connect_timeout=CONNECT_S,
                autocommit=True,
                prepare_threshold=None,  # how a statement is best planned depends on the project
                options=f"-c search_path={SCHEMA},public -c statement_timeout={STATEMENT_MS}",
            )
            try:
                async with made.transaction():
                    await self._migrate(made)
            except BaseException:
                await made.close()
                raise
        return made

    async def _migrate(self, c: AsyncConnection[Any]) -> None:
        """One daemon at a time; the others wait and find it done. A role that may not make the schema or the
        extension is told who must.
        """
        await c.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        for what, there in (
            ("EXTENSION vector", "SELECT 1 FROM pg_extension WHERE extname = 'vector'"),
            (f"SCHEMA {SCHEMA}", f"SELECT 1 FROM pg_namespace WHERE nspname = '{SCHEMA}'"),
        ):
            if await (await c.execute(there)).fetchone() is None:
                await self._make(c, what)
        await c.execute("CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, at TIMESTAMPTZ)")
        done = {name for (name,) in await (await c.execute("SELECT name FROM migrations")).fetchall()}
        if unknown := done - {name for name, _ in self._migrations}:
            raise UserError(f"{self.name} was written by a newer reflectd ({min(unknown)}); update reflectd")
        for name, statements in self._migrations:
            if name not in done:
                for statement in statements:
                    await c.execute(statement)
                await c.execute("INSERT INTO migrations (name, at) VALUES (%s, now())", (name,))

    async def _make(self, c: AsyncConnection[Any], what: str) -> None:
        import psycopg

        try:
            await c.execute(f"CREATE {what}")
        except psycopg.Error as error:
            raise UserError(
                f"{self.name} lacks {what}, and it can't be made: {_first(error)}. "
                f"Let the database's owner run: CREATE {what}"
            ) from None


def _first(error: Exception) -> str:
    """The first line: the others quote the statement."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
