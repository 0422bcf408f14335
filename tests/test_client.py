"""The small client: no daemon is ``Unavailable``, a refusal is told in the daemon's own words."""

from __future__ import annotations

import contextlib
import socket
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from daemon.client import request
from daemon.core.errors import ReflectdError, Refused, Unavailable, UserError
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import sandbox

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="rd-") as found:
        yield Path(found).resolve()


@contextlib.contextmanager
def answering(path: Path, data: bytes) -> Iterator[None]:
    """Something that is not reflectd: says ``data`` to the first connection and closes it."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen(1)

        def once() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                with contextlib.suppress(OSError):
                    connection.sendall(data)

        thread = threading.Thread(target=once, daemon=True)
        thread.start()
        yield
        thread.join(60)


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
    with answering(path, data), pytest.raises(ReflectdError):
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
