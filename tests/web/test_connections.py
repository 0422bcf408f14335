"""Whose connections are answered on a port of loopback, and how many."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import AsyncIterator

import pytest

from daemon.web.connections import Connections


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
async def ports() -> AsyncIterator[tuple[Port, Port]]:
    """One that answers this user, two connections at most, and one that answers another user."""
    loop = asyncio.get_running_loop()
    servers = [
        await loop.create_server(
            Connections(Echo, frozenset({uid}), most=2).made, sock=socket.create_server(("127.0.0.1", 0))
        )
        for uid in (os.geteuid(), os.geteuid() + 1)
    ]
    ours, theirs = Port(servers[0]), Port(servers[1])
    yield ours, theirs
    for writer in ours.kept:
        writer.close()
    for server in servers:
        server.close()


async def test_this_user_is_answered(ports: tuple[Port, Port]) -> None:
    """To the end of what was said."""
    assert await ports[0].said() == b"hellobye"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says whose a connection over loopback is")
async def test_another_user_gets_nothing(ports: tuple[Port, Port]) -> None:
    """The connection ends before a byte is read."""
    assert await ports[1].said() == b""


@pytest.mark.shows("I44")
async def test_only_so_many_are_kept(ports: tuple[Port, Port]) -> None:
    """With one too many the oldest is ended, so whoever only holds connections keeps nobody out."""
    ours, _ = ports
    assert [await ours.said(keep=True) for _ in range(3)] == [b"hello"] * 3
    with contextlib.suppress(ConnectionError):
        assert await ours.readers[0].read() == b""
    ours.kept[1].write(b"again")
    assert await ours.readers[1].read(5) == b"again"
