"""Requests to the real daemon, and what must hold after each of them."""

from __future__ import annotations

from typing import Any

from harness.machine.reflectd import Daemon
from tests.support.hosts.wire import Answer, Json, send

KEY = "sk-ant-api03-" + "Zz9" * 20
HELLO = {"instance": "i", "host": "opencode", "mode": "serve", "pid": 1, "directory": "/tmp"}
BATCH = {"instance": "known", "events": []}


def check_alive(daemon: Daemon) -> None:
    assert daemon.status()["degraded"] == ""
    fine(daemon, "POST", "/v1/hello", HELLO | {"instance": "check"})
    wire = event("activity", sessionID="ses_check", bytes=1)
    fine(daemon, "POST", "/v1/events", {"instance": "check", "events": [wire]})
    daemon.new_log()


def hello(daemon: Daemon, instance: str) -> None:
    fine(daemon, "POST", "/v1/hello", HELLO | {"instance": instance, "directory": str(daemon.box.project)})


def clean(answer: Answer) -> Answer:
    """No answer shows our insides, or a key of our environment."""
    for never in (b"Traceback", b'File "', b".py", KEY.encode()):
        assert never not in answer.body
    return answer


def fine(daemon: Daemon, method: str, route: str, body: object = None) -> Json:
    answer = clean(send(daemon.box.socket, method, route, body))
    assert answer.status == 200, answer
    return answer.json


def refused(daemon: Daemon, status: int, method: str, route: str, body: object = None, **headers: str) -> str:
    """The words of a refusal: JSON that names the API version."""
    answer = clean(send(daemon.box.socket, method, route, body, headers))
    assert answer.status == status, answer
    assert answer.json["api"] == 1
    words: str = answer.json["error"]
    return words


def event(kind: str, seq: int = 1, t: int = 1_700_000_000_000, **data: Any) -> Json:
    return {"seq": seq, "t": t, "kind": kind, "data": data}


def batch(*events: object, instance: str = "known") -> Json:
    return {"instance": instance, "events": list(events)}
