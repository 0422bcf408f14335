"""Plays a recorded session to a daemon through its socket: the part of the shim, and the daemon's life.

A recording holds what the shim sent, per round: batches of events, and the messages to answer a ``read``
with. Every round ends with the daemon's order (feedback, then a toast). What the daemon asks meanwhile is
answered here. Nothing is simulated on the daemon's side.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from daemon.client import request
from daemon.core.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

Json = dict[str, Any]

REPO = Path(__file__).resolve().parents[1]
RECORDING = REPO / "tests" / "data" / "sessions" / "opencode_slugify.json"
INSTANCE = "demo"
WAIT_S = 60.0
POLL_S = 0.01
JUDGE = "offline"


class DemoFailed(Exception):
    """The demo did not go as it should; the message says where, and what the daemon said."""


class Daemon:
    """``with Daemon(folder)``: ``reflectd serve`` on a socket in ``folder``, with a home of its own."""

    def __init__(self, folder: Path) -> None:
        self.socket = folder / "run" / "r.sock"
        self._folder = folder
        self._log = folder / "daemon.log"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        home = self._folder / "home"
        home.mkdir()
        keep = {"PATH", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT"}
        env = {k: v for k, v in os.environ.items() if k in keep}
        env |= {"HOME": str(home), "PYTHONPATH": str(REPO), "REFLECTD_JUDGE_PROVIDER": JUDGE}
        command = [sys.executable, "-m", "daemon", "serve"]
        command += ["--socket", str(self.socket), "--state-dir", str(self._folder / "state")]
        try:
            with self._log.open("wb") as log, _uninterrupted():
                self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                    command, cwd=home, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log
                )
            self._wait()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """SIGTERM, which drains: every file is written when this returns."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(WAIT_S)
        except BaseException:  # time is up, or Ctrl-C again
            process.kill()
            process.wait()
            raise

    def failed(self, what: str) -> DemoFailed:
        """The error for ``what``, with the end of the daemon's log."""
        said = self._log.read_text("utf-8", "replace")[-2000:].strip() if self._log.exists() else ""
        return DemoFailed(f"{what}\n--- what the daemon said\n{said or '(nothing)'}")

    def _wait(self) -> None:
        end = time.monotonic() + WAIT_S
        while time.monotonic() < end:
            if (code := self._ended()) is not None:
                raise self.failed(f"the daemon ended at once, with exit code {code}")
            with contextlib.suppress(Unavailable):
                request(self.socket, "GET", "/v1/status", timeout_s=2.0)
                return
            time.sleep(POLL_S)
        raise self.failed(f"the daemon did not answer within {WAIT_S:.0f} s")

    def _ended(self) -> int | None:
        """Its exit code. A signal in the middle of ``poll`` would leave its lock taken: ``stop`` hangs."""
        with _uninterrupted():
            return None if self._process is None else self._process.poll()


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C waits: half-way through ``Popen`` nobody would end the process."""
    heard: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda n, _: heard.append(n)) for number in numbers]
    try:
        yield
    finally:
        for known, handler in zip(numbers, before, strict=True):
            signal.signal(known, handler)
        for number in heard:
            signal.raise_signal(number)


class Shim:
    """``with Shim(daemon, recording, workspace) as shim``: says hello, then ``play`` round by round."""

    def __init__(self, daemon: Daemon, recording: Json, workspace: Path) -> None:
        text = json.dumps(recording).replace("{workspace}", json.dumps(str(workspace))[1:-1])
        self._recording: Json = json.loads(text)
        self._daemon = daemon
        self._ids: dict[str, str] = {}
        self._orders: queue.Queue[Json | None] = queue.Queue()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._reader = threading.Thread(target=self._read, name="orders", daemon=True)
        times = [e["t"] for r in self._recording["rounds"] for batch in r["batches"] for e in batch]
        self._shift = int(time.time() * 1000) - max(times)

    def __enter__(self) -> Self:
        hello = {"instance": INSTANCE, "pid": os.getpid(), **self._recording["hello"]}
        self._post("/v1/hello", hello)
        self._socket.connect(str(self._daemon.socket))
        self._socket.sendall(
            f"GET /v1/orders?instance={INSTANCE} HTTP/1.0\r\nHost: reflectd\r\n\r\n".encode()
        )
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        if self._reader.ident:
            self._reader.join(WAIT_S)

    def play(self, number: int) -> Json:
        """Send the events of a round, answer what is asked; the order that ends it."""
        this = self._recording["rounds"][number]
        for batch in this["batches"]:
            self._post("/v1/events", {"instance": INSTANCE, "events": [self._event(e) for e in batch]})
        wanted = this["order"]
        while True:
            order = self._order(wanted["kind"])
            data = self._renamed(this["read"]) if order["kind"] == "read" else None
            answer = {"instance": INSTANCE, "id": order["id"], "status": "done", "data": data}
            if order["kind"] == wanted["kind"]:
                self._ids[wanted["id"]] = order["id"]
                self._post("/v1/results", answer)
                return order
            if order["kind"] != "read":
                raise self._daemon.failed(
                    f"the daemon ordered {order['kind']} where the recording has {wanted['kind']}: {order}"
                )
            self._post("/v1/results", answer)

    def _order(self, wanted: str) -> Json:
        try:
            order = self._orders.get(timeout=WAIT_S)
        except queue.Empty:
            order = None
        if order is None:
            raise self._daemon.failed(f"the daemon sent no order within {WAIT_S:.0f} s; expected: {wanted}")
        return order

    def _read(self) -> None:
        """The stream's lines into the queue; None when it ends. (HTTP/1.0: no chunks.)"""
        with contextlib.suppress(OSError, ValueError), self._socket.makefile("rb") as stream:
            while line := stream.readline():
                if line.startswith(b"{"):
                    self._orders.put(json.loads(line))
        self._orders.put(None)

    def _event(self, event: Json) -> Json:
        """As if it happened just now: the daemon ignores an idle that is long past."""
        return {**self._renamed(event), "t": event["t"] + self._shift}

    def _renamed(self, value: Json) -> Json:
        """With the ids of this run's orders in place of the recorded ones."""
        text = json.dumps(value)
        for recorded, now in self._ids.items():
            text = text.replace(recorded, now)
        found: Json = json.loads(text)
        return found

    def _post(self, route: str, body: Json) -> Json:
        return request(self._daemon.socket, "POST", route, body)
