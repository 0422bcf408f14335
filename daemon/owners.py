"""Whose a socket is: the checks that the daemon and its clients share, before a byte goes out.

It imports hardly anything, because `reflectd line` runs at each prompt: ``typing`` alone would take a tenth
of its time. It changes nothing on the disk. A path that is not this user's alone is a ``UserError`` that says
what to do.
"""

from __future__ import annotations

import os
import socket
import stat
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path


def check_private(path: Path, found: os.stat_result) -> None:
    """Refuse what another user owns or may write to. Raises ``UserError``."""
    said = objection(path, found)
    if said:
        from .core.errors import UserError

        raise UserError(said)


def objection(path: Path | str, found: os.stat_result) -> str:
    """The fault of a socket or its folder, with the remedy; empty when it is this user's alone."""
    kind = "folder" if stat.S_ISDIR(found.st_mode) else "socket"
    if found.st_uid != os.geteuid():
        return f"the {kind} {path} belongs to another user (uid {found.st_uid}); not used"
    if found.st_mode & 0o022:
        return f"others may write to the {kind} {path}; run: chmod go-w {path}"
    return ""


def peer_uid(sock: socket.socket) -> int | None:
    """The user at the other end; None where the system does not say."""
    try:
        if hasattr(socket, "SO_PEERCRED"):
            return int(struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1])
        # macOS: getsockopt(SOL_LOCAL, LOCAL_PEERCRED) gives struct xucred {version, uid, …}
        return int(struct.unpack_from("=II", sock.getsockopt(0, 0x001, 76))[1])
    except (OSError, struct.error):
        return None
