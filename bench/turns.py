"""From the idle to the order, and what 10,000 sessions cost: the recorded session, again and again."""

from __future__ import annotations

import json
import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

from bench.stand import RECORDING, Connection, Failed, Json, Server, Table, median, percentile, posted
from harness.machine.waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable

PAUSE_S = 0.01
PROJECTS = 20


class Host:
    """One host instance in a workspace: an order stream, and two connections to post on."""

    def __init__(
        self, server: Server, workspace: Path, name: str, judge: Callable[[str], str] | None = None
    ) -> None:
        self._judge = judge
        workspace.mkdir(exist_ok=True)
        self._name, self._seq = name, 0
        self._path = server.socket
        self._workspace = workspace
        self._recording = RECORDING.read_text("utf-8").replace("{workspace}", str(workspace))
        self._session = json.loads(self._recording)["rounds"][0]["read"]["session"]["id"]

    def __enter__(self) -> Self:
        self._events, self._results, self._stream = (Connection(self._path) for _ in range(3))
        hello = {"api": 1, "instance": self._name, "host": "opencode", "mode": "serve", "pid": os.getpid()}
        self._events.post("/v1/hello", {**hello, "directory": str(self._workspace)})
        self._stream.send(f"GET /v1/orders?instance={self._name} HTTP/1.1\r\nHost: reflectd\r\n\r\n".encode())
        while self._stream.line().strip():
            pass  # the head of the answer
        return self

    def __exit__(self, *_: object) -> None:
        for connection in (self._events, self._results, self._stream):
            connection.__exit__()

    def turn(self, number: int, *, finished: bool) -> tuple[float, float]:
        """A session of its own up to its order; seconds from the idle to the read, and to the order."""
        session = self._id(number)
        recorded: Json = json.loads(self._recording.replace(self._session, session))
        first, second = recorded["rounds"]
        messages = first["read"]["messages"]
        if finished:  # as if the agent had done it right at once
            messages = [messages[0], *second["read"]["messages"][-3:]]
        read = {**first["read"], "messages": messages}
        for batch in first["batches"][:-1]:
            self._events.post("/v1/events", self._batch(batch))
        idle = posted("/v1/events", json.dumps(self._batch(first["batches"][-1])).encode())
        data = json.dumps(read)
        began = time.perf_counter()
        self._events.send(idle)
        order = self._order("read")
        asked = time.perf_counter() - began
        answer = f'{{"instance":"{self._name}","id":"{order["id"]}","status":"done","data":{data}}}'
        self._results.send(posted("/v1/results", answer.encode()))
        order = self._order("toast" if finished else "feedback", "evaluate")
        if order["kind"] == "evaluate" and self._judge is not None:
            nonce = order["data"]["text"].split("--- end ")[1].split()[0]
            reply = {"text": self._judge(nonce), "session": f"judge-{number}"}
            answer = json.dumps({"instance": self._name, "id": order["id"], "status": "done", "data": reply})
            self._results.receive()
            self._results.send(posted("/v1/results", answer.encode()))
            order = self._order("toast")
        ordered = time.perf_counter() - began
        self._events.receive()
        self._results.receive()
        self._results.post("/v1/results", {"instance": self._name, "id": order["id"], "status": "done"})
        return asked, ordered

    def opens(self, number: int) -> str:
        """A session begins and a person types; its id."""
        session = self._id(number)
        info = {"id": session, "title": "bench", "directory": str(self._workspace)}
        typed = {"sessionID": session, "messageID": "msg_1", "human": True}
        self._events.post("/v1/events", self._batch([
            {"kind": "session.created", "data": {"sessionID": session, "info": info}},
            {"kind": "chat.message", "data": typed},
        ]))  # fmt: skip
        return session

    def asks(self, session: str, what: str = "context", **data: str) -> str:
        """What the session is given of what was learned."""
        body = {"instance": self._name, "what": what, "data": {"sessionID": session, **data}}
        return str(self._events.post("/v1/ask", body)["text"])

    def cites(self, point: str) -> None:
        """From now on the agent names this point in what it says."""
        self._recording = self._recording.replace('"Done: ', f'"As [{point}] says. Done: ')

    def deletes(self, number: int) -> None:
        """The session is over."""
        gone = {"kind": "session.deleted", "data": {"sessionID": self._id(number)}}
        self._events.post("/v1/events", self._batch([gone]))

    def settled(self, number: int) -> None:
        """Wait until the verdict of a turn is on disk."""
        file = self._workspace / ".reflection" / f"verdict_{self._id(number)}.json"
        end = time.monotonic() + PATIENCE_S
        while not (file.exists() and json.loads(file.read_text("utf-8"))["state"] != "judging"):
            if time.monotonic() > end:
                raise Failed(f"no verdict in {file} within {PATIENCE_S:g} s")
            time.sleep(0.001)

    def _id(self, number: int) -> str:
        """Unique; the first 8 characters are shared by 50, as on a host, where they change with the time."""
        return f"ses_{number // 50:04x}{self._session[8:-6]}{number:06d}"

    def _batch(self, events: list[Json]) -> Json:
        now = int(time.time() * 1000)
        for event in events:
            self._seq += 1
            event |= {"seq": self._seq, "t": now}
        return {"instance": self._name, "events": events}

    def _order(self, *kinds: str) -> Json:
        while True:
            line = self._stream.line()
            if line.startswith(b"{"):
                order: Json = json.loads(line)
                if order["kind"] not in kinds:
                    raise Failed(f"expected the order {kinds[0]}, got {order}")
                return order


def event_to_order(*, quick: bool) -> Table:
    """The time between the POST of ``session.idle`` and the line of the feedback order."""
    turns = 50 if quick else 200
    asked, ordered = [], []
    with tempfile.TemporaryDirectory(prefix="rdb-") as name:
        folder = Path(name).resolve()
        with Server(folder / "d") as server, Host(server, folder / "w", "bench") as host:
            for number in range(turns + 5):
                found = host.turn(number, finished=False)
                host.settled(number)
                time.sleep(PAUSE_S)
                if number >= 5:
                    asked.append(found[0] * 1000)
                    ordered.append(found[1] * 1000)
        disk = [_fsync(folder) * 1000 for _ in range(20)]
    table = Table(f"Event to order ({turns} turns, offline judge)", ("ms", "median", "p99", "worst"))
    rest = [b - a for a, b in zip(asked, ordered, strict=True)]
    parts = [("idle to read", asked), ("messages to order", rest), ("idle to order", ordered)]
    for what, values in (*parts, ("for scale: write and fsync 4 KB", disk)):
        row = (median(values), percentile(values, 0.99), max(values))
        table.rows.append((what, *(f"{v:.2f}" for v in row)))
        table.values[what] = dict(zip(("median", "p99", "worst"), row, strict=True))
    table.notes = ["aim: idle to order < 20 ms"]
    return table


def memory(*, quick: bool) -> Table:
    """Resident memory of the daemon while sessions come and are judged complete."""
    marks = (250, 500) if quick else (1_000, 2_500, 5_000, 7_500, 10_000)
    table = Table("Resident memory (each session judged once)", ("after", "MB"))
    fast = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # 10,000 sessions sync a lot
    with tempfile.TemporaryDirectory(prefix="rdb-", dir=fast) as name:
        folder = Path(name).resolve()
        with Server(folder / "d") as server:
            time.sleep(1.5)
            _row(table, "start", server.rss_mb())
            done = 0
            share = marks[-1] // PROJECTS
            while done < marks[-1]:
                with Host(server, folder / f"w{done // share}", f"bench-{done}") as host:
                    for number in range(done, done + share):
                        host.turn(number, finished=True)
                        host.settled(number)  # files are written behind; a queue of them would be memory
                        if number + 1 in marks:
                            _row(table, f"{number + 1:,} sessions", server.rss_mb())
                done += share
            with Connection(server.socket) as c:
                verdicts = c.get("/v1/status")["verdicts"]
    table.notes = [f"aim: idle < 60 MB, and flat; verdicts: {verdicts}"]
    return table


def _row(table: Table, what: str, mb: float) -> None:
    table.rows.append((what, f"{mb:.1f}"))
    table.values[what] = mb


def _fsync(folder: Path) -> float:
    began = time.perf_counter()
    with (folder / "probe").open("wb") as f:
        f.write(b"x" * 4096)
        f.flush()
        os.fsync(f.fileno())
    return time.perf_counter() - began
