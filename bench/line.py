"""``reflectd line``: what a prompt waits for, with 10,000 sessions, without a daemon, and when it hangs."""

from __future__ import annotations

import contextlib
import resource
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.stand import Server, Table, environment, median, percentile

SCRIPT = Path(sys.executable).with_name("reflectd")
SESSIONS = 10_000
FOLDERS = 200


def run(*, quick: bool) -> Table:
    """Wall time and CPU time of one run, beside Python that does nothing."""
    runs = 10 if quick else 60
    seen: dict[str, list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory(prefix="rdb-") as name, contextlib.ExitStack() as stack:
        folder = Path(name).resolve()
        server = stack.enter_context(Server(folder / "d"))
        _fill(folder / "d" / "state" / "reflectd.sqlite3")
        deaf = stack.enter_context(contextlib.closing(socket.socket(socket.AF_UNIX)))
        deaf.bind(str(server.socket.parent / "deaf"))
        (server.socket.parent / "deaf").chmod(0o600)
        deaf.listen(1000)
        ours = [str(SCRIPT)] if SCRIPT.exists() else [sys.executable, "-m", "daemon"]
        for turn in range(runs + 1):
            for what, command, path in (
                ("with a daemon", [*ours, "line"], server.socket),
                ("without one", [*ours, "line"], folder / "none"),
                ("a daemon that hangs", [*ours, "line"], server.socket.parent / "deaf"),
                ("python -c pass", [sys.executable, "-c", "pass"], folder / "none"),
            ):
                found = _times(command, folder, path)
                if turn:  # the first round warms the caches
                    seen.setdefault(what, []).append(found)
    table = Table(f"reflectd line, {SESSIONS:,} sessions ({runs} runs)", ("ms", "median", "p90", "CPU"))
    for what, values in seen.items():
        wall, cpu = ([v[n] for v in values] for n in (0, 1))
        middle, high, used = median(wall), percentile(wall, 0.9), median(cpu)
        table.rows.append((what, f"{middle:.0f}", f"{high:.0f}", f"{used:.0f}"))
        table.values[what] = {"median": middle, "p90": high, "cpu": used}
    table.notes = ["aim: < 30 ms at rest, and 20 more when the daemon hangs"]
    return table


def _fill(database: Path) -> None:
    """As many sessions as a year brings; their states are not read by this route."""
    with contextlib.closing(sqlite3.connect(database)) as db, db:
        now = int(time.time() * 1000)
        db.executemany(
            "INSERT INTO sessions (id, directory, phase, open, top, updated, state) "
            "VALUES (?, ?, ?, 0, 1, ?, ?)",
            (
                (f"ses_{n:06d}", f"/home/me/project{n % FOLDERS}", "complete", now - n * 60_000, b"{}" * 400)
                for n in range(SESSIONS)
            ),
        )


def _times(command: list[str], folder: Path, path: Path) -> tuple[float, float]:
    """Wall and CPU time of one run, in ms."""
    env = environment(folder / "home") | {"REFLECTD_SOCKET": str(path)}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    subprocess.run(
        command, env=env, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True
    )
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall * 1000, (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000
