"""``manager`` with a real, unprivileged systemd user manager: installed, killed, stopped, removed."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.machine import processes
from harness.machine.sandbox import sandbox
from harness.machine.waiting import wait_until
from tests.service.user_manager import UserManager, user_manager, why_not

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or "it can")
CONNECT = "import socket, sys; s = socket.socket(1); s.settimeout(60); s.connect(sys.argv[1]); s.recv(1)"


@pytest.fixture
def manager() -> Iterator[UserManager]:
    with sandbox() as box, processes.none_left_over(), user_manager(box) as found:
        yield found


def tree(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*")} - {".config"}


@pytest.mark.shows("I45")
def test_install_and_uninstall(manager: UserManager) -> None:
    """One command installs it and it answers, also twice; one takes it back and nothing is left."""
    before = tree(manager.box.home)
    manager.reflectd("service", "status", code=3)
    assert "answers on /run/user/0/reflectd/reflectd.sock" in manager.reflectd("service", "install")
    assert manager.get("UnitFileState", "reflectd.socket") == "enabled"
    pid = manager.get("MainPID")
    assert f"(pid {pid})" in manager.reflectd("service", "install"), "it was disturbed"
    status = json.loads(manager.reflectd("service", "status", "--json"))
    assert [f["state"] for f in status["files"]] == ["current", "current"]
    assert status["units"]["reflectd.service"]["MainPID"] == pid
    assert "hosts connected" in manager.get("StatusText")
    assert "installed, systemd runs it" in manager.reflectd("doctor")
    manager.reflectd("service", "uninstall")
    assert manager.get("LoadState") == "not-found"
    assert manager.run("ls", "/run/user/0/reflectd").returncode == 2
    left = {p for p in tree(manager.box.home) - before if not p.startswith(".local")}
    assert left == set()
    assert not (manager.state / "socket").exists()
    assert "nothing to do" in manager.reflectd("service", "uninstall")


def test_hostile_paths() -> None:
    """Spaces, specifiers and variables in every path, quotes in our own: systemd starts exactly that."""
    with sandbox() as box, processes.none_left_over():
        odd = box.root / "a b%h$HOME ${X}"
        odd.mkdir()
        (odd / "venv").symlink_to(Path(sys.executable).parents[1])
        python = str(odd / "venv" / "bin" / Path(sys.executable).name)
        with user_manager(box, python) as manager:
            state = odd / "it's \"\\ state"
            manager.reflectd("service", "install", "--state-dir", str(state))
            assert (state / "reflectd.sqlite3").exists()
            (line,) = (x for x in manager.get("ExecStart").split(" ; ") if "path=" in x)
            assert line.removeprefix("{ path=") == python
            manager.reflectd("service", "uninstall", "--state-dir", str(state))


@pytest.mark.shows("I45")
def test_a_daemon_that_a_host_started_makes_room(manager: UserManager) -> None:
    """One daemon per user while the service comes; the plugin's start asks the service."""
    manager.reflectd("start", "--from-shim")
    assert "stopped the daemon that ran without the service" in manager.reflectd("service", "install")
    pid = manager.get("MainPID")
    assert f"runs already (pid {pid})" in manager.reflectd("start", "--from-shim")
    manager.systemctl("stop", "reflectd.socket", "reflectd.service")
    assert "started as a service" in manager.reflectd("start", "--from-shim")
    assert f"(pid {manager.get('MainPID')}" in manager.reflectd("status")


@pytest.mark.parametrize("reachable", [True, False])
def test_stop_holds(manager: UserManager, reachable: bool) -> None:
    """A host that connects after `reflectd stop` starts nothing, whether systemd could be asked or not."""
    manager.reflectd("service", "install")
    env = {} if reachable else {"PATH": "/nonexistent"}
    assert "stopped (pid" in manager.reflectd("stop", **env)
    manager.run(sys.executable, "-c", CONNECT, "/run/user/0/reflectd/reflectd.sock")
    assert manager.get("ActiveState") == "inactive"
    assert "was stopped" in manager.reflectd("start", "--from-shim")
    assert "started as a service" in manager.reflectd("start")
    assert manager.get("ActiveState") == "active"


@pytest.mark.shows("I45")
def test_it_is_restarted_when_killed_and_when_it_hangs(manager: UserManager) -> None:
    """A daemon that dies or whose event loop hangs comes back by itself."""
    manager.reflectd("service", "install")
    drop_in = manager.units / "reflectd.service.d" / "fast.conf"
    drop_in.parent.mkdir()
    drop_in.write_text("[Service]\nRestartSec=0\nWatchdogSec=2\n")
    manager.systemctl("daemon-reload")
    manager.systemctl("restart", "reflectd.service")
    for count, how in ((1, signal.SIGKILL), (2, signal.SIGSTOP)):
        assert manager.run("kill", f"-{how.value}", manager.get("MainPID")).returncode == 0
        wait_until(lambda n=count: manager.get("NRestarts") == str(n), f"restart after {how.name}")
        wait_until(lambda: manager.get("ActiveState") == "active", "the new one")
    assert str(drop_in.parent) in manager.reflectd("service", "uninstall")
    assert drop_in.exists()


@pytest.mark.shows("I45")
def test_a_restart_and_an_upgrade_under_systemd(manager: UserManager) -> None:
    """`restart` has systemd start a process; after a daemon that left, who connects first gets the next."""
    manager.reflectd("service", "install")
    drop_in = manager.units / "reflectd.service.d" / "fast.conf"
    drop_in.parent.mkdir()
    drop_in.write_text("[Service]\nWatchdogSec=20\n")
    manager.systemctl("daemon-reload")
    first = json.loads(manager.reflectd("status", "--json"))
    assert "restarted as a service" in manager.reflectd("restart")
    second = json.loads(manager.reflectd("status", "--json"))
    assert first["pid"] != second["pid"] == int(manager.get("MainPID"))
    assert manager.run("kill", "-TERM", str(second["pid"])).returncode == 0  # as it ends when it leaves
    wait_until(lambda: manager.get("ActiveState") == "inactive", "its end")
    assert manager.get("ActiveState", "reflectd.socket") == "active"
    third = json.loads(manager.reflectd("status", "--json"))
    assert third["pid"] not in {first["pid"], second["pid"]}
    wait_until(lambda: "hosts connected" in manager.get("StatusText"), "its own words")
    assert [manager.get(name) for name in ("ActiveState", "SubState", "MainPID", "NRestarts")] == [
        "active",
        "running",
        str(third["pid"]),
        "0",
    ]
    assert "stopped" in manager.reflectd("stop")
    assert manager.get("ActiveState") == "inactive"
    manager.reflectd("service", "uninstall")


def test_a_start_that_always_fails_ends(manager: UserManager) -> None:
    """systemd stops trying wrong settings and refuses hosts; `start` works once they are mended."""
    manager.reflectd("service", "install")
    manager.systemctl("stop", "reflectd.service")
    settings = manager.box.home / ".config" / "reflectd" / "config.toml"
    settings.parent.mkdir()
    settings.write_text("nonsense = 1\n")
    manager.run(sys.executable, "-c", CONNECT, "/run/user/0/reflectd/reflectd.sock")
    wait_until(lambda: manager.get("ActiveState", "reflectd.socket") == "failed", "end of it")
    assert manager.get("NRestarts") == "0"
    assert "unknown setting nonsense" in manager.get("StatusText")
    assert "failed" in manager.reflectd("service", "status")
    manager.run(sys.executable, "-c", CONNECT, "/run/user/0/reflectd/reflectd.sock")
    assert manager.get("ActiveState") == "failed"
    settings.unlink()
    assert "started as a service" in manager.reflectd("start")


@pytest.mark.shows("I43")
def test_an_edited_unit_is_kept(manager: UserManager) -> None:
    """What a person wrote is set aside, and they are told where."""
    manager.reflectd("service", "install")
    for args in (("install",), ("uninstall",)):
        unit = manager.units / "reflectd.service"
        unit.write_text(unit.read_text() + f"# mine {args}\n")
        assert "was edited" in manager.reflectd("service", "status")
        kept = json.loads(manager.reflectd("service", *args, "--json"))["files"][0]["kept"]
        assert f"# mine {args}" in Path(kept).read_text()


def test_the_socket_is_deleted(manager: UserManager) -> None:
    """A daemon whose socket was deleted ends; the next start makes the socket and starts a daemon."""
    manager.reflectd("service", "install")
    manager.run("rm", "/run/user/0/reflectd/reflectd.sock")
    wait_until(lambda: manager.get("ActiveState") == "inactive", "its end")
    assert "started as a service" in manager.reflectd("start", "--from-shim")


def test_the_hardening_is_in_force(manager: UserManager) -> None:
    """The filters are set without privileges, and the daemon can still write its files."""
    manager.reflectd("service", "install")
    status = manager.run("cat", f"/proc/{manager.get('MainPID')}/status").stdout
    assert "Seccomp:\t2" in status
    assert "NoNewPrivs:\t1" in status
    assert (manager.state / "reflectd.sqlite3").stat().st_mode & 0o777 == 0o600
    assert manager.get("LimitCORE") == "0"
