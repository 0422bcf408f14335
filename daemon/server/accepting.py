"""Accepts connections, and waits where the process has no descriptors left for more.

asyncio's own way tries again thousands of times at once and logs each failure. Here the socket rests for
``PAUSE_S``, with one named fault, until there is room. Some descriptors stay free for files and the database.
Whoever connects meanwhile waits in the kernel's queue.
"""

from __future__ import annotations

import asyncio
import os
import resource
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from .listener import BACKLOG

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from ..engine.world import Health

CONNECTIONS: Final = "connections"
PAUSE_S: Final = 1.0
AT_ONCE: Final = 100  # before other work of the loop has its turn
RESERVED: Final = 64


class Accepting:
    """``start`` and ``stop``; both belong to the loop's thread."""

    def __init__(self, sock: socket.socket, made: Callable[[], asyncio.BaseProtocol], health: Health) -> None:
        """``sock`` listens and does not block; ``made`` makes the protocol of one connection."""
        self._sock = sock
        self._made = made
        self._health = health
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._rest: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Accept from now on."""
        self._sock.listen(BACKLOG)
        self._loop.add_reader(self._sock, self._ready)

    def stop(self) -> None:
        """Accept nothing more; connections that were accepted go on."""
        if self._rest is not None:
            self._rest.cancel()
        self._loop.remove_reader(self._sock)
        self._sock.close()

    def _ready(self) -> None:
        for _ in range(AT_ONCE):
            try:
                if not _room(self._sock.fileno()):
                    self._pause("few file descriptors are left")
                    return
                connection, _ = self._sock.accept()
            except BlockingIOError:  # nobody waits any more
                self._health.works(CONNECTIONS)
                return
            except (InterruptedError, ConnectionAbortedError):
                return
            except OSError as e:
                self._pause(e.strerror or str(e))
                return
            connection.setblocking(False)
            task = self._loop.create_task(self._connect(connection))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _connect(self, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._made, connection)
        except OSError:  # it is gone already
            connection.close()

    def _pause(self, why: str) -> None:
        text = f"no new connections are accepted: {why}. Close hosts, or raise the limit (ulimit -n)"
        self._health.failed(CONNECTIONS, text)
        self._loop.remove_reader(self._sock)
        self._rest = self._loop.call_later(PAUSE_S, self._loop.add_reader, self._sock, self._ready)


def _room(fd: int) -> bool:
    """Whether there are descriptors for one more connection: the system gives out the lowest that is free."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return True
    probe = os.dup(fd)
    with suppress(OSError):
        os.close(probe)
    return probe < soft - min(RESERVED, soft // 4)
