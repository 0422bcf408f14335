"""Requests made from the schemas, and then bent: every one gets an answer in time, and none is a bug."""

from __future__ import annotations

import json
import random
import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attack.outcome import SHOWN, Deadline, Outcome
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import REPO, sandbox

THREADS = 8
ANSWER_S = 150.0  # a Stop hook waits for its verdict
PULSE_S = 10.0  # how long the daemon may take for `status` at any time
POSTS = ("hello", "events", "results", "ask", "switch")
HOOKS = (
    "SessionStart", "UserPromptSubmit", "Stop", "SubagentStop", "SessionEnd", "Notification", "PreCompact",
    "PostToolUse", "StopFailure", "Nonsense",
)  # fmt: skip
KINDS = (
    "session.created", "session.updated", "session.deleted", "session.status", "session.idle",
    "session.error", "message.error", "session.compacted", "chat.message", "permission.asked",
    "question.asked", "permission.replied", "question.replied", "question.rejected", "activity", "tool",
    "judge.created", "dispose", "nonsense",
)  # fmt: skip
TEXTS = (
    "", "known", "ses_a", "ses_b", "msg_1", "done", "busy", "idle", "run", "gate", "settle", "shell",
    "MessageAbortedError", "💥", "\x00", "\ud800", "../..", "%s", "'; --", "a" * 300, "x" * 20_000,
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**53, 2**63, -(2**64), 1.5, 1e308, "", "x", [], {}, [None], [[]], [{}],
    {"": {}}, {"a": [1]}, [1, "2", {}],
)  # fmt: skip
FIELDS = (
    "sessionID", "messageID", "id", "requestID", "info", "status", "error", "agent", "human", "order",
    "bytes", "tool", "call", "result", "failed", "title", "parentID", "directory", "type", "name", "message",
)  # fmt: skip
HOOK_FIELDS = (
    "session_id", "prompt", "prompt_id", "last_assistant_message", "background_tasks", "source", "error",
    "notification_type", "message", "permission_mode", "agent_id", "agent_type", "reason", "session_title",
    "stop_hook_active", "session_crons", "promptSource", "commandMode",
)  # fmt: skip
QUERIES = (
    "/v1/status", "/v1/sessions", "/v1/verdicts", "/v1/why", "/v1/orders", "/v1/stream",
    "/v1/features/compaction/x", "/v1/hello", "/", "/v2/status", "/v1/%ff%00", "/v1/hooks/Stop",
)  # fmt: skip
PARAMETERS = ("session", "limit", "directory", "by", "since", "instance", "strict", "")


@dataclass(slots=True)
class Shared:
    """What all threads have in common."""

    socket: Path
    folder: Path
    wanted: int
    deadline: Deadline
    schemas: dict[str, Any]
    lock: threading.Lock = field(default_factory=threading.Lock)
    begun: int = 0
    statuses: dict[int, int] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)
    slowest: tuple[float, str] = (0.0, "")
    pulse: float = 0.0

    def next(self) -> bool:
        with self.lock:
            if self.begun >= self.wanted or self.deadline.over or len(self.findings) >= SHOWN:
                return False
            self.begun += 1
            return True


class Maker:
    """Makes one request after the other, from a seed."""

    def __init__(self, shared: Shared, seed: str) -> None:
        self.rng = random.Random(seed)
        self._shared = shared
        self._seq = 0
        folder = shared.folder
        self._paths = (
            "",
            "relative",
            str(folder),
            str(folder / "none"),
            str(folder / "file"),
            "/" + "x" * 5_000,
        )

    def request(self) -> tuple[str, bytes]:
        """A name for people, and the bytes."""
        x = self.rng.random()
        if x < 0.15:
            return self._get()
        if x < 0.25:
            return self._hook()
        route = self.rng.choice(POSTS)
        body = self._events() if route == "events" else self.value(self._shared.schemas[route])
        if isinstance(body, dict) and "instance" in body and self.rng.random() < 0.8:
            body["instance"] = "known"
        if isinstance(body, dict) and "directory" in body:
            body["directory"] = self.rng.choice(self._paths)
        if self.rng.random() < 0.5:
            body = self.bend(body)
        return self._post(f"/v1/{route}", body)

    def value(self, schema: dict[str, Any]) -> Any:
        """One that the schema allows."""
        rng = self.rng
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return rng.choice(schema["enum"])
        kind = schema.get("type")
        if isinstance(kind, list):
            kind = rng.choice(kind)
        if kind == "object":
            needed = set(schema.get("required", ()))
            return {
                name: self.value(inner)
                for name, inner in schema.get("properties", {}).items()
                if name in needed or rng.random() < 0.5
            }
        if kind == "array":
            return [self.value(schema.get("items", {})) for _ in range(rng.randint(0, 4))]
        if kind in {"integer", "number"}:
            least, most = schema.get("minimum", 0), schema.get("maximum", 2**53)
            return rng.choice((least, most, rng.randint(least, most)))
        if kind == "boolean":
            return rng.random() < 0.5
        if kind == "string":
            return rng.choice(TEXTS)
        if kind == "null":
            return None
        return self.payload()

    def payload(self, depth: int = 0) -> Any:
        """A host's own data: known fields with any values."""
        rng = self.rng
        if depth > 2 or rng.random() < 0.3:
            return rng.choice(VALUES) if rng.random() < 0.4 else rng.choice(TEXTS)
        names = rng.sample(FIELDS, rng.randint(0, 6))
        found = {name: self.payload(depth + 1) for name in names}
        known = {"sessionID": "ses_a", "messageID": "msg_1"}
        found |= {name: text for name, text in known.items() if rng.random() < 0.7}
        if "directory" in found:
            found["directory"] = rng.choice(self._paths)
        return found

    def bend(self, value: Any) -> Any:
        """Change something somewhere in it."""
        rng = self.rng
        if isinstance(value, dict) and value and rng.random() < 0.8:
            name = rng.choice(list(value))
            if name == "directory":
                return value
            x = rng.random()
            if x < 0.2:
                return {k: v for k, v in value.items() if k != name}
            if x < 0.3:
                return {**value, rng.choice(TEXTS): rng.choice(VALUES)}
            return {**value, name: self.bend(value[name])}
        if isinstance(value, list) and value and rng.random() < 0.7:
            at = rng.randrange(len(value))
            return [*value[:at], self.bend(value[at]), *value[at + 1 :]] * rng.choice((1, 1, 1, 60))
        return rng.choice(VALUES) if rng.random() < 0.6 else rng.choice(TEXTS)

    def _events(self) -> Any:
        events = []
        for _ in range(self.rng.randint(0, 5)):
            self._seq += 1
            now = int(time.time() * 1000)
            kind = self.rng.choice(KINDS)
            events.append({"seq": self._seq, "t": now, "kind": kind, "data": self.payload()})
        return {"instance": "known", "events": events}

    def _hook(self) -> tuple[str, bytes]:
        rng = self.rng
        event = rng.choice(HOOKS)
        names = rng.sample(HOOK_FIELDS, rng.randint(0, 8))
        body: Any = {name: rng.choice(VALUES) if rng.random() < 0.5 else rng.choice(TEXTS) for name in names}
        body |= {"session_id": rng.choice(("claude_a", "claude_b", "", 7)), "hook_event_name": event}
        body |= {"cwd": rng.choice(self._paths), "transcript_path": rng.choice(self._paths)}
        if event == "Stop" and rng.random() < 0.9:  # one that waits for its text takes seconds
            body["last_assistant_message"] = ""
        strict = "?strict=1" if rng.random() < 0.2 else ""
        more = {"X-CC-Project": rng.choice(self._paths[:5]), "X-CC-Attended": rng.choice(("0", "1", "x"))}
        more |= {"X-CC-Pid": rng.choice(("0", "-1", "x", "99999999999999999999"))}
        return self._post(f"/v1/hooks/{event}{strict}", body, **more)

    def _get(self) -> tuple[str, bytes]:
        rng, route = self.rng, self.rng.choice(QUERIES)
        values = ("1", "0", "-1", "500", "501", "x", "", "ses_a", "day", "%00", "%ff", "/", "9" * 30, "known")
        given = [f"{rng.choice(PARAMETERS)}={rng.choice(values)}" for _ in range(rng.randint(0, 3))]
        path = route + ("?" + "&".join(given) if given else "")
        method = rng.choice(("GET",) * 8 + ("POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"))
        head = f"{method} {path} HTTP/1.1\r\nHost: reflectd\r\nConnection: close\r\n".encode()
        odd = (b"Expect: \xff", b"Origin: x", b"Host: evil", b"Accept: \xf0\x9f", b"X: " + b"a" * 5_000)
        if rng.random() < 0.2:
            head += rng.choice(odd) + b"\r\n"
        return f"{method} {path}", head + b"Content-Length: 0\r\n\r\n"

    def _post(self, path: str, body: Any, **headers: str) -> tuple[str, bytes]:
        data = json.dumps(body).encode()
        if self.rng.random() < 0.05 and data:
            at = self.rng.randrange(len(data))
            data = data[:at] + bytes([self.rng.randrange(256)]) + data[at + 1 :]
        lines = {"Host": "reflectd", "Connection": "close", "Content-Length": str(len(data))}
        lines |= headers
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        return f"POST {path} {data[:300]!r}", f"POST {path} HTTP/1.1\r\n{head}\r\n".encode() + data


def ask(path: Path, request: bytes) -> tuple[int, bytes]:
    """Status and the beginning of the answer; 0 when there is none. Of an endless one only that is read."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        s.settimeout(ANSWER_S)
        s.connect(str(path))
        with suppress(BrokenPipeError, ConnectionResetError):
            s.sendall(request)
        found = b""
        while b"\r\n\r\n" not in found:
            try:
                got = s.recv(65_536)
            except ConnectionResetError:
                got = b""
            if not got:
                break
            found += got
        return (int(found.split(b" ", 2)[1]), found) if found.startswith(b"HTTP/1.") else (0, found)


def work(shared: Shared, seed: str) -> None:
    maker = Maker(shared, seed)
    while shared.next():
        name, request = maker.request()
        began = time.monotonic()
        try:
            status, answer = ask(shared.socket, request)
        except TimeoutError:
            status, answer = -1, b"no answer in time"
        except OSError as e:
            status, answer = -1, str(e).encode()
        took = time.monotonic() - began
        with shared.lock:
            shared.statuses[status] = shared.statuses.get(status, 0) + 1
            shared.slowest = max(shared.slowest, (took, name))
            if status in {-1, 0, 500}:
                shared.findings.append(f"{name}: {status} {answer[:200]!r}")


def pulse(shared: Shared, stop: threading.Event) -> None:
    """Asks for the status all the time: nothing may hold the daemon."""
    request = b"GET /v1/status HTTP/1.1\r\nHost: reflectd\r\nConnection: close\r\n\r\n"
    while not stop.wait(0.2):
        began = time.monotonic()
        with suppress(OSError):
            ask(shared.socket, request)
        shared.pulse = max(shared.pulse, time.monotonic() - began)


def run(requests: int, seed: int, deadline: Deadline) -> Outcome:
    found = Outcome("api", requests)
    folder = REPO / "design" / "schemas"
    schemas = {name: json.loads((folder / f"{name}.schema.json").read_text("utf-8")) for name in POSTS}
    with sandbox() as box, Daemon(box) as daemon:
        (box.project / "file").write_text("no transcript\n")
        shared = Shared(box.socket, box.project, requests, deadline, schemas)
        hello = {"instance": "known", "host": "opencode", "mode": "serve", "pid": 1}
        daemon.call("POST", "/v1/hello", hello | {"directory": str(box.project)})
        stop = threading.Event()
        beside = threading.Thread(target=pulse, args=(shared, stop), daemon=True)
        beside.start()
        threads = [
            threading.Thread(target=work, args=(shared, f"{seed} {n}"), daemon=True) for n in range(THREADS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        stop.set()
        beside.join()
        found.done = shared.begun
        found.findings += shared.findings
        if shared.pulse > PULSE_S:
            found.findings.append(f"the daemon was silent for {shared.pulse:.1f} s")
        try:
            daemon.status()
        except (OSError, AssertionError) as e:
            found.findings.append(f"the daemon does not answer any more: {e}")
        found.check_log(daemon)
        counts = ", ".join(f"{n} of {status}" for status, n in sorted(shared.statuses.items()))
        took, name = shared.slowest
        found.figures = f"{counts}; slowest {took:.1f} s ({name[:40]}); silent {shared.pulse:.2f} s at most"
    return found
