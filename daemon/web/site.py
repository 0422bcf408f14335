"""The dashboard's listener (design/dashboard.md): opened when a person asks for it, on loopback
and a free port; one at a time.

It ends when nobody looked at it for an hour, when it is told to, and with the daemon. Nothing of it exists
before it is asked for: no port, no template, no cookie. A port that can't be had is ``Unavailable``.
"""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Any, Final, cast

from aiohttp import web

from ..core.errors import Unavailable
from .entry import HOST, Entry, with_headers

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from .pages import Pages
    from .reads import Source

MOST: Final = 64


class Connections:
    """The connections to the dashboard's port: the newest ``most`` are kept. So nobody can use up the
    daemon's descriptors through this port, and no program that only holds connections can keep a browser out.
    ``made`` makes the protocol of one connection, as ``loop.create_server`` wants it.
    """

    def __init__(self, served: Callable[[], asyncio.Protocol], most: int = MOST) -> None:
        """``served``: makes the protocol of a connection that is answered."""
        self.served = served
        self.most = most
        self.open: dict[_Connection, asyncio.Transport] = {}  # the oldest first

    def made(self) -> asyncio.Protocol:
        """A protocol that is counted."""
        return _Connection(self)


class _Connection(asyncio.Protocol):
    """Passes on to the protocol that answers, and counts."""

    def __init__(self, all_of_them: Connections) -> None:
        self._all = all_of_them

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if len(self._all.open) >= self._all.most:
            oldest = next(iter(self._all.open))
            self._all.open.pop(oldest).abort()
        self._all.open[self] = cast("asyncio.Transport", transport)
        inner = self._all.served()
        self.data_received = inner.data_received  # type: ignore[method-assign]
        self.eof_received = inner.eof_received  # type: ignore[method-assign]
        self.pause_writing = inner.pause_writing  # type: ignore[method-assign]
        self.resume_writing = inner.resume_writing  # type: ignore[method-assign]
        self._lost = inner.connection_lost
        inner.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._all.open.pop(self, None)
        self._lost(exc)


IDLE_S: Final = 3600
BODY_BYTES: Final = 1 << 20


class Site:
    """``open``, ``close``, ``sweep``; all in the loop's thread. ``source``: the data of its pages."""

    def __init__(self, source: Source, spawn: Callable[[Coroutine[Any, Any, None], str], object]) -> None:
        self.source = source
        self._spawn = spawn
        self._lock = asyncio.Lock()
        self._runner: web.AppRunner | None = None
        self._entry: Entry | None = None
        self._used = source.clock.monotonic()
        self._server: asyncio.Server | None = None
        self._pages: Pages | None = None

    @property
    def is_open(self) -> bool:
        """Somebody may look at it."""
        return self._runner is not None

    async def asked(self, stop: bool) -> Mapping[str, Any]:
        """Open it, or close it; returns the socket's answer."""
        return {"closed": await self.close()} if stop else await self.open()

    async def open(self) -> Mapping[str, Any]:
        """A URL that works once; opens the port if it is not open yet."""
        async with self._lock:
            if self._entry is None:
                self._entry = await self._listen()
            self._used = self.source.clock.monotonic()
            return {"url": f"{self._entry.origin}/#{self._entry.token()}", "until_idle_s": IDLE_S}

    async def close(self) -> bool:
        """Give the port back; every cookie and token ends. False when it was not open."""
        async with self._lock:
            return await self._close()

    async def _close(self) -> bool:
        """Call it with the lock held."""
        runner, self._runner, self._entry = self._runner, None, None
        if runner is None:
            return False
        if self._server is not None:
            self._server.close()
        await runner.cleanup()
        self.source.log.info("the dashboard is closed")
        return True

    def sweep(self) -> None:
        """Call it now and then: a site that nobody looks at ends. A page that is seen counts as looked at."""
        if self._pages is not None and self._pages.streams:
            self._used = self.source.clock.monotonic()
        elif self.is_open and self._idle():
            self._spawn(self._end(), "dashboard")

    async def _end(self) -> None:
        """Close it, unless somebody opened it meanwhile."""
        async with self._lock:
            if self._idle():
                await self._close()

    def _idle(self) -> bool:
        return self.source.clock.monotonic() - self._used > IDLE_S

    async def _listen(self) -> Entry:
        from .pages import Pages  # its templates are not needed before

        try:
            sock = socket.create_server((HOST, 0))
        except OSError as e:
            raise Unavailable(f"no port for the dashboard: {e.strerror}") from e
        entry = Entry(sock.getsockname()[1], self.source.clock)
        self._pages = Pages(self.source, entry)
        app = web.Application(client_max_size=BODY_BYTES, middlewares=[self._guard(entry)])
        app.on_response_prepare.append(with_headers)
        self._pages.add_to(app)
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        try:
            await runner.setup()
            assert runner.server is not None  # noqa: S101 - `setup` made it
            made = Connections(runner.server).made
            self._server = await asyncio.get_running_loop().create_server(made, sock=sock)
        except BaseException:
            sock.close()
            await runner.cleanup()
            raise
        self._runner = runner
        self.source.log.info("the dashboard is open", address=entry.origin)
        return entry

    def _guard(self, entry: Entry) -> Any:  # noqa: ANN401 - aiohttp's type of a middleware is generic
        @web.middleware
        async def guard(
            request: web.Request, handler: Callable[[web.Request], Coroutine[Any, Any, web.StreamResponse]]
        ) -> web.StreamResponse:
            refusal = entry.refusal(request)
            if refusal is not None:
                return refusal
            if entry.knows(request):
                self._used = self.source.clock.monotonic()
            return await handler(request)

        return guard
