"""One daemon per user: the lock, the socket, and what is left when it ends, however it ends."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.core.errors import UserError
from daemon.server.listener import AlreadyRunning, Lock, bind, remove
from harness.machine import processes
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import REPO, Sandbox, sandbox
from harness.machine.waiting import PATIENCE_S, wait_until
from tests.support.hosts.wire import WireHost, unfinished


@pytest.fixture
def box() -> Iterator[Sandbox]:
    with sandbox() as box, processes.none_left_over():
        yield box


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path: a socket's has 104 bytes."""
    with tempfile.TemporaryDirectory(prefix="rd-") as found:
        yield Path(found).resolve()


def serve(box: Sandbox, *flags: str, **env: str) -> subprocess.CompletedProcess[str]:
    """``reflectd serve`` that is expected to end by itself."""
    return subprocess.run(
        [sys.executable, "-m", "daemon", "serve", *flags],
        env=box.env(PYTHONPATH=str(REPO)) | env,
        cwd=box.home,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def refused(found: subprocess.CompletedProcess[str], *words: str) -> None:
    """Exit code 2, one message for people, no trace."""
    assert found.returncode == 2, found
    assert "Traceback" not in found.stderr
    assert found.stderr.startswith("reflectd: ")
    for word in words:
        assert word in found.stderr


# --- the real process ------------------------------------------------------------------------------


def test_a_second_daemon_is_refused(box: Sandbox) -> None:
    """The second daemon says who runs and ends with 2; the first is not disturbed."""
    with Daemon(box) as daemon:
        before = daemon.status()["pid"]
        inode = box.socket.stat().st_ino
        refused(serve(box), "runs already", f"pid {before}", "reflectd stop")
        assert daemon.status()["pid"] == before
        assert box.socket.stat().st_ino == inode
        assert (box.state / "socket").read_text().strip() == str(box.socket)


def test_the_files_of_a_running_daemon(box: Sandbox) -> None:
    """Socket 0600 in a 0700 folder; the state folder tells clients where it is, privately."""
    box.socket.parent.rmdir()
    box.state.rmdir()
    with Daemon(box):
        for path, mode in ((box.socket, 0o600), (box.socket.parent, 0o700), (box.state, 0o700)):
            assert stat.S_IMODE(path.lstat().st_mode) == mode, path
        assert stat.S_ISSOCK(box.socket.lstat().st_mode)
        assert (box.state / "socket").read_text() == f"{box.socket}\n"
        for path in box.state.iterdir():
            assert stat.S_IMODE(path.lstat().st_mode) & 0o077 == 0, path


@pytest.mark.shows("I45")
def test_sigterm_drains_and_leaves_nothing(box: Sandbox) -> None:
    """SIGTERM while judging ends with 0; socket and address go, the state is kept."""
    daemon = Daemon(box).start()
    with WireHost(box.socket, box.project) as host:  # its read is never answered
        host.send(host.turn("ses_drain"))
        wait_until(lambda: host.kinds() == ["read"], "read")
        assert daemon.stop() == 0
    assert not box.socket.exists()
    assert not (box.state / "socket").exists()
    assert (box.state / "lock").read_text() == ""
    daemon.new_log()
    daemon.start()
    assert daemon.session("ses_drain")["task"] == "msg_1"
    assert daemon.stop() == 0


@pytest.mark.shows("I45")
def test_requests_while_it_ends_leave_no_trace(box: Sandbox) -> None:
    """What comes while the daemon drains is refused or served, and no bug is logged."""
    for _ in range(3):
        daemon = Daemon(box).start()
        with WireHost(box.socket, box.project, unfinished(box.project)) as host:
            host.send(host.turn("ses_flood"))
            process = daemon._process
            assert process is not None
            process.terminate()
            while process.poll() is None:
                try:
                    host.hello()
                    host.send([host.event("activity", sessionID="ses_flood", bytes=1)])
                except (OSError, AssertionError):
                    continue
            assert process.returncode == 0
        daemon.new_log()
        daemon.kill9()


@pytest.mark.shows("I45")
def test_killed_and_started_again(box: Sandbox) -> None:
    """After SIGKILL the lock is free and the stale socket is replaced."""
    daemon = Daemon(box).start()
    daemon.kill9()
    assert box.socket.exists()
    assert (box.state / "socket").exists()
    daemon.start()
    assert daemon.status()["socket"] == str(box.socket)
    assert daemon.stop() == 0


def test_started_at_the_same_moment(box: Sandbox) -> None:
    """Of four daemons that start at once exactly one serves; the others say so and end with 2."""
    command = [sys.executable, "-m", "daemon", "serve"]
    logs = [(box.root / f"{n}.log").open("wb") for n in range(4)]
    env = box.env(PYTHONPATH=str(REPO))
    many = [processes.start(command, env, box.home, log, log) for log in logs]
    try:
        wait_until(lambda: sum(p.poll() is None for p in many) == 1, "one left")
        (winner,) = [p for p in many if p.poll() is None]
        daemon = Daemon(box)
        wait_until(box.socket.exists, "the socket")
        assert daemon.status()["pid"] == winner.pid
        assert [p.returncode for p in many if p is not winner] == [2, 2, 2]
    finally:
        for process, log in zip(many, logs, strict=True):
            processes.end_group(process)
            log.close()


@pytest.mark.shows("I42")
def test_its_folder_is_deleted_under_it(box: Sandbox) -> None:
    """A daemon whose database is gone does not go on answering as if it stored anything."""
    daemon = Daemon(box).start()
    process = daemon._process
    assert process is not None
    for path in box.state.iterdir():
        path.unlink()
    box.state.rmdir()

    def over() -> bool:
        try:
            return process.poll() is not None or bool(daemon.status()["degraded"])
        except OSError:  # on its way out
            return False

    try:
        wait_until(over, "end, or degraded")
    finally:
        daemon.kill9()


@pytest.mark.parametrize("kind", ["file", "folder", "link", "fifo"])
def test_what_is_no_socket_is_never_unlinked(box: Sandbox, kind: str) -> None:
    """Anything else at the address is left alone, and the daemon says what to do."""
    target = box.root / "mine.txt"
    target.write_text("precious")
    match kind:
        case "file":
            box.socket.write_text("precious")
        case "folder":
            box.socket.mkdir()
        case "link":
            box.socket.symlink_to(target)
        case _:
            os.mkfifo(box.socket)
    before = box.socket.lstat()
    refused(serve(box), "not a socket", str(box.socket))
    after = box.socket.lstat()
    assert (after.st_ino, after.st_mode, after.st_size) == (before.st_ino, before.st_mode, before.st_size)
    assert target.read_text() == "precious"


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o1777])
@pytest.mark.parametrize("which", ["state", "run"])
def test_folders_that_others_may_write_are_refused(box: Sandbox, which: str, mode: int) -> None:
    """Whoever may write the folder may put another socket there."""
    target = box.state if which == "state" else box.socket.parent
    target.chmod(mode)
    refused(serve(box), "others may write", "chmod")
    assert not box.socket.exists()


# --- the parts -------------------------------------------------------------------------------------


@pytest.mark.shows("I45")
def test_the_lock_is_held_once(folder: Path) -> None:
    """The kernel holds the lock; it goes with the file descriptor and names its holder."""
    first, second = Lock(folder / "lock"), Lock(folder / "lock")
    first.acquire()
    with pytest.raises(AlreadyRunning, match=rf"pid {os.getpid()}\b"):
        second.acquire()
    first.release()
    second.acquire()
    assert (folder / "lock").read_text() == f"{os.getpid()}\n"
    second.release()
    second.release()
    assert stat.S_IMODE((folder / "lock").stat().st_mode) == 0o600


def test_a_link_in_place_of_the_lock_is_refused(folder: Path) -> None:
    """Whoever put it there wanted its target to be emptied: it keeps every byte. So does a device."""
    target = folder / "precious"
    target.write_text("mine")
    (folder / "lock").symlink_to(target)
    with pytest.raises(UserError, match="Move it away"):
        Lock(folder / "lock").acquire()
    assert target.read_text() == "mine"
    (folder / "lock").unlink()
    os.mkfifo(folder / "lock")
    with pytest.raises(UserError, match="it is no file"):
        Lock(folder / "lock").acquire()


def test_bind_refuses_a_live_socket(folder: Path) -> None:
    """Also one whose queue is full, or that does not answer."""
    path = folder / "r.sock"
    with socket.socket(socket.AF_UNIX) as live:
        live.bind(str(path))
        live.listen(0)
        inode = path.stat().st_ino
        for _ in range(3):  # each try leaves a connection that nobody accepts
            with pytest.raises(AlreadyRunning, match="does not start"):
                bind(path)
        assert path.stat().st_ino == inode


def test_only_our_own_socket_is_removed(folder: Path) -> None:
    """A daemon that ends late does not take its successor's socket away."""
    path = folder / "r.sock"
    with bind(path):
        inode = path.stat().st_ino
        remove(path, inode + 1)
        assert path.exists()
        remove(path, inode)
        assert not path.exists()
    path.write_text("not a socket")
    remove(path, path.stat().st_ino)
    assert path.exists()
