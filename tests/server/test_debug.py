"""Debug logs: on the daemon, or for one host whose hello carries `REFLECTION_DEBUG=1`."""

from __future__ import annotations

from harness.machine.reflectd import Daemon
from harness.machine.sandbox import sandbox
from harness.machine.waiting import wait_until


def idle(daemon: Daemon, instance: str, *, debug: bool) -> str:
    """One host whose judge session goes idle (a decision without a host to read from); the new log."""
    daemon.mark()
    hello = {"instance": instance, "host": "opencode", "mode": "serve", "pid": 1, "directory": "/tmp"}
    daemon.call("POST", "/v1/hello", {**hello, "debug": debug})
    events = [
        {"seq": 1, "t": 1, "kind": "judge.created", "data": {"sessionID": f"ses_{instance}"}},
        {"seq": 2, "t": 2, "kind": "session.idle", "data": {"sessionID": f"ses_{instance}"}},
    ]
    daemon.call("POST", "/v1/events", {"instance": instance, "events": events})
    wait_until(lambda: "skipped" in daemon.new_log(), "decision in the log", daemon.log)
    return daemon.new_log()


def test_debug_of_one_host() -> None:
    """REFLECTION_DEBUG on a host: its decisions are logged with their reason, its neighbour's stay short."""
    with sandbox() as box, Daemon(box) as daemon:
        quiet = idle(daemon, "quiet", debug=False)
        loud = idle(daemon, "loud", debug=True)
        log = daemon.log()
    assert "SessionIdled" not in quiet
    assert "SessionIdled" in loud
    for name in ("quiet", "loud"):
        said = [line for line in log.splitlines() if f"ses_{name}" in line and "skipped" in line]
        assert len(said) == 1, "every decision and its reason is in the log at any level"
        assert "judge_session" in said[0]
