"""Tells systemd that the daemon is ready, alive or stopping (the sd_notify protocol).

It removes the protocol's variables from the environment, so that no child process can speak in the daemon's
name. Outside systemd every call does nothing; a message that can't be sent is lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, MutableMapping

VARIABLES = frozenset({"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"})
INHERITED = VARIABLES | {"LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "LISTEN_PIDFDID"}
"""Variables that a service manager means for one process, not for its children."""

STATUS_CHARS = 300
SEND_S = 1.0  # how long one message may wait when the manager's queue is full


def without(env: Mapping[str, str]) -> dict[str, str]:
    """The environment for a process that no service manager supervises."""
    return {name: value for name, value in env.items() if name not in INHERITED}


class Notifier:
    """Sends messages to the manager; ``every_s``: seconds between signs of life, None for none."""

    def __init__(self, address: str = "", every_s: float | None = None) -> None:
        self.every_s = every_s if address else None
        self._status = ""
        # '@' stands for the NUL byte of an abstract address
        self._address = f"\0{address[1:]}" if address.startswith("@") else address

    @classmethod
    def from_environment(cls, env: MutableMapping[str, str], pid: int | None = None) -> Notifier:
        """Remove the protocol's variables from ``env``. A value that makes no sense counts as missing."""
        address, usec, whose = (env.pop(n, "") for n in ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"))
        if not address.startswith(("/", "@")):
            return cls()
        mine = whose in {"", str(os.getpid() if pid is None else pid)}
        due = int(usec) if mine and usec.isascii() and usec.isdigit() and len(usec) < 18 else 0
        return cls(address, due / 2 / 1_000_000 if due else None)

    def ready(self, status: str) -> None:
        """Tell that the socket answers."""
        self._send("READY=1", self._worded(status))

    def status(self, text: str) -> None:
        """Set what `systemctl status` shows. Sent only when it changed."""
        if text != self._status:
            self._send(self._worded(text))

    async def live(self, stopping: asyncio.Event, status: Callable[[], str]) -> None:
        """Send signs of life from the event loop until cancelled, so that a daemon whose loop hangs is
        restarted.

        Each of them sends ``status`` too. They go on while the daemon finishes its work at the end.
        """
        while not stopping.is_set():
            self.sign_of_life()
            self.status(status())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.every_s):
                    await stopping.wait()
        self._send("STOPPING=1", self._worded("stopping"))
        while self.every_s is not None:
            self.sign_of_life()
            await asyncio.sleep(self.every_s)

    def sign_of_life(self) -> None:
        """Tell that the daemon is alive, where a watchdog waits for it."""
        if self.every_s is not None:
            self._send("WATCHDOG=1")

    def _worded(self, status: str) -> str:
        self._status = status
        return f"STATUS={' '.join(status.split())[:STATUS_CHARS]}"

    def _send(self, *lines: str) -> None:
        if not self._address:
            return
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.settimeout(SEND_S)
            sender.sendto("\n".join(lines).encode("utf-8", "replace"), self._address)
