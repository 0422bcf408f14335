"""``reflectd logs``: the end of the file, of what was rotated away and of the journal; what comes later."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from daemon.cli.control.logs import journal
from daemon.core.errors import Unavailable
from harness.machine import processes
from harness.machine.sandbox import Sandbox
from harness.machine.waiting import wait_until
from tests.support.machine.command_line import COMMAND, environment, reflectd, said


def test_the_last_lines_of_the_log(box: Sandbox) -> None:
    """No log is exit code 1, with where it looked and what writes one; else the last lines, of what was
    rotated away too. Bytes that are not UTF-8 are replaced, and a terminal obeys nothing in them.
    """
    said(reflectd(box, "logs"), 1, str(box.state / "reflectd.log"), "reflectd start")
    (box.state / "reflectd.log.1").write_text("old\nolder \x1b[2J\n")
    (box.state / "reflectd.log").write_bytes(b"\xff\xfe one\nlast line")
    assert reflectd(box, "logs").stdout == "old\nolder \\x1b[2J\n\ufffd\ufffd one\nlast line\n"
    assert reflectd(box, "logs", "-n", "2").stdout == "\ufffd\ufffd one\nlast line\n"


def test_logs_of_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The service's own lines, as `journalctl` shows them and with its exit code."""
    program = tmp_path / "journalctl"
    program.write_text('#!/bin/sh\necho "$@"\nexit 4\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert journal(7, follow=False) == 4
    assert journal(0, follow=True) == 4
    shown, followed = capfd.readouterr().out.splitlines()
    assert shown == "--user --no-pager --unit=reflectd.service --lines=7"
    assert followed == "--user --no-pager --unit=reflectd.service --lines=0 --follow"
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    with pytest.raises(Unavailable, match="journalctl cannot be started"):
        journal(1, follow=False)


def test_logs_go_on_as_lines_come(box: Sandbox) -> None:
    """``--follow``: the last lines, then what comes, and after the file was rotated what the new one gets."""
    path = box.state / "reflectd.log"
    path.write_text("first\nbad\n")
    out = box.root / "logs.out"
    with out.open("wb") as file:
        following = processes.start(
            [*COMMAND, "logs", "-f", "-n", "1"], environment(box), box.project, file, file
        )
    try:
        wait_until(lambda: "bad" in out.read_text(), "the last line", out.read_text)
        with path.open("a") as file_now:
            file_now.write("worse\n")
        wait_until(lambda: "worse" in out.read_text(), "a new line", out.read_text)
        path.rename(path.with_name("reflectd.log.1"))
        path.write_text("worst\n")
        wait_until(lambda: "worst" in out.read_text(), "the new file", out.read_text)
        following.send_signal(signal.SIGINT)
        assert following.wait(60) == 130
    finally:
        processes.end_group(following, gently=0)
    assert "first" not in out.read_text()
