"""The small client: no daemon is ``Unavailable``, a refusal is told in the daemon's own words, and no byte
goes to a socket that is not this user's alone.
"""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from daemon.client import request, stream
from daemon.core.errors import ReflectdError, Refused, Unavailable, UserError
from daemon.owners import check_private
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import sandbox
from tests.support.machine.command_line import reflectd, said

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="rd-") as found:
        yield Path(found).resolve()


ATTACKER = 54321
root_only = pytest.mark.skipif(os.getuid() != 0, reason="only root can give a socket away")


class Trap:
    """A program that listens, notes every byte that it is sent, and gives the same answer to all."""

    def __init__(self, path: Path, answer: bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}") -> None:
        self.path, self.heard, self._answer = path, b"", answer
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(path))
        path.chmod(0o600)
        self._socket.listen()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()

    def _work(self) -> None:
        while True:
            try:
                link, _ = self._socket.accept()
            except OSError:
                return
            with link:
                self.heard += link.recv(65536)
                with contextlib.suppress(OSError):
                    link.sendall(self._answer)


@pytest.fixture
def trap() -> Iterator[Trap]:
    with tempfile.TemporaryDirectory(prefix="rd-") as folder:
        run = Path(folder).resolve() / "run"
        run.mkdir(mode=0o700)
        found = Trap(run / "r.sock")
        try:
            yield found
        finally:
            found.close()


def http(status: str, body: bytes) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def test_the_real_daemon() -> None:
    """Answers are objects; a refusal has the daemon's words, and its status beside them."""
    with sandbox() as box, Daemon(box) as daemon:
        assert request(box.socket, "GET", "/v1/status")["api"] == 1
        with pytest.raises(UserError, match="say hello first"):
            request(box.socket, "POST", "/v1/events", {"instance": "nobody", "events": []})
        with pytest.raises(Refused, match="the daemon has no address") as refused:
            request(box.socket, "GET", "/v1/nothing")
        assert refused.value.status == 404
        daemon.new_log()


@pytest.mark.shows("I35")
def test_nobody_there(folder: Path) -> None:
    """No socket, a stale socket, a file, or a path no socket can have: not running, and what to do."""
    stale = folder / "stale.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(stale))
    file = folder / "file"
    file.write_text("x")
    (folder / "d").mkdir()
    for path in (folder / "none.sock", stale, file, folder / "d", folder / ("x" * 200)):
        with pytest.raises(Unavailable, match="reflectd start"):
            request(path, "GET", "/v1/status")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{",
        http("200 OK", b"<html>"),
        http("200 OK", b"\xff\xfe"),
        http("200 OK", b""),
        http("200 OK", b"[]"),
        http("200 OK", b"7"),
        http("500 Oops", b"[]"),
        http("500 Oops", b"Server got itself in trouble"),
        http("400 No", b'{"error": 5}'),
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1000 + b"\r\n",
    ],
    ids=lambda d: repr(d[:40]),
)
def test_something_else_answers(folder: Path, data: bytes) -> None:
    """Bad input: whatever answers, the client says so as one of our errors and shows no trace."""
    path = folder / "other.sock"
    with contextlib.closing(Trap(path, data)), pytest.raises(ReflectdError):
        request(path, "GET", "/v1/status", timeout_s=5)


@pytest.mark.shows("I35")
def test_nobody_answers(folder: Path) -> None:
    """A daemon that hangs is not waited for longer than asked."""
    path = folder / "hangs.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen(1)
        with pytest.raises(Unavailable):
            request(path, "GET", "/v1/status", timeout_s=0.2)


@pytest.mark.parametrize("which", ["folder", "socket"])
def test_a_socket_that_others_may_replace_is_not_used(trap: Trap, which: str) -> None:
    """Neither a request nor a stream says a word to it; the person is told what to do."""
    place = trap.path.parent if which == "folder" else trap.path
    place.chmod(place.stat().st_mode | 0o022)
    for ask in (
        lambda: request(trap.path, "GET", "/v1/status"),
        lambda: list(stream(trap.path, "/v1/stream")),
    ):
        with pytest.raises(UserError, match=f"others may write to the {which} .*chmod go-w"):
            ask()
    assert trap.heard == b""


@root_only
@pytest.mark.parametrize("which", ["folder", "socket"])
def test_a_socket_of_another_user_is_not_used(trap: Trap, which: str) -> None:
    """The same for what another user owns."""
    os.chown(trap.path.parent if which == "folder" else trap.path, ATTACKER, ATTACKER)
    with pytest.raises(UserError, match=f"the {which} .* belongs to another user"):
        request(trap.path, "GET", "/v1/status")
    assert trap.heard == b""


@root_only
def test_status_says_that_the_socket_is_another_users() -> None:
    """One line, no traceback: also for the socket that the state folder's file names."""
    with sandbox() as box:
        trap = Trap(box.root / "x.sock")
        try:
            os.chown(trap.path, ATTACKER, ATTACKER)
            (box.state / "socket").write_text(f"{trap.path}\n")
            for env in ({"REFLECTD_SOCKET": str(trap.path)}, {"REFLECTD_SOCKET": ""}):
                said(reflectd(box, "status", **env), 2, "belongs to another user")
            assert trap.heard == b""
        finally:
            trap.close()


def test_what_is_ours_alone_passes(trap: Trap) -> None:
    """The usual folder and socket; others may read the folder."""
    trap.path.parent.chmod(0o755)
    for place in (trap.path.parent, trap.path):
        check_private(place, place.stat())
    assert request(trap.path, "GET", "/v1/status") == {}
