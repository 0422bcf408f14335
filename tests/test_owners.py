"""Clients of the socket look whose it is, before a byte goes out."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from daemon.client import request, stream
from daemon.core.errors import UserError
from daemon.owners import check_private
from harness.machine.sandbox import sandbox
from tests.support.machine.command_line import reflectd, said

if TYPE_CHECKING:
    from collections.abc import Iterator

ATTACKER = 54321
root_only = pytest.mark.skipif(os.getuid() != 0, reason="only root can give a socket away")


class Trap:
    """A program that listens and notes every byte that it is sent."""

    def __init__(self, path: Path) -> None:
        self.path, self.heard = path, b""
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
                link.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")


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
