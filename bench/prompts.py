"""Lessons at a prompt, as a host waits for them: the real daemon over its socket, all episodes in one
project, idle and with one core busy; and its memory before, with and after the model for embeddings.
"""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import tempfile
import time
from array import array
from contextlib import contextmanager
from math import hypot
from pathlib import Path
from typing import TYPE_CHECKING

from bench.stand import Connection, Failed, Server, Table, median, percentile
from bench.turns import Host
from daemon.learning.embed import minilm
from daemon.learning.embed.vectors import Vector
from daemon.learning.lessons.episodes import Episode
from daemon.learning.lessons.store import Episodes
from daemon.store.db import Database

if TYPE_CHECKING:
    from collections.abc import Iterator


QUICK, USUAL, LARGE = 2_000, 10_000, 100_000
BLOCK = 1_000
DIMENSIONS = 384  # of minilm
PROMPTS = 60
FIRST = 5
IDLE_S, QUICK_IDLE_S = 8.0, 4.0
LOADED_S = 120.0
SERVE = (
    "import sys\nfrom daemon.learning.embed.minilm import MiniLM\n"
    "MiniLM.__init__.__kwdefaults__['idle_s'] = {idle_s}\n"
    "from daemon.cli.main import main\nsys.exit(main(sys.argv[1:]))"
)
DOES = ("Fix", "Rename", "Remove", "Document", "Speed up", "Split", "Test", "Migrate")
WHAT = ("parser", "importer", "login", "cache", "invoice", "scheduler", "export", "gateway", "migration")
WHY = ("its tests fail", "the build is slow", "users complain", "the release waits", "it leaks memory")


def run(*, quick: bool = False, large: bool = False) -> Table:
    """The way of a prompt through the daemon."""
    size = LARGE if large else QUICK if quick else USUAL
    idle_s = QUICK_IDLE_S if quick else IDLE_S
    table = Table(
        f"Lessons at a prompt: {size:,} episodes in one project ({PROMPTS} prompts)", ("what", "p50", "p95")
    )
    with tempfile.TemporaryDirectory(prefix="rdb-") as name:
        folder = Path(name).resolve()
        (folder / "d" / "state").mkdir(parents=True)
        table.values["stored_per_s"] = asyncio.run(_filled(folder / "d" / "state", str(folder / "w"), size))
        server = Server(folder / "d", more={
            "REFLECTD_MEMORY_ENABLED": "true",
            "REFLECTD_MEMORY_PROMPT_MS": "5000",
        })  # fmt: skip
        server.runs(SERVE.format(idle_s=idle_s))
        with server, Host(server, folder / "w", "bench") as host:
            _asked(table, server, host, idle_s)
    table.notes = [
        "ms from a host's question to its answer; aim: p50 of at most 40 on an idle core",
        f"the model goes after {idle_s:g} s here; in use after ten minutes",
    ]
    if lacking := minilm.missing():
        table.notes.append(f"by words alone: there is no {', '.join(lacking)} (make embed)")
    return table


def _asked(table: Table, server: Server, host: Host, idle_s: float) -> None:
    rng = random.Random(7)
    _mb(table, "before", server)
    session = host.opens(0)
    _timed(table, "first questions, by words", host, session, rng, FIRST)
    if not minilm.missing():
        _loaded(server)
    _timed(table, "next questions", host, session, rng, FIRST)
    _mb(table, "with the model", server)
    _timed(table, "idle", host, session, rng, PROMPTS)
    with _busy():
        _timed(table, "one core busy", host, session, rng, PROMPTS)
    time.sleep(idle_s + 3)
    _mb(table, "after it went", server)


def _timed(table: Table, name: str, host: Host, session: str, rng: random.Random, number: int) -> None:
    took = []
    for _ in range(number):
        text = _prompt(rng)
        began = time.perf_counter()
        host.asks(session, "lessons", text=text)
        took.append(1000 * (time.perf_counter() - began))
    p50, p95 = median(took), percentile(took, 0.95)
    table.rows.append((f"{name}, ms", f"{p50:.1f}", f"{p95:.1f}"))
    table.values[name] = {"p50_ms": p50, "p95_ms": p95}


def _loaded(server: Server) -> None:
    """Wait until the daemon has its model for embeddings."""
    with Connection(server.socket) as c:
        end = time.monotonic() + LOADED_S
        while not c.get("/v1/status")["features"]["memory"]["embedding_loaded"]:
            if time.monotonic() > end:
                raise Failed(f"the model for embeddings was not loaded in {LOADED_S:g} s")
            time.sleep(0.1)


@contextmanager
def _busy() -> Iterator[None]:
    """One process that computes all the time."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


async def _filled(state: Path, project: str, size: int) -> float:
    """Episodes in the daemon's database before it starts; how many a second."""
    db = Database(state / "reflectd.sqlite3", lambda: 0)
    store = Episodes(db)
    rng = random.Random(1)
    noise = [rng.gauss(0, 1) for _ in range(20_000)]
    took = 0.0
    try:
        for at in range(0, size, BLOCK):
            block = [_made(rng, noise, project, n) for n in range(at, min(at + BLOCK, size))]
            began = time.perf_counter()
            await asyncio.gather(*(store.add(episode, vector) for episode, vector in block))
            took += time.perf_counter() - began
    finally:
        db.close()
    return size / took


def _made(rng: random.Random, noise: list[float], project: str, number: int) -> tuple[Episode, Vector]:
    at = rng.randrange(len(noise) - DIMENSIONS)
    row = noise[at : at + DIMENSIONS]
    length = hypot(*row)
    vector = Vector(minilm.MODEL, array("f", [x / length for x in row]).tobytes())
    lesson = f"The {rng.choice(WHAT)} of {_name(rng)} needs {_name(rng)} before {_name(rng)} is touched."
    made = Episode(f"{rng.getrandbits(128):032x}", project, _prompt(rng), -0.5, "", lesson, "", at=number)
    return made, vector


def _prompt(rng: random.Random) -> str:
    """A task of one sentence."""
    does, what, why = rng.choice(DOES), rng.choice(WHAT), rng.choice(WHY)
    return f"{does} the {what} in module{_name(rng)}.py so that {_name(rng)} works, because {why}"


def _name(rng: random.Random) -> str:
    """A few are frequent, most are rare."""
    return f"w{int(rng.paretovariate(0.6)) % 50_000}x"


def _mb(table: Table, name: str, server: Server) -> None:
    mb = server.rss_mb()
    table.rows.append((f"memory {name}, MB", f"{mb:.0f}", ""))
    table.values[f"memory {name}"] = mb
