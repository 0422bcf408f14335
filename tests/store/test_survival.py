"""The real daemon on a full disk, killed, with a corrupt file: nothing acknowledged is lost or doubled."""

from __future__ import annotations

import resource
import sqlite3
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.machine import processes
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import Sandbox, sandbox
from harness.machine.waiting import wait_until
from tests.support.hosts.wire import Json, WireHost, send, unfinished
from tests.support.hosts.witness import a_later_host

if TYPE_CHECKING:
    from collections.abc import Iterator

needs_prlimit = pytest.mark.skipif(
    not hasattr(resource, "prlimit"), reason="only Linux can limit another process"
)
SECRETS = (
    "sk-ant-api03-" + "Ab1" * 20,
    "ghp_" + "a1B2" * 9,
    "AKIA" + "ABCD1234" * 2,
    "xoxb-" + "1234567890-abcdefABCDEF",
    "hunter2-correct-horse-battery",
)


@pytest.fixture
def box() -> Iterator[Sandbox]:
    with sandbox() as box, processes.none_left_over():
        yield box


@pytest.fixture
def daemon(box: Sandbox) -> Iterator[Daemon]:
    daemon = Daemon(box).start()
    yield daemon
    daemon.kill9()


def full(daemon: Daemon, *, yes: bool) -> None:
    """No file of the daemon may grow: as a full disk or quota, for any user, on any file system."""
    pid = daemon.status()["pid"]
    _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0 if yes else hard, hard))


def rows(box: Sandbox, sql: str) -> list[tuple[object, ...]]:
    c = sqlite3.connect(f"file:{box.state / 'reflectd.sqlite3'}?mode=ro", uri=True)
    try:
        return c.execute(sql).fetchall()
    finally:
        c.close()


@needs_prlimit
def test_a_full_disk_refuses_and_forgets_nothing(box: Sandbox, daemon: Daemon) -> None:
    """Bad input, full disk: events answer 503, no order leaves, ``status`` says so; afterwards the same batch
    is taken and judged once.
    """
    with WireHost(box.socket, box.project, unfinished(box.project)) as host:
        first = host.turn("ses_before")
        assert host.send(first).status == 200
        daemon.wait_verdict("ses_before", "incomplete")
        orders = len(host.orders)
        full(daemon, yes=True)
        batch = host.turn("ses_full")
        for _ in range(3):
            answer = host.send(batch)
            assert answer.status == 503
            assert "database" in answer.json["error"]
        assert "database" in daemon.status()["degraded"]
        full(daemon, yes=False)
        assert len(host.orders) == orders, "no order left meanwhile"
        answer = host.send(batch)
        assert (answer.status, answer.json["seq"]) == (200, host.seq)
        daemon.wait_verdict("ses_full", "incomplete")
        assert host.send(batch).status == 200
        a_later_host(daemon)
        assert host.kinds("read").count("feedback") == 2, "one feedback for each"
        assert daemon.status()["degraded"] == ""
        assert daemon.session("ses_full")["attempts"] == 1
        assert len(daemon.verdicts("ses_full")) == 1
    daemon.new_log()


@needs_prlimit
def test_the_disk_fills_while_judging(box: Sandbox, daemon: Daemon) -> None:
    """A decision that can't be stored sends nothing; with room again the session goes on."""
    ordinary = unfinished(box.project)

    def answer(order: Json) -> Json | None:
        if order["kind"] == "read" and order["session"] == "ses_mid":
            full(daemon, yes=True)
        return ordinary(order)

    with WireHost(box.socket, box.project, answer) as host:
        host.send(host.turn("ses_mid"))
        wait_until(lambda: daemon.status()["degraded"], "degraded", daemon.log)
        assert host.kinds() == ["read"]
        host.answer = ordinary
        full(daemon, yes=False)
        idle = host.event("session.idle", sessionID="ses_mid")
        assert host.send([idle]).status == 200
        wait_until(
            lambda: daemon.session("ses_mid")["phase"] not in {"open", "judging"}, "an end", daemon.log
        )
        wait_until(  # counted with the decision, a moment before the order arrives
            lambda: daemon.session("ses_mid")["attempts"] == host.kinds("read").count("feedback") <= 1,
            "as many attempts as prompts",
        )
        host.send(host.turn("ses_next"))
        daemon.wait_verdict("ses_next", "incomplete")
        assert daemon.status()["degraded"] == ""
    daemon.new_log()


@pytest.mark.shows("I21", "I42")
def test_files_that_can_not_be_written_are_written_later(box: Sandbox, daemon: Daemon) -> None:
    """A verdict whose file found no place gets it at the next start; ``status`` says what is wrong, and stops
    saying so when files can be written again.
    """
    blocked = [box.project / ".reflection", box.state / "workspaces"]
    for path in blocked:
        path.write_text("in the way")
    with WireHost(box.socket, box.project, unfinished(box.project)) as host:
        host.send(host.turn("ses_blocked"))
        wait_until(lambda: daemon.verdicts("ses_blocked"), "verdict", daemon.log)
        wait_until(lambda: "verdict files" in daemon.status()["degraded"], "degraded")
        for path in blocked:
            path.unlink()
        host.send(host.turn("ses_after", "msg_1"))
        daemon.wait_verdict("ses_after", "incomplete")
        wait_until(lambda: daemon.status()["degraded"] == "", "all is well")
    daemon.restart()
    daemon.wait_verdict("ses_blocked", "incomplete")


@pytest.mark.shows("I35", "I42")
def test_killed_between_commits(box: Sandbox, daemon: Daemon) -> None:
    """kill -9 while events flow: what was acknowledged is there, what is sent again counts once."""
    host = WireHost(box.socket, box.project)
    host.hello()
    acknowledged = 0
    for round_ in range(4):
        stop = threading.Timer(0.15 + round_ * 0.07, daemon.kill9)
        stop.start()
        pending: list[Json] = []
        try:
            while True:
                session = f"ses_{host.seq:06d}"
                info = {"id": session, "title": session, "directory": str(box.project)}
                pending = [host.event("session.created", sessionID=session, info=info) for _ in range(3)]
                answer = host.send(pending)
                if answer.status != 200:
                    break
                acknowledged = answer.json["seq"]
        except OSError:
            pass
        stop.join()
        daemon.start()
        host.hello()
        assert host.send([]).json["seq"] >= acknowledged
        assert host.send(pending).json["seq"] == host.seq
    sessions = {s for (s,) in rows(box, "SELECT id FROM sessions")}
    assert sessions == {f"ses_{n:06d}" for n in range(0, host.seq, 3)}
    assert rows(box, "SELECT seq FROM instances") == [(host.seq,)]


@pytest.mark.shows("I42")
def test_a_turn_left_judging_is_judged_after_a_restart(box: Sandbox, daemon: Daemon) -> None:
    """The host comes back with hello and a new stream, and its open turn is read again."""
    with WireHost(box.socket, box.project) as host:  # reads are never answered
        host.send(host.turn("ses_left"))
        wait_until(lambda: host.kinds() == ["read"], "read", daemon.log)
        daemon.kill9()
    daemon.start()
    host.orders.clear()
    host.answer = unfinished(box.project)
    with host:
        wait_until(lambda: "feedback" in host.kinds(), "feedback", daemon.log)
        daemon.wait_verdict("ses_left", "incomplete")
        a_later_host(daemon)
        assert host.kinds("read") == ["feedback"], "one feedback"


def found_in(root: Path, secrets: tuple[str, ...]) -> list[str]:
    """Files under ``root`` that hold one of these."""
    hits = []
    for path in root.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            hits += [f"{s[:8]}… in {path.relative_to(root)}" for s in secrets if s.encode() in data]
    return hits


@pytest.mark.shows("I46")
@pytest.mark.parametrize("debug", ["", "1"])
def test_secrets_stay_out_of_everything(box: Sandbox, debug: str) -> None:
    """Keys in texts, commands, outputs, titles, todos and errors reach no file, log or answer."""
    anthropic, github, aws, slack, password = SECRETS
    texts = {
        "request": f"Add login with tests. My key is {anthropic}, DB_PASSWORD={password}",
        "command": f"API_TOKEN={github} pytest -q --aws {aws}",
        "output": f"E  auth failed: {slack}\npassword: {password}\n2 failed, 1 passed in 0.1s\n{anthropic}",
        "content": f"KEY = '{aws}'",
        "final": f"I used {anthropic}. Next steps:\n1. export SLACK={slack}",
        "title": f"Login {github} {slack}",
        "todo": f"rotate {aws} and {anthropic}",
    }
    daemon = Daemon(box, REFLECTION_DEBUG=debug).start()
    try:
        with WireHost(box.socket, box.project, unfinished(box.project, **texts)) as host:
            error = {"name": "APIError", "message": f"401: bad key {anthropic} {slack}"}
            extra = [
                host.event("session.error", sessionID="ses_secret", error=error),
                host.event("message.error", sessionID="ses_secret", messageID="m", error=error),
                host.event(f"kind {github}", sessionID="ses_secret"),
            ]
            host.send(host.turn("ses_secret", title=texts["title"]) + extra)
            daemon.wait_verdict("ses_secret", "incomplete")
            (order,) = [o for o in host.orders if o["kind"] == "feedback"]
            result = {"instance": "host-1", "id": "unknown", "status": "failed", "error": f"no {github}"}
            assert send(box.socket, "POST", "/v1/results", result).status == 200
            for route in ("/v1/sessions", "/v1/verdicts", "/v1/status"):
                body = send(box.socket, "GET", route).body
                assert not [s for s in SECRETS if s.encode() in body], route
            assert not [s for s in SECRETS if s in str(order)]
            assert found_in(box.root, SECRETS) == []
        daemon.stop()
        assert found_in(box.root, SECRETS) == []
    finally:
        daemon.kill9()
