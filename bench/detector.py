"""Loop detectors: what one event costs in a long session, and what reading a transcript's end costs."""

from __future__ import annotations

import time
from collections import deque
from random import Random
from typing import TYPE_CHECKING

from bench.evidence import transcript
from bench.stand import Table, median
from daemon.stuck.loops import SIZE, Step, loop_at_end, step_from_digests, steps

if TYPE_CHECKING:
    from collections.abc import Callable

EVENTS = 5_000


def call(i: int, result: int = 0, *, tool: str = "bash", failed: bool = False) -> Step:
    """A call as it comes from a host's events."""
    return step_from_digests(tool, f"{i:016x}", f"{result:016x}", failed=failed)


def working(random: Random) -> Callable[[int], Step]:
    """A session at work: reads, edits, tests of which a third fails."""
    tools = ("read", "grep", "edit", "bash", "bash")

    def step(i: int) -> Step:
        tool = tools[i % len(tools)]
        known = tool == "bash" and random.random() < 0.7
        return call(random.randrange(6) if known else i, i, tool=tool, failed=known and i % 3 == 0)

    return step


def sessions() -> dict[str, Callable[[int], Step]]:
    """By name: the step at each position."""
    random = Random(4)
    return {
        "at work": working(random),
        "waiting, same answer": lambda _: step_from_digests("taskoutput", "a", "b", failed=False),
        "loop of five calls": lambda i: call(i % 5, failed=i % 5 == 3),
        "same files, no order": lambda i: call(i * i % 7, tool="read"),
        "fails in ever other ways": lambda i: call(i, i, failed=True),
    }


def run(*, quick: bool) -> Table:
    """Median over runs of the mean time of ``loop_at_end`` per event."""
    runs = 3 if quick else 11
    table = Table(f"Loop detectors, {EVENTS:,} events a session ({runs} runs)", ("session", "µs per event"))
    for name, step in sessions().items():
        events = [step(i) for i in range(EVENTS)]
        seconds = []
        for _ in range(runs):
            row: deque[Step] = deque(maxlen=SIZE)
            began = time.perf_counter()
            for event in events:
                row.append(event)
                loop_at_end(tuple(row))
            seconds.append((time.perf_counter() - began) / EVENTS)
        us = median(seconds) * 1e6
        table.rows.append((name, f"{us:.1f}"))
        table.values[name] = {"us": us}
    long = transcript(1_000_000)
    seconds = []
    for _ in range(runs):
        began = time.perf_counter()
        loop_at_end(steps(long))
        seconds.append(time.perf_counter() - began)
    ms = median(seconds) * 1000
    table.values["1 MB"] = {"ms": ms}
    table.notes.append(f"aim: < 50 µs per event; a transcript of 1 MB: {ms:.1f} ms")
    return table
