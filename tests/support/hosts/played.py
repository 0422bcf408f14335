"""Plays recorded sessions to a real daemon on its socket, stop by stop, as the hosts did when they ran."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from harness.machine.reflectd import Daemon
from harness.machine.waiting import wait_until
from tests.support.hosts.wire import Answer, WireHost, send

Json = dict[str, Any]
ORDER = re.compile(rb"rfl_[0-9a-f]{20}")


class PlayedClaude:
    """One session of Claude Code. Its file grows line by line, and its hooks are called where it had them."""

    def __init__(self, daemon: Daemon, lines: list[bytes], path: Path) -> None:
        self.daemon, self.path = daemon, path
        self._lines = lines
        self._known = [json.loads(line) for line in lines]
        self.session = next(str(line["sessionId"]) for line in self._known if "sessionId" in line)
        path.parent.mkdir(parents=True, exist_ok=True)

    def play(self) -> list[Json]:
        """All of it. The verdicts, oldest first."""
        self.hook("SessionStart", source="startup")
        for at, line in enumerate(self._known):
            self._prompted(line)
            with self.path.open("ab") as file:
                file.write(self._lines[at] + b"\n")
            if self._ends(at):
                self._stop(at)
        return self.daemon.verdicts(self.session)[::-1]

    def _prompted(self, line: Json) -> None:
        said = (line.get("message") or {}).get("content") if line["type"] == "user" else None
        if isinstance(said, str) and not line.get("isMeta"):
            self.hook("UserPromptSubmit", prompt=said, prompt_id=line.get("promptId", ""))

    def _ends(self, at: int) -> bool:
        """Whether the line is the last one of an answer that ends its turn."""
        line = self._known[at]
        if line["type"] != "assistant" or line["message"]["stop_reason"] != "end_turn":
            return False
        answer = line["message"]["id"]
        return not any((x.get("message") or {}).get("id") == answer for x in self._known[at + 1 :])

    def _stop(self, at: int) -> None:
        content = self._known[at]["message"]["content"]
        text = content if isinstance(content, str) else "".join(b.get("text", "") for b in content)
        heard = self.hook("Stop", last_assistant_message=text, background_tasks=self._running(at))
        if heard.status == 422 and (found := ORDER.search(heard.body)):
            rest = [ORDER.sub(found[0], line) for line in self._lines[at + 1 :]]
            self._lines[at + 1 :] = rest

    def _running(self, at: int) -> list[Json]:
        """What runs in the background: a shell or a sub-agent of which the file tells later that it ended."""
        told = b"".join(self._lines[at + 1 :])
        found = []
        for line in self._known[:at]:
            own = line.get("toolUseResult")
            own = own if isinstance(own, dict) else {}
            for kind, key in (("shell", "backgroundTaskId"), ("subagent", "agentId")):
                name = str(own.get(key, ""))
                if name and f"<task-id>{name}".encode() in told:
                    found.append({"id": name, "type": kind, "status": "running", "command": "make test"})
        return found

    def hook(self, event: str, **fields: Any) -> Answer:
        """Call a hook, as the plugin does."""
        project = str(self.daemon.box.project)
        body = {
            "session_id": self.session,
            "transcript_path": str(self.path),
            "cwd": project,
            "hook_event_name": event,
            "session_crons": [],
            **fields,
        }
        headers = {"X-CC-Entrypoint": "cli", "X-CC-Project": project, "X-CC-Attended": "1"}
        headers["X-CC-Pid"] = str(os.getpid())
        answer = send(self.daemon.box.socket, "POST", f"/v1/hooks/{event}", body, headers)
        assert answer.status in {200, 204, 422}, answer
        return answer


def play_export(daemon: Daemon, export: Json) -> list[Json]:
    """A session of opencode: its messages up to each stop, in the form in which the plugin reads them."""
    info, messages = export["info"], [shim_form(m) for m in export["messages"]]
    known: list[Json] = []
    project = str(daemon.box.project)

    def answer(order: Json) -> Json | None:
        if order["kind"] == "feedback":  # in the session's messages it is the part with this order
            for part in (p for m in messages for p in m["parts"] if p["order"]):
                part["order"] = order["id"]
        if order["kind"] != "read":
            return {"status": "done"}
        session = {**info, "directory": project}
        return {"status": "done", "data": {"session": session, "messages": list(known), "todos": []}}

    with WireHost(daemon.box.socket, daemon.box.project, answer) as host:
        for at, m in enumerate(messages):
            known.append(m)
            if m["info"]["role"] == "user" and not any(p["order"] for p in m["parts"]):
                told = {"sessionID": info["id"], "messageID": m["info"]["id"], "human": True}
                host.send([
                    host.event("session.created", sessionID=info["id"], info={**info, "directory": project}),
                    host.event("chat.message", **told),
                ])  # fmt: skip
            if m["info"].get("finish") == "stop":
                host.send([host.event("session.status", sessionID=info["id"], status={"type": "busy"})])
                host.send([host.event("session.idle", sessionID=info["id"])])
                turn = m["info"]["id"]
                wait_until(
                    lambda turn=turn: turn in _turns(daemon, info["id"]), f"verdict of {at}", daemon.log
                )
    return daemon.verdicts(info["id"])[::-1]


def _turns(daemon: Daemon, session: str) -> set[str]:
    return {v["turn"] for v in daemon.verdicts(session)}


def shim_form(message: Json) -> Json:
    """A message of an export as the plugin's ``read`` gives it."""
    info = message["info"]
    parts = []
    for part in message["parts"]:
        order = ((part.get("metadata") or {}).get("reflectd") or {}).get("order")
        state = part.get("state") or {}
        more = {"exit": (state.get("metadata") or {}).get("exit")} | {
            k: (state.get("time") or {}).get(k) for k in ("start", "end")
        }
        parts.append({**part, "order": order, **({"state": {**state, **more}} if state else {})})
    model = info.get("model") or {}
    return {
        "info": {"providerID": model.get("providerID"), "modelID": model.get("modelID"), **info},
        "parts": parts,
    }
