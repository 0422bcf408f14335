"""Processes of reflectd that begin as forks of one that has imported it: each costs 20 ms instead of 400.

``Forker`` starts the server (this module, run with ``-m``). A child has its own environment, folder, streams,
session and exit status, as if it had been started with ``python -m``. Python's own start and the imports are
shared. Tests of that (``reflectd help`` without imports, an upgrade, a service) start a new Python.
"""

from __future__ import annotations

import array
import contextlib
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

REPO: Final = Path(__file__).resolve().parents[2]
PREPARED: Final = (
    "daemon.cli.entry",
    "daemon.cli.main",
    "daemon.app",
    "asyncio",
    "anthropic",
    "openai",
    "aiohttp.web",
    "sqlite3",
    "ssl",
)
ADDRESS: Final = "TESTS_FORKER"
"""The variable with the address of a server that runs: the workers of one run share one."""
_SIZE: Final = struct.Struct("!I")
_MOST: Final = 4096
"""No server has more descriptors."""


class Forked:
    """A child of the server, with what is used of ``subprocess.Popen``."""

    def __init__(self, connection: socket.socket, args: Sequence[str]) -> None:
        self._connection, self.args = connection, args
        self._lines = connection.makefile("r", encoding="ascii")
        self.pid = int(self._lines.readline())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit status; None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Until it ends. ``subprocess.TimeoutExpired`` when it has not by then."""
        if self.returncode is None:
            with selectors.DefaultSelector() as ready:
                ready.register(self._connection, selectors.EVENT_READ)
                if not ready.select(timeout):
                    raise subprocess.TimeoutExpired(list(self.args), timeout or 0)
            status, cpu = self._lines.readline().split()
            self.returncode = int(status)
            SPENT.append(float(cpu))
            self._lines.close()
            self._connection.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Nothing is sent to a process that was waited for."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


SPENT: list[float] = []
"""Processor seconds of each child that was waited for: the server's children are not ours."""


class Forker:
    """The server's client. The first use starts the server, unless ``ADDRESS`` names one."""

    def __init__(self) -> None:
        self._server: subprocess.Popen[bytes] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._children: list[Forked] = []

    def start(
        self,
        args: Sequence[str],
        env: Mapping[str, str],
        cwd: Path,
        streams: Sequence[int],
        *,
        session: bool = True,
    ) -> Forked:
        """``reflectd`` with these arguments. ``streams``: descriptors for its stdin, stdout and stderr."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.connect(os.environ.get(ADDRESS) or self.serve())
        asked = {"args": list(args), "env": dict(env), "cwd": str(cwd), "session": session}
        body = json.dumps(asked).encode()
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", streams))]
        connection.sendmsg([_SIZE.pack(len(body))], rights)
        connection.sendall(body)
        child = Forked(connection, args)
        self._children = [*self.alive(), child]
        return child

    def alive(self) -> list[Forked]:
        """The children that run. In ``/proc`` their environment is the server's, which does not tell them."""
        return [child for child in self._children if child.poll() is None]

    def serve(self) -> str:
        """Start the server, once; its address."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="rd-fork-")
            command = [sys.executable, "-m", "harness.machine.forked", str(Path(self._folder.name, "s"))]
            kept = {"PATH", "LANG", "LC_ALL", "TMPDIR", "HOME"}
            plain = {name: value for name, value in os.environ.items() if name in kept}
            env = plain | {"PYTHONPATH": str(REPO), "PYTHONUNBUFFERED": "1"}
            pipe = subprocess.PIPE
            self._server = subprocess.Popen(command, env=env, cwd=REPO, stdin=pipe, stdout=pipe)
        assert self._server is not None
        assert self._server.stdout is not None
        if not self._server.stdout.closed:
            assert self._server.stdout.readline() == b"ready\n", "the server of forks did not start"
            self._server.stdout.close()
        return str(Path(self._folder.name, "s"))

    def close(self) -> None:
        """End the server; its children are ended by whoever started them."""
        if self._server is not None and self._folder is not None:
            assert self._server.stdin is not None
            self._server.stdin.close()
            self._server.wait()
            self._folder.cleanup()
            self._server = self._folder = None


FORKER = Forker()


class _Server:
    """One thread, which only waits: a fork of it is a process like any other."""

    def __init__(self, address: str) -> None:
        self._children: dict[int, socket.socket] = {}
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(address)
        self._listener.listen(64)
        self._woken, self._wake = socket.socketpair()
        for end in (self._woken, self._wake):
            end.setblocking(False)

    def serve(self) -> None:
        """Until stdin is closed."""
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)
        with selectors.DefaultSelector() as ready:
            for source in (self._listener, self._woken, sys.stdin):
                ready.register(source, selectors.EVENT_READ)
            print("ready", flush=True)
            os.dup2(2, 1)
            while True:
                for key, _ in ready.select():
                    if key.fileobj is sys.stdin:
                        return
                    if key.fileobj is self._listener:
                        self._fork(self._listener.accept()[0])
                    else:
                        with contextlib.suppress(BlockingIOError):
                            self._woken.recv(4096)
                self._reap()

    def _fork(self, connection: socket.socket) -> None:
        head, rights, *_ = connection.recvmsg(_SIZE.size, socket.CMSG_SPACE(3 * 4))
        streams = array.array("i")
        streams.frombytes(rights[0][2])
        body = b""
        while len(body) < _SIZE.unpack(head)[0]:
            body += connection.recv(1 << 20)
        pid = os.fork()
        if pid == 0:
            _become(json.loads(body), list(streams))
        for stream in streams:
            os.close(stream)
        self._children[pid] = connection
        connection.sendall(b"%d\n" % pid)

    def _reap(self) -> None:
        while self._children:
            pid, status, used = os.wait4(-1, os.WNOHANG)
            if pid == 0:
                return
            with contextlib.suppress(OSError):
                cpu = used.ru_utime + used.ru_stime
                self._children[pid].sendall(b"%d %.3f\n" % (os.waitstatus_to_exitcode(status), cpu))
            self._children.pop(pid).close()


def _become(asked: dict[str, Any], streams: list[int]) -> None:
    """The child: what it was started with, then the command; it never returns."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whoever started the tests may ignore it
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if asked["session"]:
            os.setsid()
        sys.stdin.close()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        os.closerange(3, _MOST)
        sys.stdin = os.fdopen(0, "r", encoding="utf-8", errors="surrogateescape", closefd=False)
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
        os.environ.clear()
        os.environ.update(asked["env"])
        time.tzset()
        os.chdir(asked["cwd"])
        sys.argv = [str(REPO / "daemon" / "__main__.py"), *asked["args"]]
        sys.orig_argv = [sys.executable, "-m", "daemon", *asked["args"]]
        from daemon.cli.entry import entry

        try:
            entry()
        except SystemExit as e:
            code = e.code if isinstance(e.code, int) else bool(e.code)
    except BaseException:  # as Python ends with it
        traceback.print_exc()
    finally:
        _end(code)


def _end(code: int) -> None:
    """As Python ends: it waits for other threads, calls what was registered, and flushes the streams."""
    import atexit
    import threading

    with contextlib.suppress(BaseException):
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(code)


def _prepare() -> None:
    """Import what a daemon and the verbs use."""
    from daemon.cli.verbs import VERBS

    for name in PREPARED:
        importlib.import_module(name)
    for module, _ in VERBS.values():
        importlib.import_module(module, "daemon.cli")
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    _server = _Server(sys.argv[1])
    _prepare()
    _server.serve()
