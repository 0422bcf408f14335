"""Whose a socket is: the checks that the daemon and its clients share, before a byte goes out.

It imports the standard library only, because the CLI must start fast. It changes nothing on the disk.
Whatever is not this user's alone is a ``UserError`` that says what to do.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import struct
from typing import TYPE_CHECKING

from .core.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path


def check_private(path: Path, found: os.stat_result) -> None:
    """Refuse what another user owns or may write to. Raises ``UserError``."""
    kind = "folder" if stat.S_ISDIR(found.st_mode) else "socket"
    if found.st_uid != os.geteuid():
        raise UserError(f"the {kind} {path} belongs to another user (uid {found.st_uid}); not used")
    if found.st_mode & 0o022:
        raise UserError(f"others may write to the {kind} {path}; run: chmod go-w {path}")


def peer_uid(sock: socket.socket) -> int | None:
    """The user at the other end; None where the system does not say."""
    with contextlib.suppress(OSError, struct.error):
        if hasattr(socket, "SO_PEERCRED"):
            return int(struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1])
        # macOS: getsockopt(SOL_LOCAL, LOCAL_PEERCRED) gives struct xucred {version, uid, …}
        return int(struct.unpack_from("=II", sock.getsockopt(0, 0x001, 76))[1])
    return None


def tcp_peer_uid(sock: socket.socket) -> int | None:
    """The user at the other end of a connection over loopback (IPv4); None where the system does not say."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        ours, theirs = (_in_table(*address) for address in (sock.getsockname(), sock.getpeername()))
        with open("/proc/net/tcp", encoding="ascii") as table:  # noqa: PTH123 - a pseudo file
            for line in table:
                found = line.split()
                if found[1:3] == [theirs, ours]:
                    return int(found[7])
    return None


def _in_table(address: str, port: int) -> str:
    """An address as the kernel's table of connections writes it."""
    return f"{struct.unpack('=I', socket.inet_aton(address))[0]:08X}:{port:04X}"
