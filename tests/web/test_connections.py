"""How many connections are kept on a port of loopback."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import pytest

from daemon.web.site import Connections


class Echo(asyncio.Protocol):
    """Answers what it is told."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)

    def eof_received(self) -> bool:
        self.transport.write(b"bye")
        return False


class Port:
    """A server on a free port; ``said`` is what one connection is answered, b"" when it is ended."""

    def __init__(self, server: asyncio.Server) -> None:
        self.address = server.sockets[0].getsockname()
        self.kept: list[asyncio.StreamWriter] = []
        self.readers: list[asyncio.StreamReader] = []

    async def said(self, *, keep: bool = False) -> bytes:
        try:
            reader, writer = await asyncio.open_connection(*self.address)
            writer.write(b"hello")
            found = await reader.read(5)
            if keep:
                self.kept.append(writer)
                self.readers.append(reader)
                return found
            if found:
                writer.write_eof()
                found += await reader.read()
            writer.close()
        except ConnectionError:
            return b""
        return found


@pytest.fixture
async def port() -> AsyncIterator[Port]:
    """One that keeps two connections at most."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        Connections(Echo, most=2).made, sock=socket.create_server(("127.0.0.1", 0))
    )
    made = Port(server)
    yield made
    for writer in made.kept:
        writer.close()
    server.close()


@pytest.mark.shows("I44")
async def test_only_so_many_are_kept(port: Port) -> None:
    """With one too many the oldest is ended, so whoever only holds connections keeps nobody out."""
    assert [await port.said(keep=True) for _ in range(3)] == [b"hello"] * 3
    with contextlib.suppress(ConnectionError):
        assert await port.readers[0].read() == b""
    port.kept[1].write(b"again")
    assert await port.readers[1].read(5) == b"again"
