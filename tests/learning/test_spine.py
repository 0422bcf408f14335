"""The loop of learning with a real daemon and a host on its socket, which lends its model."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

from harness.machine.processes import none_left_over
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import Sandbox, sandbox
from harness.machine.waiting import wait_until
from tests.support.hosts.wire import Json, WireHost, send

TEXT = "The tests need a running database, else all of them fail."
LINE = f"[ctx-001] helpful=0 harmful=0 :: {TEXT}"
ADD = {"type": "ADD", "section": "PROJECT CONTEXT", "text": TEXT}
EARNED = 5_000_000
ROLES = {"You look back": "reflector", "You keep the playbook": "curator"}


@pytest.fixture
def box() -> Iterator[Sandbox]:
    with sandbox() as box, none_left_over():
        yield box


def learns(box: Sandbox) -> Daemon:
    return Daemon(
        box,
        REFLECTD_JUDGE_PROVIDER="host",
        REFLECTD_PLAYBOOK_ENABLED="true",
        REFLECTD_SPEND_TOKENS_PER_DAY="900000000",
    )


class Desk:
    """What the host answers: the same work in each session, and what its model says by who asks."""

    def __init__(self, box: Sandbox) -> None:
        self.box = box
        self.says: dict[str, list[Json]] = {"reflector": [], "curator": []}
        self.asked: list[tuple[str, str]] = []
        self.final = "All done."

    def __call__(self, order: Json) -> Json | None:
        if order["kind"] == "read":
            return {"status": "done", "data": self._messages(order["session"])}
        if order["kind"] == "providers":
            return {"status": "done", "data": {"providers": []}}
        if order["kind"] != "evaluate":
            return {"status": "done"}
        system, text = order["data"]["system"], order["data"]["text"]
        role = next((name for begins, name in ROLES.items() if system.startswith(begins)), "judge")
        self.asked.append((role, text))
        said = {"complete": True, "severity": "NONE"} if role == "judge" else self.says[role].pop(0)
        nonce = re.search(r"^The marker of this data is (\w+)\.$", text, re.MULTILINE)
        assert nonce is not None
        data = {"text": json.dumps({"nonce": nonce[1], **said}), "session": "ses_judge"}
        if role == "judge":
            data["tokens"] = {"input": EARNED, "output": 10}
        return {"status": "done", "data": data}

    def _messages(self, session: str) -> Json:
        now = int(time.time() * 1000)

        def call(i: int, command: str) -> Json:
            state = {"status": "completed", "input": {"command": command}, "output": "ok", "exit": 0}
            return {"type": "tool", "id": f"p{i}", "callID": f"c{i}", "tool": "bash", "state": state}

        request = {"info": {"id": "msg_1", "role": "user", "time": {"created": now - 900}}}
        answer = {"id": "msg_2", "role": "assistant", "finish": "stop", "time": {"created": now - 800}}
        parts = [call(i, c) for i, c in enumerate(("ls", "make db", "pytest -q"))]
        return {
            "missing": False,
            "busy": False,
            "session": {"id": session, "title": "t", "directory": str(self.box.project)},
            "messages": [
                {**request, "parts": [{"type": "text", "id": "p9", "text": "Run the tests of this project"}]},
                {"info": answer, "parts": [*parts, {"type": "text", "id": "p8", "text": self.final}]},
            ],
            "todos": [],
        }

    def points(self) -> dict[str, Any]:
        file = self.box.project / ".reflection" / "playbook.json"
        found = json.loads(file.read_text())["sections"] if file.exists() else {}
        return {p["name"]: p for section in found.values() for p in section}


def given(host: WireHost, session: str) -> str:
    """What the shim is answered before the session's first request."""
    body = {"instance": host.instance, "what": "context", "data": {"sessionID": session}}
    answer = send(host.path, "POST", "/v1/ask", body)
    assert answer.status == 200, answer
    return str(answer.json["text"])


@pytest.mark.shows("LEARN-01")
def test_cited_judged_reflected_curated_confirmed_and_offered(box: Sandbox) -> None:
    """Four sessions: one teaches, one confirms, one is given the point and cites it, one reads its count. No
    session is prompted, and a restart in between forgets nothing.
    """
    desk = Desk(box)

    def session(name: str, reflector: Json, *operations: Json) -> str:
        desk.says["reflector"].append({"analysis": "a", "bullet_tags": [], "confirmed": [], **reflector})
        desk.says["curator"].append({"reasoning": "r", "operations": list(operations)})
        host.send(host.turn(name)[:1])
        text = given(host, name)
        host.send(host.turn(name))
        daemon.wait_verdict(name, "complete")
        host.send([host.event("session.deleted", sessionID=name)])
        wait_until(lambda: not any(desk.says.values()), f"the look back on {name}", daemon.log)
        wait_until(lambda: "playbook.learn" not in daemon.status()["jobs"], "its end", daemon.log)
        return text

    with learns(box) as daemon, WireHost(box.socket, box.project, desk) as host:
        assert session("ses_1", {}, ADD) == ""
        assert desk.points() == {}
        confirmed = [{"name": "new-1", "cites": "A2"}]
        assert session("ses_2", {"confirmed": confirmed}) == ""
        assert [p["text"] for p in desk.points().values()] == [TEXT]
        orders = host.kinds("read", "evaluate", "toast", "providers")
    with learns(box) as daemon, WireHost(box.socket, box.project, desk, instance="host-2") as host:
        desk.final = "As [ctx-001] says, I ran make db first. All done."
        tag = {"name": "ctx-001", "tag": "helpful", "rationale": "It was followed."}
        host.send(host.turn("ses_3")[:1])
        wait_until(lambda: LINE in given(host, "ses_3"), "the point in what is given", daemon.log)
        assert LINE in session("ses_3", {"bullet_tags": [tag, tag]})
        assert any(role == "reflector" and "(cited) [ctx-001]" in text for role, text in desk.asked)
        assert desk.points()["ctx-001"]["helpful"] == 1, "once a session, however often it is told"
        host.send(host.turn("ses_4")[:1])
        assert f"[ctx-001] helpful=1 harmful=0 :: {TEXT}" in given(host, "ses_4")
        assert given(host, "ses_4") == given(host, "ses_4"), "the same bytes"
        assert orders + host.kinds("read", "evaluate", "toast", "providers") == []
