"""Connections to the dashboard's port: only so many are kept, the newest. So nobody can use up the daemon's
descriptors through this port, and no program that only holds connections can keep a browser out.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from collections.abc import Callable

MOST: Final = 64


class Connections:
    """``made`` makes the protocol of one connection, as ``loop.create_server`` wants it."""

    def __init__(self, served: Callable[[], asyncio.Protocol], most: int = MOST) -> None:
        """``served``: makes the protocol of a connection that is answered."""
        self.served = served
        self.most = most
        self.open: dict[_Connection, asyncio.Transport] = {}  # the oldest first

    def made(self) -> asyncio.Protocol:
        """A protocol that is counted."""
        return _Connection(self)


class _Connection(asyncio.Protocol):
    def __init__(self, all_of_them: Connections) -> None:
        self._all = all_of_them
        self._inner: asyncio.Protocol | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        mine = cast("asyncio.Transport", transport)
        if len(self._all.open) >= self._all.most:
            oldest = next(iter(self._all.open))
            self._all.open.pop(oldest).abort()
        self._all.open[self] = mine
        self._inner = self._all.served()
        self._inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if self._inner is not None:
            self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received() if self._inner is not None else None

    def pause_writing(self) -> None:
        if self._inner is not None:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        if self._inner is not None:
            self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._all.open.pop(self, None)
        if self._inner is not None:
            self._inner.connection_lost(exc)
