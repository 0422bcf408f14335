"""One daemon per user: the lock, the socket, the permitted peers (design/security.md), and its connections.

A live socket is never stolen, a stale one is replaced, anything that is not a socket is never unlinked. A
socket that a service manager hands over (``LISTEN_FDS``) is taken instead, and stays when the daemon ends.
The lock is held by the kernel (``flock``) and goes with the process, however it dies (I45).
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import resource
import socket
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..core.errors import UserError
from ..owners import check_private

if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping

    from ..engine.world import Health

BACKLOG = 4096
CONNECT_S = 1.0
_HANDED_OVER = ("LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "LISTEN_PIDFDID")
FIRST_INHERITED = 3  # the descriptor by which a service manager hands over its first socket


class AlreadyRunning(UserError):
    """Another daemon of this user answers; ``reflectd status`` shows it."""


class Lock:
    """The per-user lock file; holds the pid for people to read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1

    def acquire(self) -> None:
        """Take the lock, or raise ``AlreadyRunning``."""
        _private_folder(self._path.parent)
        try:
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as e:
            mend = "Make room" if e.errno in {errno.ENOSPC, errno.EDQUOT} else "Move it away"
            raise UserError(f"cannot use the lock {self._path}: {e.strerror}. {mend}") from e
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise UserError(f"cannot use the lock {self._path}: it is no file. Move it away")
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.read(fd, 32).decode("ascii", "replace").strip() or "unknown"
            os.close(fd)
            raise AlreadyRunning(
                f"reflectd runs already (pid {pid}); see `reflectd status`, or `reflectd stop` it first"
            ) from None
        self._fd = fd
        with contextlib.suppress(OSError):  # a full disk: the lock holds all the same
            os.ftruncate(fd, 0)
            os.write(fd, f"{os.getpid()}\n".encode())

    def is_free(self) -> bool:
        """Nobody holds the lock: no daemon lives (a zombie holds nothing)."""
        try:
            fd = os.open(self._path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return True
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            os.close(fd)
        return True

    def release(self) -> None:
        """Give the lock back; the file stays, so that nobody locks a file that is being unlinked."""
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, 0)
            os.close(self._fd)
            self._fd = -1


def bind(path: Path) -> socket.socket:
    """A listening Unix socket at ``path``, 0600 in a 0700 folder. Call with the lock held."""
    _private_folder(path.parent)
    _clear(path)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        old = os.umask(0o177)
        try:
            sock.bind(str(path))
        finally:
            os.umask(old)
        path.chmod(0o600)
        sock.listen(BACKLOG)
        sock.setblocking(False)
    except OSError as e:
        sock.close()
        raise UserError(f"cannot listen on {path}: {e.strerror}. Set REFLECTD_SOCKET to another path") from e
    return sock


def inherited(env: MutableMapping[str, str], pid: int) -> socket.socket | None:
    """The listening socket that a service manager handed to the process ``pid``, None when there is none.

    Takes its variables out of ``env``, so that no child process believes they are meant for it. Raises
    ``UserError`` when it is not one listening Unix socket in a private folder of ours.
    """
    count, whose, *_ = (env.pop(name, "") for name in _HANDED_OVER)
    if whose != str(pid) or count in {"", "0"}:
        return None
    if count != "1":
        raise UserError(f"LISTEN_FDS is {count!r}: the daemon takes exactly one socket; mend the socket unit")
    try:
        found = stat.S_ISSOCK(os.fstat(FIRST_INHERITED).st_mode)
        sock = socket.socket(fileno=FIRST_INHERITED) if found else None
    except OSError as e:
        raise UserError(f"LISTEN_FDS is set, but descriptor {FIRST_INHERITED}: {e.strerror}") from e
    path = sock.getsockname() if sock is not None and sock.family == socket.AF_UNIX else ""
    listens = sock is not None and bool(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
    if sock is None or not listens or not isinstance(path, str) or not path.startswith("/"):
        raise UserError("the inherited socket must be ListenStream= with a path; mend the socket unit")
    try:
        _private_folder(Path(path).parent)
        Path(path).chmod(0o600)
    except OSError as e:
        raise UserError(f"cannot use the inherited socket {path}: {e.strerror}") from e
    sock.set_inheritable(False)
    sock.setblocking(False)
    return sock


def remove(path: Path, inode: int) -> None:
    """Unlink our own socket, if it is still the one we made."""
    with contextlib.suppress(OSError):
        found = path.lstat()
        if stat.S_ISSOCK(found.st_mode) and found.st_ino == inode:
            path.unlink()


def _private_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        found = folder.stat()
    except OSError as e:
        raise UserError(f"cannot use the folder {folder}: {e.strerror}. Set REFLECTD_STATE_DIR") from e
    check_private(folder, found)


def _clear(path: Path) -> None:
    """Make room: refuse a live socket, unlink a dead one, refuse anything else."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise UserError(f"{path} exists and is not a socket; move it away or set REFLECTD_SOCKET")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(CONNECT_S)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            path.unlink(missing_ok=True)
            return
        except OSError as e:
            raise AlreadyRunning(
                f"another program uses {path} and is silent ({e.strerror}). This one does not start"
            ) from e
    raise AlreadyRunning(f"a daemon runs already and answers on {path}. This one does not start")


# --- connections --------------------------------------------------------------------------------------------

CONNECTIONS: Final = "connections"
PAUSE_S: Final = 1.0
AT_ONCE: Final = 100  # before other work of the loop has its turn
RESERVED: Final = 64


class Accepting:
    """Accepts connections, and waits where the process has no descriptors left for more. ``start`` and
    ``stop`` belong to the loop's thread.

    asyncio's own way tries again thousands of times at once and logs each failure. Here the socket rests for
    ``PAUSE_S``, with one named fault, until there is room. Some descriptors stay free for files and the
    database. A client that connects meanwhile waits in the kernel's queue.
    """

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
    """Says whether there are descriptors for one more connection: the system gives out the lowest that is
    free.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return True
    probe = os.dup(fd)
    with contextlib.suppress(OSError):
        os.close(probe)
    return probe < soft - min(RESERVED, soft // 4)
