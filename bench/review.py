"""``reflectd reflect`` on a terminal: from the spawn to the first question, beside what it is made of."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.stand import REPO, Failed, Table, environment, median, percentile

QUESTION = b"Skip for now"
PATIENCE_S = 60.0
PYTHON = [sys.executable, "-c"]
REFLECT = [sys.executable, "-m", "daemon", "reflect"]
SIGNALS = 200


def run(*, quick: bool) -> Table:
    """A journal with ``SIGNALS`` patterns and no session to read."""
    runs = 3 if quick else 11
    seen: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="rdb-") as name:
        folder = Path(name).resolve()
        project = _project(folder)
        for turn in range(runs + 1):
            found = {
                "python -c pass": _plain([*PYTHON, "pass"], folder, project),
                "reflect status": _plain([*REFLECT, "status"], folder, project),
                "reflect, first question": _asked(folder, project),
            }
            if turn:  # the first round warms the caches
                for what, seconds in found.items():
                    seen.setdefault(what, []).append(seconds * 1000)
    table = Table(f"The review up to its first question ({runs} runs)", ("ms", "median", "p90", "x python"))
    base = median(seen["python -c pass"])
    for what, values in seen.items():
        middle, high = median(values), percentile(values, 0.9)
        table.rows.append((what, f"{middle:.0f}", f"{high:.0f}", f"{middle / base:.1f}"))
        table.values[what] = {"median": middle, "p90": high, "ratio": middle / base}
    table.notes = ["aim: < 600 ms on an idle machine"]
    return table


def _project(folder: Path) -> Path:
    signals = [
        {
            "id": f"sig-20251127-{i + 1:03d}",
            "type": "correction",
            "content": f"Use the {word} client in package{i}",
            "occurrences": 3,
            "first_seen": "2025-11-20",
            "last_seen": "2025-11-27",
            "severity": "high",
            "status": "pending",
        }
        for i, word in enumerate(["shared"] * SIGNALS)
    ]
    journal = folder / "project" / ".claude" / "orchestration" / "temp" / "reflect-journal.json"
    journal.parent.mkdir(parents=True)
    journal.write_text(json.dumps({"version": "1.0", "signals": signals, "learned_rules": []}), "utf-8")
    return folder / "project"


def _environment(folder: Path) -> dict[str, str]:
    return environment(folder / "home") | {"PYTHONPATH": str(REPO), "TERM": "xterm-256color"}


def _plain(command: list[str], folder: Path, project: Path) -> float:
    began = time.perf_counter()
    subprocess.run(
        command,
        env=_environment(folder),
        cwd=project,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return time.perf_counter() - began


def _asked(folder: Path, project: Path) -> float:
    """Seconds until the choices stand on the terminal; then the review is ended."""
    ours, theirs = pty.openpty()
    began = time.perf_counter()
    process = subprocess.Popen(
        REFLECT, env=_environment(folder), cwd=project, stdin=theirs, stdout=theirs, start_new_session=True
    )
    os.close(theirs)
    try:
        text = b""
        while QUESTION not in text:
            if not select.select([ours], [], [], PATIENCE_S)[0]:
                raise Failed(f"no question within {PATIENCE_S:g} s: {text[-500:]!r}")
            text += os.read(ours, 65_536)
        return time.perf_counter() - began
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        os.close(ours)
