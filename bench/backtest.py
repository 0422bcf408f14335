"""``reflectd backtest`` with the rules, beside plain reading of the same files, and its memory by size."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bench.reflect import Sessions, plain, seconds
from bench.stand import Table, environment
from bench.transcripts import Corpus
from daemon.hosts.claude_code.past import named

if TYPE_CHECKING:
    from collections.abc import Callable

MB = 1_000_000
CODE = (
    "import resource,sys;from daemon.cli.main import main;c=main(['backtest','--json',*sys.argv[1:]]);"
    "u=resource.getrusage(resource.RUSAGE_SELF);"
    "print(u.ru_utime+u.ru_stime,u.ru_maxrss,file=sys.stderr);sys.exit(c)"
)


def run(*, quick: bool, mb: int = 100) -> Table:
    """GB/s of plain reading, of a run and of its processor time; peak memory."""
    table = Table(
        "Back-test with the rules (one process each, one core)",
        ("sessions", "plain GB/s", "GB/s", "of CPU", "ms a stop", "peak MB"),
    )
    sizes = (mb,) if quick else (mb, 5 * mb)
    for size in sizes:
        _row(table, f"{size:,} MB, tools' output", partial(_sessions, size=size * MB))
    _row(table, f"{mb:,} MB, requests to the model", lambda p: _requests(p, mb * MB))
    files = 100 if quick else 2_000
    _row(table, f"{files:,} files of one task", lambda p: _small(p, files))
    table.notes.append("GB/s, that of CPU and ms (of CPU) a stop are without the start of an empty one")
    return table


def _sessions(folder: Path, size: int) -> list[Path]:
    return Sessions(folder).write(size)


def _row(table: Table, title: str, write: Callable[[Path], list[Path]]) -> None:
    with tempfile.TemporaryDirectory(prefix="rd-bench-") as name:
        folder = Path(name)
        project, empty = folder / "project", folder / "empty"
        project.mkdir()
        empty.mkdir()
        env = environment(folder / "home")
        place = folder / "home" / ".claude" / "projects" / named(project)
        place.mkdir(parents=True)
        (empty / "one.jsonl").write_bytes(b"\n")
        started = _backtest(env, project, str(empty))
        paths = write(place)
        size = sum(p.stat().st_size for p in paths)
        plain(paths)  # both read what the system keeps in memory
        read = size / seconds(lambda: plain(paths)) / 1e9
        first = _backtest(env, project)
    took, cpu = max(first.s - started.s, 1e-3), max(first.cpu_s - started.cpu_s, 1e-3)
    rates = (f"{read:.2f}", f"{size / took / 1e9:.3f}", f"{size / cpu / 1e9:.3f}")
    a_stop = 1e3 * cpu / first.stops
    table.rows.append((title, *rates, f"{a_stop:.1f}", f"{first.peak_mb:.0f}"))
    figures = {"plain": read, "first": size / took / 1e9, "cpu": size / cpu / 1e9, "cpu_ms_a_stop": a_stop}
    more = {"start_s": started.s, "peak_mb": first.peak_mb, "stops": first.stops}
    table.values[title] = {**figures, **more}


class Ran(NamedTuple):
    """Seconds, seconds of a processor, peak memory (MB) and stops of one command."""

    s: float
    cpu_s: float
    peak_mb: float
    stops: int


def _backtest(env: dict[str, str], project: Path, *args: str) -> Ran:
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", CODE, *args], env=env, cwd=project, capture_output=True, text=True, check=True
    )
    took = time.perf_counter() - began
    stops = int(done.stdout.split('"stops": ', 1)[1].split(",", 1)[0])
    cpu, peak = done.stderr.split()[-2:]
    return Ran(took, float(cpu), int(peak) * 1024 / 1e6, stops)


def _requests(place: Path, size: int) -> list[Path]:
    path = place / "0f6d1f9e-5a7e-4b6e-9f57-3a1c2b4d5e6f.jsonl"
    corpus = Corpus(path)
    corpus.grow(size)
    corpus.close()
    return [path]


def _small(place: Path, number: int) -> list[Path]:
    """Many sessions of one turn."""
    written, sessions = [], Sessions(place)
    for n in range(number):
        path = place / f"{n:08d}-0000-4000-8000-000000000001.jsonl"
        path.write_bytes(b"".join(sessions.turn(path.stem)))
        written.append(path)
    return written
