"""``reflectd service`` with ``service_report`` where no service manager can be asked; with a real one:
``tests/service/test_user_manager``.
"""

from __future__ import annotations

import argparse
import json
import plistlib
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from daemon.cli.control import service
from daemon.service import manager, units
from harness.machine import processes
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import REPO, Sandbox, sandbox

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def box() -> Iterator[Sandbox]:
    with sandbox() as box, processes.none_left_over():
        yield box


def reflectd(box: Sandbox, *args: str, code: int, **env: str) -> str:
    """What it says. There is no systemctl on its PATH."""
    done = subprocess.run(
        [sys.executable, "-m", "daemon", "service", *args],
        env=box.env(PYTHONPATH=str(REPO), PATH="/nonexistent") | env,
        cwd=box.home,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode == code, done
    return done.stdout if "--json" in args else done.stdout + done.stderr


def folder(box: Sandbox) -> Path:
    return box.home / ".config" / "systemd" / "user"


linux_only = pytest.mark.skipif(sys.platform == "darwin", reason="systemd's files")


@linux_only
def test_the_files_come_and_go(box: Sandbox) -> None:
    """Without a manager the files are written all the same, and it says what to run; exit code 1."""
    assert "not installed" in reflectd(box, "status", code=3)
    said = reflectd(box, "install", code=1)
    assert "systemctl --user enable --now reflectd.socket" in said
    assert "no systemctl on PATH" in said
    assert sorted(p.name for p in folder(box).iterdir()) == ["reflectd.service", "reflectd.socket"]
    assert f"ListenStream={box.socket}\n" in (folder(box) / "reflectd.socket").read_text()
    assert f" {box.state}\n" in (folder(box) / "reflectd.service").read_text()
    assert (box.state / "socket").read_text() == f"{box.socket}\n"
    status = json.loads(reflectd(box, "status", "--json", code=0))
    assert [f["state"] for f in status["files"]] == ["current", "current"]
    assert status["unreachable"] == "there is no systemctl on PATH"
    assert "differs" in reflectd(box, "status", code=0, REFLECTD_SOCKET=str(box.root / "run" / "o.sock"))
    said = reflectd(box, "uninstall", code=1)
    assert "systemctl --user disable --now reflectd.socket" in said
    assert not (box.home / ".config" / "systemd").exists()
    assert not (box.state / "socket").exists()
    assert "nothing to do" in reflectd(box, "uninstall", code=0)


@linux_only
def test_a_dry_run_does_nothing(box: Sandbox) -> None:
    """It shows the files and the commands, in words and as JSON, and writes nothing."""
    before = sorted(p for p in box.root.rglob("*"))
    said = reflectd(box, "install", "--dry-run", code=0)
    assert "[Socket]" in said
    assert "would run:" in said
    shown = json.loads(reflectd(box, "install", "--dry-run", "--json", code=0))
    assert [f["state"] for f in shown["files"]] == ["missing", "missing"]
    assert "Type=notify" in shown["files"][0]["text"]
    assert "nothing to do" in reflectd(box, "uninstall", "--dry-run", code=0)
    assert sorted(p for p in box.root.rglob("*")) == before
    reflectd(box, "install", code=1)
    assert "would remove" in reflectd(box, "uninstall", "--dry-run", code=0)
    assert (folder(box) / "reflectd.socket").exists()


@linux_only
def test_a_running_daemon_is_left_alone_without_a_manager(box: Sandbox) -> None:
    """No manager would start another daemon, so this one goes on, and its address file stays."""
    with Daemon(box) as daemon:
        reflectd(box, "install", code=1)
        assert daemon.status()["pid"]
        reflectd(box, "uninstall", code=1)
        assert (box.state / "socket").read_text() == f"{box.socket}\n"
        assert daemon.status()["pid"]


@linux_only
def test_what_a_service_does_not_see_is_said(box: Sandbox) -> None:
    """Keys and settings of this shell never get into a file that others can read; the person is told."""
    said = reflectd(box, "install", code=1, OPENAI_API_KEY="sk-" + "x" * 40, REFLECTD_LOG_LEVEL="error")
    assert "openai.key_file" in said
    assert "REFLECTD_LOG_LEVEL" in said
    texts = [p.read_text() for p in folder(box).iterdir()]
    assert [t for t in texts if "sk-" in t or "LOG_LEVEL" in t] == []
    kept = "openai.key_file" in reflectd(
        box, "install", code=1, OPENAI_API_KEY="x", REFLECTD_OPENAI_KEY_FILE="/k"
    )
    assert not kept


@linux_only
def test_another_settings_folder_is_kept(box: Sandbox) -> None:
    """A service manager does not know this shell's XDG_CONFIG_HOME; the unit says it."""
    config = box.home / "my config"
    reflectd(box, "install", code=1, XDG_CONFIG_HOME=str(config))
    unit = (config / "systemd" / "user" / "reflectd.service").read_text()
    assert f'Environment="XDG_CONFIG_HOME={config}"\n' in unit


def test_wrong_settings(box: Sandbox) -> None:
    """`install` refuses wrong settings; `uninstall` works with them all the same."""
    assert "judge.mode" in reflectd(box, "install", code=2, REFLECTD_JUDGE_MODE="maybe")
    reflectd(box, "install", code=1)
    assert "removed" in reflectd(box, "uninstall", code=1, REFLECTD_JUDGE_MODE="maybe")


@linux_only
def test_a_folder_that_cannot_be_written(box: Sandbox) -> None:
    """The file system refuses: exit code 1, with the path."""
    (box.home / ".config" / "systemd").write_text("a file")
    assert str(folder(box)) in reflectd(box, "install", code=1)


def run(
    box: Sandbox, here: manager.Manager, action: str, capsys: pytest.CaptureFixture[str]
) -> dict[str, Any]:
    """The verb in this process, with another system's manager."""
    parser = argparse.ArgumentParser()
    service.add_parser(parser.add_subparsers(dest="verb", required=True))
    where = ["--socket", str(box.socket), "--state-dir", str(box.state)]
    args = parser.parse_args(["service", action, "--json", *where])
    service.run(args, env=box.env(PATH="/nonexistent"), here=here)
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_the_files_of_macos(box: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    """The same round trip for launchd: its folder, its file, its commands."""
    here = manager.here(box.env(PATH="/nonexistent"), "darwin")
    path = box.home / "Library" / "LaunchAgents" / units.FILE
    done = run(box, here, "install", capsys)
    assert done["by_hand"] == list(here.up_by_hand)
    assert "launchctl bootstrap gui/" in done["by_hand"][0]
    assert plistlib.loads(path.read_bytes())["Label"] == units.LABEL
    assert run(box, here, "status", capsys)["files"] == [{"path": str(path), "state": "current"}]
    assert run(box, here, "uninstall", capsys)["files"] == [{"path": str(path), "state": "removed"}]
    assert not path.exists()
