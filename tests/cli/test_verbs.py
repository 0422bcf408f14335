"""The command line in a real process: what each verb says, and its exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import psutil
import pytest

from daemon.cli.main import VERBS
from tests.support import processes
from tests.support.reflectd import Daemon
from tests.support.sandbox import REPO, Sandbox, sandbox
from tests.support.waiting import wait_until
from tests.support.wire_host import WireHost

if TYPE_CHECKING:
    from collections.abc import Iterator

Done = subprocess.CompletedProcess[str]


@pytest.fixture
def box() -> Iterator[Sandbox]:
    with sandbox() as box, processes.none_left_over():
        yield box
        reflectd(box, "stop")


def reflectd(box: Sandbox, *args: str, **env: str) -> Done:
    """One command; it never shows a trace."""
    done = subprocess.run(
        [sys.executable, "-m", "daemon", *args],
        env=box.env(PYTHONPATH=str(REPO)) | env,
        cwd=box.project,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=40,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


def said(done: Done, code: int, *words: str) -> str:
    """The exit code is ``code`` and the words are there."""
    text = done.stdout + done.stderr
    assert done.returncode == code, done
    for word in words:
        assert word in text
    return text


def test_start_status_stop(box: Sandbox) -> None:
    """I45: start, start again, status, stop, stop again; nothing is left, and the log is there to read."""
    said(reflectd(box, "status"), 3, "not running", "reflectd start")
    text = said(reflectd(box, "start"), 0, "started", "reflectd.log")
    pid = int(text.partition("pid ")[2].partition(")")[0])
    assert psutil.pid_exists(pid)
    said(reflectd(box, "start"), 0, "runs already", f"pid {pid}")
    said(reflectd(box, "serve"), 2, "runs already", f"pid {pid}")
    said(reflectd(box, "status"), 0, f"pid {pid}", str(box.socket), str(box.state), "offline")
    said(reflectd(box, "logs"), 0, "started")
    assert len(reflectd(box, "logs", "-n", "1").stdout.splitlines()) == 1
    assert reflectd(box, "logs", "-n", "0").stdout == ""
    said(reflectd(box, "stop"), 0, f"stopped (pid {pid})")
    said(reflectd(box, "stop"), 0, "not running")
    said(reflectd(box, "status"), 3)
    said(reflectd(box, "logs"), 0, "stopped")


def test_status_as_json(box: Sandbox) -> None:
    """``status --json`` is an object, running or not; exit codes 0 and 3."""
    done = reflectd(box, "status", "--json")
    assert (done.returncode, json.loads(done.stdout)["running"]) == (3, False)
    with Daemon(box) as daemon, WireHost(box.socket, box.project) as host:
        host.send(host.turn("ses_listed", title="A title"))
        done = reflectd(box, "status", "--json")
        found = json.loads(done.stdout)
        assert (done.returncode, found["running"], found["pid"]) == (0, True, daemon.status()["pid"])
        assert [s["session"] for s in found["sessions_shown"]] == ["ses_listed"]
        said(reflectd(box, "status"), 0, "ses_listed", "A title", str(box.project))


def test_started_three_times_at_once(box: Sandbox) -> None:
    """DESIGN §7: several shells start it at the same moment: one daemon, and all are told it runs."""
    found: list[Done] = []
    threads = [threading.Thread(target=lambda: found.append(reflectd(box, "start"))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [d.returncode for d in found] == [0, 0, 0], found
    assert sum("started" in d.stdout for d in found) == 1
    assert sum("runs already" in d.stdout for d in found) == 2


def test_start_says_why_it_failed(box: Sandbox) -> None:
    """A daemon that can't start is told in its own words, and ``start`` ends with a failure."""
    (box.state / "reflectd.sqlite3").mkdir()
    done = reflectd(box, "start")
    assert done.returncode in {1, 2}
    said(done, done.returncode, "did not start", "reflectd.sqlite3")


def test_on_and_off(box: Sandbox) -> None:
    """I40: a project or a session is switched off and on, over a restart; siblings are not touched."""
    with Daemon(box) as daemon, WireHost(box.socket, box.project) as host:
        host.send(host.turn("ses_one"))
        host.send(host.turn("ses_two"))
        said(reflectd(box, "off", "--session", "ses_one"), 0, "off for session ses_one")
        assert [daemon.session(s)["off"] for s in ("ses_one", "ses_two")] == [True, False]
        daemon.restart()
        assert [daemon.session(s)["off"] for s in ("ses_one", "ses_two")] == [True, False]
        said(reflectd(box, "on", "--session", "ses_one"), 0, "on for session ses_one")
        said(reflectd(box, "off"), 0, str(box.project))
        assert [daemon.session(s)["off"] for s in ("ses_one", "ses_two")] == [True, True]
        daemon.restart()
        assert daemon.session("ses_two")["off"] is True
        said(reflectd(box, "on", "--dir", str(box.project)), 0)
        assert daemon.session("ses_two")["off"] is False


def test_a_session_known_only_by_its_switch(box: Sandbox) -> None:
    """I40, I42: switched off before its first event and on again, a session is judged as any other."""
    with Daemon(box) as daemon:
        said(reflectd(box, "off", "--session", "ses_early"), 0)
        said(reflectd(box, "on", "--session", "ses_early"), 0)
        with WireHost(box.socket, box.project) as host:
            host.send(host.turn("ses_early"))
            wait_until(lambda: host.kinds() == ["read"], 15, "read", daemon.log)
        daemon.restart()
        host.orders.clear()
        with host:
            wait_until(lambda: host.kinds() == ["read"], 15, "read after the restart", daemon.log)


@pytest.mark.parametrize(
    "args", [["off"], ["on"], ["off", "--session", "ses_x"], ["on", "--dir", "/tmp"]], ids=" ".join
)
def test_switches_need_a_daemon(box: Sandbox, args: list[str]) -> None:
    """Exit code 1: something outside does not work, and what to do about it."""
    said(reflectd(box, *args), 1, "reflectd start")


def test_logs_without_a_log(box: Sandbox) -> None:
    """Exit code 1: where it looked, and what writes one."""
    said(reflectd(box, "logs"), 1, str(box.state / "reflectd.log"), "reflectd start")


@pytest.mark.parametrize("count", ["-1", "99999999999999999999", "x", ""])
def test_odd_numbers_of_lines(box: Sandbox, count: str) -> None:
    """Bad input: no trace, whatever number is asked for."""
    (box.state / "reflectd.log").write_text("one\ntwo\n")
    assert reflectd(box, "logs", "-n", count).returncode in {0, 2}


def test_logs_that_are_no_text(box: Sandbox) -> None:
    """Bad input: bytes that are no UTF-8 are shown as what they are not."""
    (box.state / "reflectd.log").write_bytes(b"\xff\xfe one\nlast line")
    said(reflectd(box, "logs"), 0, "last line")


def test_config(box: Sandbox) -> None:
    """``config`` names every setting, its value and who set it; a project's mistakes are listed."""
    done = reflectd(box, "config", "--judge-timeout-s", "60", REFLECTD_JUDGE_PROVIDER="host")
    said(done, 0, "judge.timeout_s", "--judge-timeout-s", "REFLECTD_JUDGE_PROVIDER", '"host"')
    box.file(".reflection/config.toml", '[judge]\nmode = "observe"\nprovider = "host"\nmoed = 1\n')
    done = reflectd(box, "config", "--json")
    found = json.loads(done.stdout)
    rows = {r["key"]: r for r in found["settings"]}
    assert (rows["judge.mode"]["value"], rows["judge.provider"]["value"]) == ("observe", "offline")
    assert any("may not set judge.provider" in p for p in found["problems"])
    assert any("judge.moed" in p and "judge.mode" in p for p in found["problems"])


@pytest.mark.parametrize("verb", ["status", "start", "serve", "stop", "logs", "config", "off"])
def test_a_wrong_setting_stops_every_verb(box: Sandbox, verb: str) -> None:
    """Exit code 2 with the nearest name, from the file and from the environment."""
    said(reflectd(box, verb, REFLECTD_JUDGE_PROVDER="x"), 2, "REFLECTD_JUDGE_PROVIDER")
    settings = box.home / ".config" / "reflectd" / "config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text('[judge]\nprovder = "offline"\n')
    said(reflectd(box, verb), 2, str(settings), "judge.provider")
    settings.write_text("[judge\n")
    said(reflectd(box, verb), 2, "not valid TOML")
    settings.unlink()


@pytest.mark.parametrize(
    "args",
    [
        ["nonsense"],
        ["--nonsense"],
        ["status", "--nonsense"],
        ["serve", "--judge-timeout-s", "soon"],
        ["config", "--judge-mode", "maybe"],
        ["status", "--socket", "relative.sock"],
        ["status", "--socket", "/" + "x" * 200],
        ["off", "--session", "s", "--dir", "d"],
    ],
    ids=" ".join,
)
def test_wrong_arguments(box: Sandbox, args: list[str]) -> None:
    """Exit code 2."""
    said(reflectd(box, *args), 2)


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_help_of_each_verb(box: Sandbox, verb: str) -> None:
    """Every verb explains itself, whatever the settings are."""
    said(reflectd(box, verb, "--help", REFLECTD_JUDGE_PROVDER="x"), 0, f"reflectd {verb}")


def test_help_and_version(box: Sandbox) -> None:
    """Without a verb there is help; all verbs are in it."""
    for args in ([], ["--help"]):
        said(reflectd(box, *args), 0, *VERBS, "exit codes")
    said(reflectd(box, "--version"), 0, "reflectd ")


@pytest.mark.parametrize(
    "args", [["--help"], ["config"], ["config", "--json"], ["status", "--json"], ["logs"]], ids=" ".join
)
def test_nobody_reads_the_output(box: Sandbox, args: list[str]) -> None:
    """``reflectd … | head -0``: a closed pipe is no error worth a message."""
    (box.state / "reflectd.log").write_text("a line\n" * 50_000)
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "daemon", *args],
            env=box.env(PYTHONPATH=str(REPO)),
            cwd=box.project,
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            timeout=40,
            check=False,
        )
    finally:
        os.close(writer)
    assert done.stderr == ""
    assert done.returncode in {0, 3, 141}
