"""Episodes: how long a lesson takes to be found, and how fast episodes are stored.

Vectors are random, of the model's size, in clusters as texts have them; words are drawn so that a few are
frequent and many are rare. Half of the searches are in one project of many, half in all. A size is left out
when the disk lacks room for it, and given up when its time is over.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import sys
import tempfile
import time
from array import array
from math import hypot
from pathlib import Path

from bench.stand import Table, median, percentile
from daemon.learning.embed.vectors import Vector
from daemon.learning.lessons.episodes import Episode
from daemon.learning.lessons.store import Episodes
from daemon.store.db import Database

DIMENSIONS = 384
CLUSTERS = 200
PROJECTS = 20
BLOCK = 1_000
SEARCHES = 60
MODEL = "bench"
BYTES = 6_000  # of one episode, with its indexes and logs
SECONDS = 300 + 0.006 * 1_000_000  # for one size: about an hour and three quarters
TELL_S = 10.0


def run(*, quick: bool = False, large: bool = False, million: bool = False) -> Table:
    """1,000 and 10,000 episodes, and 100,000 or 1,000,000 where that was asked for."""
    sizes = [1_000] if quick else [1_000, 10_000]
    sizes += [100_000] * (large or million) + [1_000_000] * million
    table = Table(
        f"Episodes: a search by meaning and words, ms, p50 / p95 ({SEARCHES} searches)",
        ("episodes", "stored/s", "first", "in 1 of 20 projects", "in all"),
    )
    for size in sizes:
        free = shutil.disk_usage(tempfile.gettempdir()).free
        if free < size * BYTES:
            table.notes.append(
                f"{size:,} left out: they take {size * BYTES / 1e9:.1f} GB, {free / 1e9:.1f} are free"
            )
            continue
        asyncio.run(_bounded(table, size))
    return table


async def _bounded(table: Table, size: int) -> None:
    began = time.monotonic()
    try:
        async with asyncio.timeout(SECONDS):
            await _size(table, size)
    except TimeoutError:
        table.notes.append(f"{size:,} given up after {(time.monotonic() - began) / 60:.0f} minutes")


class _Told:
    """Says from time to time how far a long run is, on standard error."""

    def __init__(self, size: int) -> None:
        self._size, self._began, self._told = size, time.monotonic(), time.monotonic()

    def now(self, what: str) -> None:
        """Say it, unless something was said a moment ago."""
        now = time.monotonic()
        if now - self._told > TELL_S:
            self._told = now
            print(
                f"  {self._size:,} episodes, {now - self._began:.0f} s: {what}", file=sys.stderr, flush=True
            )


async def _size(table: Table, size: int) -> None:
    told = _Told(size)
    folder = Path(tempfile.mkdtemp(prefix="rd-bench-"))
    db = Database(folder / "db", lambda: 0)
    store = Episodes(db)
    try:
        began, texts = time.perf_counter(), _Texts(size)
        for at in range(0, size, BLOCK):
            block = [texts.made(n) for n in range(at, min(at + BLOCK, size))]
            await asyncio.gather(*(store.add(episode, vector) for episode, vector in block))
            told.now(f"{at + BLOCK:,} stored")
        rate = size / (time.perf_counter() - began)
        first = await _timed(store, texts, None)
        one = [await _timed(store, texts, [f"/p{n % PROJECTS}"]) for n in range(SEARCHES)]
        every = [await _timed(store, texts, None) for _ in range(SEARCHES)]
    finally:
        db.close()
        shutil.rmtree(folder)
    shown = [f"{median(ms):.1f} / {percentile(ms, 0.95):.1f}" for ms in (one, every)]
    table.rows.append((f"{size:,}", f"{rate:,.0f}", f"{first:.0f}", *shown))
    table.values |= {f"sqlite_{size}_per_s": rate, f"sqlite_{size}_first_ms": first}
    for where, ms in (("project", one), ("all", every)):
        table.values |= {
            f"sqlite_{size}_{where}_p50_ms": median(ms),
            f"sqlite_{size}_{where}_p95_ms": percentile(ms, 0.95),
        }


async def _timed(store: Episodes, texts: _Texts, projects: list[str] | None) -> float:
    vector = texts.vector()
    began = time.perf_counter()
    await store.search(vector, projects, 50)
    return 1000 * (time.perf_counter() - began)


class _Texts:
    def __init__(self, size: int) -> None:
        self._rng = random.Random(size)
        self._centres = [[self._rng.gauss(0, 1) for _ in range(DIMENSIONS)] for _ in range(CLUSTERS)]
        self._noise = [self._rng.gauss(0, 0.7) for _ in range(9_973)]

    def made(self, number: int) -> tuple[Episode, Vector]:
        episode = Episode(
            id=f"{self._rng.getrandbits(128):032x}",
            project=f"/p{number % PROJECTS}",
            query=self._words(20),
            reward=-0.5,
            problem=self._words(8),
            lesson=self._words(12),
            reflection="",
            at=number,
        )
        return episode, self.vector()

    def _words(self, count: int) -> str:
        return " ".join(f"w{int(self._rng.paretovariate(0.6)) % 50_000}x" for _ in range(count))

    def vector(self) -> Vector:
        centre, at = self._rng.choice(self._centres), self._rng.randrange(len(self._noise) - DIMENSIONS)
        row = [a + b for a, b in zip(centre, self._noise[at : at + DIMENSIONS], strict=True)]
        length = hypot(*row)
        return Vector(MODEL, array("f", [x / length for x in row]).tobytes())
