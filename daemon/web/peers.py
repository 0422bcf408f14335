"""Whose the other end of a connection over loopback is.

On Linux the kernel is asked for this one connection (netlink, ``sock_diag``), so it makes no difference how
many others there are. Only a socket that a process still holds has an owner: one that was closed already is
listed without a process, and its user is not told. Where the kernel can't be asked like that, its table is
read.
"""

from __future__ import annotations

import contextlib
import functools
import socket
import struct
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    Address = tuple[str, int]

NOBODY: Final = -1  # the user of a connection that is over, or that nobody holds any more
LISTENS: Final = 10  # a state that no end of a connection has
WAIT_S: Final = 1.0
# what stands before an address of IPv4 in the table of IPv6
MAPPED: Final = "0" * 16 + ("FFFF0000" if sys.byteorder == "little" else "0000FFFF")
_NETLINK_SOCK_DIAG: Final = 4
_SOCK_DIAG_BY_FAMILY: Final = 20
_REQUEST: Final = 1
_ANY: Final = 0xFFFFFFFF
_HEAD: Final = struct.Struct("=IHHII")  # length, type, flags, sequence number, port
_STATE_AT, _UID_AT, _END = 1, 64, 72  # in ``struct inet_diag_msg``; the inode follows the user


def tcp_peer_uid(sock: socket.socket) -> int | None:
    """The user at the other end of a connection over loopback (IPv4); None where the system does not say,
    ``NOBODY`` where it does and knows of no process at that end.
    """
    try:
        ours, theirs = sock.getsockname(), sock.getpeername()
    except OSError:
        return NOBODY  # it has ended
    if can_ask():
        return asked(ours, theirs)
    return in_tables(ours, theirs)


@functools.cache
def can_ask() -> bool:
    """Whether the kernel answers such a question: it is asked about a connection of this process."""
    if not hasattr(socket, "AF_NETLINK"):
        return False
    with contextlib.ExitStack() as stack:
        try:
            listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            client = stack.enter_context(socket.create_connection(listening.getsockname(), WAIT_S))
            return asked(listening.getsockname(), client.getsockname()) != NOBODY
        except OSError:
            return False


def asked(ours: Address, theirs: Address) -> int:
    """As the kernel answers. The socket that is looked for is the other end's."""
    try:
        body = b"".join((
            struct.pack("=BBBBI", socket.AF_INET, socket.IPPROTO_TCP, 0, 0, _ANY),  # in any state
            struct.pack("!HH", theirs[1], ours[1]),
            socket.inet_aton(theirs[0]).ljust(16, b"\0"),
            socket.inet_aton(ours[0]).ljust(16, b"\0"),
            struct.pack("=III", 0, _ANY, _ANY),  # any interface, any cookie
        ))  # fmt: skip
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as link:
            link.settimeout(WAIT_S)
            link.send(_HEAD.pack(_HEAD.size + len(body), _SOCK_DIAG_BY_FAMILY, _REQUEST, 1, 0) + body)
            data = link.recv(8192)
    except (OSError, struct.error):
        return NOBODY
    found = data[_HEAD.size :]
    if len(found) < _END or _HEAD.unpack_from(data)[1] != _SOCK_DIAG_BY_FAMILY:
        return NOBODY  # an error: there is no such connection
    uid, inode = struct.unpack_from("=II", found, _UID_AT)
    return uid if inode and found[_STATE_AT] != LISTENS else NOBODY


def in_tables(ours: Address, theirs: Address) -> int | None:
    """As the kernel's tables have it; None where there are none. An IPv6 socket stands in a table of its own,
    also with an address of IPv4.
    """
    try:
        ends = [_in_table(*theirs), _in_table(*ours)]
    except (OSError, ValueError):
        return NOBODY
    tables = (("/proc/net/tcp", ends), ("/proc/net/tcp6", [MAPPED + end for end in ends]))
    for path, addresses in tables:
        try:
            with open(path, encoding="ascii") as table:  # noqa: PTH123 - a pseudo file
                for line in table:
                    found = line.split()
                    if found[1:3] == addresses:
                        return int(found[7]) if int(found[9]) else NOBODY
        except FileNotFoundError:
            if path == tables[0][0]:
                return None
        except (OSError, ValueError, IndexError):
            return NOBODY
    return NOBODY


def _in_table(address: str, port: int) -> str:
    """An address as the kernel's table of connections writes it."""
    return f"{struct.unpack('=I', socket.inet_aton(address))[0]:08X}:{port:04X}"
