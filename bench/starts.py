"""Starting: the daemon up to its first answer, and ``reflectd --help``, beside Python itself."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.stand import REPO, Server, Table, environment, median, percentile

PYTHON = [sys.executable, "-c"]
SCRIPT = Path(sys.executable).with_name("reflectd")


def cold_start(*, quick: bool) -> Table:
    """From the spawn to the first 200 of ``/v1/status``."""
    runs = 3 if quick else 11
    seen: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="rdb-") as name:
        folder = Path(name).resolve()
        for turn in range(runs + 1):
            found = {}
            with Server(folder / "d") as server:
                found["daemon, state there"] = server.seconds
            with Server(folder / f"d{turn}") as server:
                found["daemon, first time"] = server.seconds
            found["python -c pass"] = _seconds([*PYTHON, "pass"], folder)
            found["python -c 'import aiohttp.web'"] = _seconds([*PYTHON, "import aiohttp.web"], folder)
            if turn:  # the first round warms the caches
                for what, seconds in found.items():
                    seen.setdefault(what, []).append(seconds * 1000)
    return _table(f"Daemon cold start to first answer ({runs} runs)", seen, "aim: < 300 ms")


def command_help(*, quick: bool) -> Table:
    """``reflectd --help``."""
    runs = 5 if quick else 21
    ours = [str(SCRIPT)] if SCRIPT.exists() else [sys.executable, "-m", "daemon"]
    seen: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="rdb-") as name:
        folder = Path(name).resolve()
        for turn in range(runs + 1):
            help_s = _seconds([*ours, "--help"], folder)
            pass_s = _seconds([*PYTHON, "pass"], folder)
            if turn:
                seen.setdefault("reflectd --help", []).append(help_s * 1000)
                seen.setdefault("python -c pass", []).append(pass_s * 1000)
    return _table(f"Command line ({runs} runs)", seen, "aim: --help < 80 ms")


def _seconds(command: list[str], folder: Path) -> float:
    env = environment(folder / "home")
    began = time.perf_counter()
    subprocess.run(
        command, env=env, cwd=REPO, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True
    )
    return time.perf_counter() - began


def _table(title: str, seen: dict[str, list[float]], aim: str) -> Table:
    table = Table(title, ("ms", "median", "p90", "x python"))
    base = median(seen["python -c pass"])
    for what, values in seen.items():
        middle, high = median(values), percentile(values, 0.9)
        table.rows.append((what, f"{middle:.0f}", f"{high:.0f}", f"{middle / base:.1f}"))
        table.values[what] = {"median": middle, "p90": high, "ratio": middle / base}
    table.notes = [aim]
    return table
