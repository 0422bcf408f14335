"""What watching costs: 1,000 sessions of one host that work and say nothing, each with its deadline."""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
from pathlib import Path

from bench.stand import Connection, Json, Server, Table

SESSIONS = 1_000
BATCH = 500
DUE_S = 35.0  # after so much silence a session is looked at


def idle_cpu(*, quick: bool) -> Table:
    """CPU of the daemon: nobody there, 1,000 sessions watched, and while each of them is looked at."""
    window_s = 3.0 if quick else 20.0
    table = Table(f"Watching {SESSIONS:,} silent sessions", ("", "seconds", "CPU"))
    with tempfile.TemporaryDirectory(prefix="rdb-") as name:
        folder = Path(name).resolve()
        workspace = folder / "w"
        workspace.mkdir()
        with Server(folder / "d") as server, Connection(server.socket) as events:
            time.sleep(2.0)  # start-up work is over
            _row(table, server, "idle, nobody connected", window_s)
            hello = {"api": 1, "instance": "bench", "host": "opencode", "mode": "serve", "pid": os.getpid()}
            events.post("/v1/hello", {**hello, "directory": str(workspace)})
            host = _Answers(server.socket, workspace)
            host.start()
            began = time.perf_counter()
            _work(events, workspace)
            _row(table, server, "watched, nothing due", window_s)
            if not quick:
                time.sleep(max(0.0, began + DUE_S - 1.0 - time.perf_counter()))
                _row(table, server, "each looked at once", 60.0)
                _row(table, server, "the minute after", 60.0)
                table.notes.append(f"messages read for them: {host.reads}")
    table.notes.append("aim: under 1 % watched")
    return table


def _row(table: Table, server: Server, what: str, seconds: float) -> None:
    before, began = server.cpu(), time.perf_counter()
    time.sleep(seconds)
    share = (server.cpu() - before) / (time.perf_counter() - began) * 100
    table.rows.append((what, f"{seconds:.0f}", f"{share:.2f} %"))
    table.values[what] = share


def _work(events: Connection, workspace: Path) -> None:
    """1,000 sessions begin to work."""
    seq, now, batch = 0, int(time.time() * 1000), list[Json]()
    for n in range(SESSIONS):
        session = _id(n)
        info = {"id": session, "title": "t", "directory": str(workspace)}
        for kind, data in (
            ("session.created", {"info": info}),
            ("chat.message", {"messageID": "msg_1", "agent": "build", "human": True}),
            ("session.status", {"status": {"type": "busy"}}),
        ):
            seq += 1
            batch.append({"seq": seq, "t": now, "kind": kind, "data": {"sessionID": session, **data}})
        if len(batch) > BATCH - 3:
            events.post("/v1/events", {"instance": "bench", "events": batch})
            batch = []
    if batch:
        events.post("/v1/events", {"instance": "bench", "events": batch})


def _id(n: int) -> str:
    return f"ses_{n:06d}"


class _Answers(threading.Thread):
    """The host: answers each read with a session whose shell call runs."""

    def __init__(self, socket: Path, workspace: Path) -> None:
        super().__init__(daemon=True)
        self._socket, self._workspace = socket, workspace
        self.reads = 0

    def run(self) -> None:
        with Connection(self._socket, timeout=600.0) as stream, Connection(self._socket) as results:
            stream.send(b"GET /v1/orders?instance=bench HTTP/1.1\r\nHost: reflectd\r\n\r\n")
            try:
                while True:
                    line = stream.line()
                    if line.startswith(b"{") and (order := json.loads(line))["kind"] == "read":
                        self.reads += 1
                        results.post("/v1/results", self._answer(order))
            except OSError:
                return

    def _answer(self, order: Json) -> Json:
        session = order["session"]
        tool = {"status": "running", "input": {"command": "npm install"}}
        messages = [
            {
                "info": {"id": "msg_1", "role": "user", "time": {"created": 1}},
                "parts": [{"type": "text", "id": "p1", "text": "Install it"}],
            },
            {
                "info": {"id": "msg_2", "role": "assistant", "time": {"created": 2}},
                "parts": [{"type": "tool", "id": "p2", "callID": "c", "tool": "bash", "state": tool}],
            },
        ]
        info = {"id": session, "title": "t", "directory": str(self._workspace)}
        data = {"missing": False, "busy": True, "session": info, "messages": messages, "todos": []}
        return {"instance": "bench", "id": order["id"], "status": "done", "data": data}
