"""A host on the real socket, for tests of the real daemon: raw requests, and an order stream in a thread."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Self

from harness.machine.waiting import PATIENCE_S

Json = dict[str, Any]


class Answer(NamedTuple):
    """What came back: ``status`` is 0 when the connection just closed."""

    status: int
    body: bytes

    @property
    def json(self) -> Json:
        found: Json = json.loads(self.body)
        return found


def send(
    path: Path,
    method: str,
    route: str,
    body: object = None,
    headers: dict[str, str] | None = None,
) -> Answer:
    """One HTTP request; ``bytes`` go out as they are, anything else as JSON."""
    data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    lines = {"Host": "reflectd", "Content-Length": str(len(data))} | (headers or {})
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return raw(path, f"{method} {route} HTTP/1.1\r\n{head}\r\n".encode() + data)


def raw(path: Path, data: bytes, *, half_close: bool = False) -> Answer:
    """Bytes on the wire, and the one answer they get."""
    with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as s:
        s.settimeout(PATIENCE_S)
        s.connect(str(path))
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # refused before all was sent
            s.sendall(data)
            if half_close:
                s.shutdown(socket.SHUT_WR)
        method = data[:4].decode("latin-1").strip()
        with contextlib.closing(http.client.HTTPResponse(s, method=method)) as response:
            try:
                response.begin()
                return Answer(response.status, response.read())
            except (http.client.BadStatusLine, ConnectionResetError):
                return Answer(0, b"")


class WireHost:
    """Says hello, reads its order stream in a thread, answers each order by ``answer`` (None: no result)."""

    def __init__(
        self,
        path: Path,
        directory: Path | str,
        answer: Callable[[Json], Json | None] = lambda _order: None,
        instance: str = "host-1",
    ) -> None:
        self.path, self.directory, self.instance = path, str(directory), instance
        self.answer = answer
        self.orders: list[Json] = []
        self.seq = 0
        self._socket: socket.socket | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self.connect()

    def __exit__(self, *_: object) -> None:
        self.disconnect()

    def connect(self) -> Self:
        """Hello and the order stream, as the shim does it."""
        self.hello()
        s = self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        s.settimeout(None)  # silence is no fault
        s.connect(str(self.path))
        s.sendall(f"GET /v1/orders?instance={self.instance} HTTP/1.1\r\nHost: reflectd\r\n\r\n".encode())
        first = threading.Event()
        self._thread = threading.Thread(target=self._read, args=(s, first), daemon=True)
        self._thread.start()
        assert first.wait(PATIENCE_S), "the order stream did not open"
        return self

    def disconnect(self) -> None:
        """The host goes away without a word."""
        if self._socket is not None and self._thread is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
            self._thread.join(PATIENCE_S)
            self._socket.close()
        self._socket = self._thread = None

    def hello(self) -> None:
        body = {"instance": self.instance, "host": "opencode", "mode": "serve", "pid": 1}
        answer = send(self.path, "POST", "/v1/hello", body | {"directory": self.directory})
        assert answer.status == 200, answer

    def event(self, kind: str, **data: Any) -> Json:
        """The next event; not sent yet."""
        self.seq += 1
        return {"seq": self.seq, "t": int(time.time() * 1000), "kind": kind, "data": data}

    def turn(self, session: str, task: str = "msg_1", title: str = "t") -> list[Json]:
        """The events of one turn that just ended."""
        info = {"id": session, "title": title, "directory": self.directory}
        return [
            self.event("session.created", sessionID=session, info=info),
            self.event("chat.message", sessionID=session, messageID=task, human=True),
            self.event("session.idle", sessionID=session),
        ]

    def send(self, events: list[Json]) -> Answer:
        return send(self.path, "POST", "/v1/events", {"instance": self.instance, "events": events})

    def kinds(self, *but: str) -> list[str]:
        """The kinds of the orders that came, without ``but``."""
        return [o["kind"] for o in self.orders if o["kind"] not in but]

    def _read(self, s: socket.socket, first: threading.Event) -> None:
        with contextlib.suppress(OSError, ValueError), contextlib.closing(s.makefile("rb")) as lines:
            for line in lines:
                first.set()
                if line == b"0\r\n":  # the end of a chunked body; the connection stays open
                    return
                if line.startswith(b"{"):
                    order = json.loads(line)
                    self.orders.append(order)
                    result = self.answer(order)
                    if result is not None:
                        body = {"instance": self.instance, "id": order["id"], **result}
                        send(self.path, "POST", "/v1/results", body)


def unfinished(directory: Path | str, **texts: str) -> Callable[[Json], Json | None]:
    """Answers of a host whose agent stopped with a failing test: rules alone give feedback."""
    tool = {
        "type": "tool",
        "id": "p3",
        "callID": "c2",
        "tool": "bash",
        "state": {
            "status": "completed",
            "input": {"command": texts.get("command", "pytest -q")},
            "output": texts.get("output", "2 failed, 3 passed in 0.1s"),
            "exit": 1,
        },
    }
    write = {
        "type": "tool",
        "id": "p2",
        "callID": "c1",
        "tool": "write",
        "state": {
            "status": "completed",
            "input": {"filePath": "a.py", "content": texts.get("content", "x = 1")},
            "output": "ok",
        },
    }

    def text(part: str, name: str, default: str) -> Json:
        return {"type": "text", "id": part, "text": texts.get(name, default)}

    def answer(order: Json) -> Json | None:
        if order["kind"] != "read":
            return {"status": "done"}
        now = int(time.time() * 1000)
        messages = [
            {
                "info": {"id": "msg_1", "role": "user", "time": {"created": now - 900}},
                "parts": [text("p1", "request", "Add a login page with tests")],
            },
            {
                "info": {
                    "id": "msg_2",
                    "role": "assistant",
                    "finish": "stop",
                    "time": {"created": now - 800},
                },
                "parts": [write, tool, text("p4", "final", "All done.")],
            },
        ]
        session = {"id": order["session"], "title": texts.get("title", "t"), "directory": str(directory)}
        todos = [{"content": texts["todo"], "status": "pending"}] if "todo" in texts else []
        data = {"missing": False, "busy": False, "session": session, "messages": messages, "todos": todos}
        return {"status": "done", "data": data}

    return answer
