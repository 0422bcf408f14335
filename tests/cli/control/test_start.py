"""``reflectd start`` and ``reflectd stop``, which a person uses together. ``serve`` is tested in
``tests/e2e`` and ``tests/server``, with what it serves.
"""

from __future__ import annotations

import threading

import psutil
import pytest

from harness.machine.sandbox import Sandbox
from harness.machine.waiting import wait_until
from tests.support.machine.command_line import Done, reflectd, said


@pytest.mark.shows("I45")
def test_start_status_stop(box: Sandbox) -> None:
    """Start, start again, status, stop, stop again; nothing is left, and the log is there to read."""
    said(reflectd(box, "status"), 3, "not running", "reflectd start")
    text = said(reflectd(box, "start"), 0, "started", "reflectd.log")
    pid = int(text.partition("pid ")[2].partition(")")[0])
    assert psutil.pid_exists(pid)
    said(reflectd(box, "start"), 0, "runs already", f"pid {pid}")
    said(reflectd(box, "serve"), 2, "runs already", f"pid {pid}")
    said(reflectd(box, "status"), 0, f"pid {pid}", "the rules")
    wait_until((box.state / "reflectd.log").exists, "the first line, which follows the first answer")
    said(reflectd(box, "logs"), 0, "started")
    assert len(reflectd(box, "logs", "-n", "1").stdout.splitlines()) == 1
    assert reflectd(box, "logs", "-n", "0").stdout == ""
    said(reflectd(box, "stop"), 0, f"stopped (pid {pid})")
    said(reflectd(box, "stop"), 0, "not running")
    said(reflectd(box, "status"), 3)
    said(reflectd(box, "logs"), 0, "stopped")


def test_started_three_times_at_once(box: Sandbox) -> None:
    """Several shells start it at the same moment: there is one daemon, and each shell says that it runs."""
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
    """``start`` prints why the daemon could not start, in the daemon's words, and fails."""
    (box.state / "reflectd.sqlite3").mkdir()
    done = reflectd(box, "start")
    assert done.returncode in {1, 2}
    said(done, done.returncode, "did not start", "reflectd.sqlite3")


@pytest.mark.shows("I46")
@pytest.mark.parametrize("provider", ["auto", "anthropic"])
def test_a_host_brings_no_key(box: Sandbox, provider: str) -> None:
    """A daemon that a host starts runs without the key of its environment, and says what allows the key; one
    that a person starts takes it.
    """
    env = {"ANTHROPIC_API_KEY": "k", "REFLECTD_JUDGE_PROVIDER": provider}
    said(reflectd(box, "start", "--from-shim", **env), 0, "started")
    text = said(reflectd(box, "status", **env), 0, "`reflectd setup claude-code --judge anthropic`")
    assert "Anthropic's API" not in text
    said(reflectd(box, "stop"), 0)
    said(reflectd(box, "start", **env), 0, "started")
    assert "--judge anthropic" not in said(reflectd(box, "status", **env), 0, "Anthropic's API")
    said(reflectd(box, "stop"), 0)
