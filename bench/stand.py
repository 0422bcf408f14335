"""What the benchmarks share: servers in processes of their own, one blocking HTTP connection, statistics."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import socket
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import psutil

Json = dict[str, Any]

REPO = Path(__file__).resolve().parents[1]
RECORDING = REPO / "tests" / "data" / "sessions" / "opencode_slugify.json"
START_S = 20.0


class Failed(Exception):
    """A benchmark can't go on; the others can."""


@dataclass(slots=True)
class Table:
    """One benchmark's outcome: a title, a header, rows of cells, and notes below."""

    title: str
    header: tuple[str, ...]
    rows: list[tuple[str, ...]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    values: Json = field(default_factory=dict)

    def text(self) -> str:
        """Aligned columns, the first to the left."""
        lines = [self.header, *self.rows]
        widths = [max(len(row[i]) for row in lines) for i in range(len(self.header))]
        out = [self.title]
        for row in lines:
            cells = [
                c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))
            ]
            out.append("  " + "  ".join(cells).rstrip())
        return "\n".join(out + [f"  {note}" for note in self.notes])


def median(values: list[float]) -> float:
    return statistics.median(values)


def percentile(values: list[float], share: float) -> float:
    """The value that ``share`` (0 to 1) of the sorted values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def environment(home: Path) -> dict[str, str]:
    """Of the caller's environment only PATH: no settings, no home."""
    home.mkdir(exist_ok=True)
    path = os.environ.get("PATH", os.defpath)
    return {"PATH": path, "HOME": str(home), "PYTHONPATH": str(REPO), "REFLECTD_JUDGE_PROVIDER": "offline"}


class Server:
    """``with Server(folder)``: the daemon as people run it; with ``bare`` the aiohttp handler beside it."""

    def __init__(self, folder: Path, *, bare: bool = False, more: dict[str, str] | None = None) -> None:
        folder.mkdir(exist_ok=True)
        self.socket = folder / "run" / "s.sock"
        self._log = folder / "log"
        self._env = environment(folder / "home") | (more or {})
        if bare:
            self.socket.parent.mkdir(exist_ok=True)
            self._command = [sys.executable, "-m", "bench.bare", str(self.socket)]
        else:
            self._command = [sys.executable, "-m", "daemon", "serve", "--socket", str(self.socket)]
            self._command += ["--state-dir", str(folder / "state")]
        self._process: subprocess.Popen[bytes] | None = None

    def runs(self, code: str) -> None:
        """Run this program in the daemon's place, with the same arguments."""
        self._command = [sys.executable, "-c", code, *self._command[3:]]

    def __enter__(self) -> Self:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, env=self._env, cwd=REPO, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self.seconds = self._wait()
        self.process = psutil.Process(self._process.pid)
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(15)
            finally:
                self._process.kill()

    def _wait(self) -> float:
        """Seconds from the spawn to the first answer with status 200."""
        started = time.perf_counter()
        assert self._process is not None
        while time.perf_counter() - started < START_S:
            with contextlib.suppress(OSError), Connection(self.socket, timeout=2.0) as c:
                c.get("/v1/status")
                return time.perf_counter() - started
            if self._process.poll() is not None:
                break
            time.sleep(0.0005)
        raise Failed(f"the server did not start:\n{self._log.read_text()[-2000:]}")

    def cpu(self) -> float:
        """Seconds of CPU it used so far."""
        used = self.process.cpu_times()
        return float(used.user + used.system)

    def rss_mb(self) -> float:
        return float(self.process.memory_info().rss) / 1e6


class Connection:
    """One keep-alive connection, blocking; ``send`` and ``receive`` may be called apart."""

    def __init__(self, path: Path, timeout: float = 10.0) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(timeout)
        try:
            self._socket.connect(str(path))
        except OSError:
            self._socket.close()
            raise
        self._pending = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, request: bytes) -> None:
        self._socket.sendall(request)

    def receive(self) -> Json:
        """The body of the next answer. Anything but 200 ends the benchmark."""
        head = self._until(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        while len(self._pending) < length:
            self._more()
        body, self._pending = self._pending[:length], self._pending[length:]
        if not head.startswith(b"HTTP/1.1 200"):
            raise Failed(f"refused: {head!r} {body!r}")
        found: Json = json.loads(body)
        return found

    def line(self) -> bytes:
        """The next line of a stream (the chunk sizes of the transfer coding are lines too)."""
        return self._until(b"\n")

    def get(self, route: str) -> Json:
        self.send(f"GET {route} HTTP/1.1\r\nHost: reflectd\r\n\r\n".encode())
        return self.receive()

    def post(self, route: str, body: Json) -> Json:
        self.send(posted(route, json.dumps(body).encode()))
        return self.receive()

    def _until(self, mark: bytes) -> bytes:
        while mark not in self._pending:
            self._more()
        found, _, self._pending = self._pending.partition(mark)
        return found

    def _more(self) -> None:
        data = self._socket.recv(1 << 18)
        if not data:
            raise ConnectionResetError("the server hung up")
        self._pending += data


def more_descriptors() -> None:
    """1,000 connections and some; macOS allows 256 unless asked."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < 4096:
        resource.setrlimit(resource.RLIMIT_NOFILE, (4096, hard))


def posted(route: str, body: bytes) -> bytes:
    """A POST request as bytes."""
    head = f"POST {route} HTTP/1.1\r\nHost: reflectd\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
