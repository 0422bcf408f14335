"""sd_notify: a real daemon tells a real socket how it is."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator

import pytest

from daemon.service.notify import Notifier, without
from harness.machine import processes
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import Sandbox, sandbox


@pytest.fixture
def box() -> Iterator[Sandbox]:
    with sandbox() as box, processes.none_left_over():
        yield box


def listen(address: str) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    sock.settimeout(60)
    sock.bind(f"\0{address[1:]}" if address.startswith("@") else address)
    return sock


@pytest.mark.parametrize("kind", ["path", "abstract"])
def test_a_daemon_tells_its_life(box: Sandbox, kind: str) -> None:
    """Ready when the socket serves, signs of life from the loop, stopping when it drains."""
    address = f"@reflectd-test-{box.root.name}" if kind == "abstract" else str(box.root / "notify")
    daemon = Daemon(box)
    with listen(address) as manager:
        daemon.start(NOTIFY_SOCKET=address, WATCHDOG_USEC="200000")
        try:
            told: list[str] = []
            while "READY=1" not in told:
                told += manager.recv(4096).decode().splitlines()
            assert "STATUS=starting" in told
            assert f"STATUS=0 hosts connected, socket {box.socket}" in told
            assert daemon.status()["pid"]  # what READY promised
            told = [manager.recv(4096).decode() for _ in range(3)]
            assert told == ["WATCHDOG=1"] * 3
            assert daemon.stop() == 0
            while "STOPPING=1" not in told:
                told += manager.recv(4096).decode().splitlines()
            assert set(told) == {"WATCHDOG=1", "STOPPING=1", "STATUS=stopping"}
        finally:
            daemon.kill9()


def test_a_manager_that_is_gone_disturbs_nobody(box: Sandbox) -> None:
    """When nobody reads its messages, the daemon serves and ends as usual."""
    with Daemon(box, NOTIFY_SOCKET=str(box.root / "nobody"), WATCHDOG_USEC="100000") as daemon:
        assert daemon.status()["degraded"] == ""
        assert daemon.stop() == 0
        assert "Traceback" not in daemon.log()


def test_a_hung_loop_says_nothing_and_shows_where_it_hangs(box: Sandbox) -> None:
    """The watchdog's SIGABRT leaves the stack of each thread in the log, and no process."""
    daemon = Daemon(box, NOTIFY_SOCKET=str(box.root / "nobody"), WATCHDOG_USEC="60000000").start()
    process = daemon._process
    assert process is not None
    process.send_signal(signal.SIGABRT)
    assert process.wait(60) == -signal.SIGABRT
    daemon.kill9()
    assert "Fatal Python error: Aborted" in daemon.log()
    assert "most recent call first" in daemon.log()


def test_wrong_settings_are_told_and_not_tried_again(box: Sandbox) -> None:
    """The exit code is the one that the unit does not restart on, and the status names the mistake."""
    address = str(box.root / "notify")
    with listen(address) as manager:
        daemon = Daemon(box, NOTIFY_SOCKET=address, REFLECTD_JUDGE_MODE="maybe")
        with pytest.raises(AssertionError, match="ended with 2"):
            daemon.start()
        assert "judge.mode" in manager.recv(4096).decode()


@pytest.mark.parametrize(
    ("env", "every_s"),
    [
        ({"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "3000000"}, 1.5),
        ({"NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "77"}, 1.5),
        ({"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "78"}, None),
        ({"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "soon"}, None),
        ({"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "0"}, None),
        ({"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "9" * 400}, None),
        ({"NOTIFY_SOCKET": "/x"}, None),
        ({"NOTIFY_SOCKET": "vsock:2:1", "WATCHDOG_USEC": "3000000"}, None),
        ({"WATCHDOG_USEC": "3000000"}, None),
        ({}, None),
    ],
)
def test_the_variables_are_taken(env: dict[str, str], every_s: float | None) -> None:
    """The variables are removed; the pause is half of WatchdogSec=; a senseless value counts as missing."""
    env |= {"PATH": "/bin"}
    assert Notifier.from_environment(env, 77).every_s == every_s
    assert env == {"PATH": "/bin"}


def test_who_starts_a_daemon_hands_nothing_on() -> None:
    """A host that is itself a service: its manager's variables do not reach our daemon."""
    env = {"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "1", "LISTEN_FDS": "1", "LISTEN_PID": "1", "A": "b"}
    assert without(env) == {"A": "b"}


def test_a_status_is_one_short_line_and_sent_once(box: Sandbox) -> None:
    """A line break in a text does not become a message of its own."""
    address = str(box.root / "notify")
    with listen(address) as manager:
        notifier = Notifier(address)
        notifier.status("bad\nWATCHDOG=trigger\n" + "x" * 5000)
        notifier.status("bad\nWATCHDOG=trigger\n" + "x" * 5000)
        notifier.status("end")
        first, second = manager.recv(9000).decode(), manager.recv(9000).decode()
    assert first.startswith("STATUS=bad WATCHDOG=trigger xxx")
    assert "\n" not in first
    assert len(first) < 400
    assert second == "STATUS=end"
