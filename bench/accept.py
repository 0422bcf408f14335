"""Event accept: how long a host's POST takes and how many go through, beside a bare aiohttp handler."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.stand import REPO, Json, Server, Table, median

SHAPES = (("1", 1, 2_000, ()), ("64", 64, 8_000, ()), ("1,000", 1_000, 10_000, ()))
ANEW = ("64, new each time", 64, 4_000, ("--anew",))


def run(*, quick: bool) -> Table:
    """Interleaved rounds on both servers; medians over the rounds, the ratio within each round."""
    rounds = 2 if quick else 7
    shapes = [(n, c, r // 8 if quick else r, f) for n, c, r, f in (*SHAPES, ANEW)]
    seen: dict[tuple[str, str], list[Json]] = {}
    with tempfile.TemporaryDirectory(prefix="rdb-") as name:
        folder = Path(name).resolve()
        with Server(folder / "d") as daemon, Server(folder / "b", bare=True) as bare:
            for turn in range(rounds):
                servers = [("daemon", daemon), ("bare", bare)]
                for which, connections, requests, flags in shapes:
                    for kind, server in servers if turn % 2 else servers[::-1]:
                        # connections differ per shape, so their sessions do too; seq goes on over the rounds
                        sequence = turn * 1_000_000 + (500_000 if flags else 0)
                        args = [str(server.socket), str(connections), str(requests), str(sequence), *flags]
                        args += ["--greet"] if kind == "daemon" else []
                        before = server.cpu()
                        done = subprocess.run(
                            [sys.executable, "-m", "bench.load", *args],
                            cwd=REPO,
                            stdout=subprocess.PIPE,
                            check=True,
                        )
                        found = json.loads(done.stdout)
                        served = requests + connections * (2 if kind == "daemon" else 1)  # hello, warm-up
                        found["cpu"] = (server.cpu() - before) / served * 1e6
                        seen.setdefault((which, kind), []).append(found)
    table = Table(
        f"Event accept (batches of two events, medians of {rounds} rounds)",
        (
            "connections",
            "daemon p50",
            "p99 ms",
            "per s",
            "CPU µs",
            "bare p50",
            "p99 ms",
            "per s",
            "CPU µs",
            "rate/bare",
        ),
    )
    for which, *_ in shapes:
        ours, theirs = seen[which, "daemon"], seen[which, "bare"]
        ratio = median([a["rate"] / b["rate"] for a, b in zip(ours, theirs, strict=True)])
        cells = [which]
        table.values[which] = {"ratio": ratio}
        for kind, found in (("daemon", ours), ("bare", theirs)):
            p50, p99, rate, cpu = (median([f[k] for f in found]) for k in ("p50", "p99", "rate", "cpu"))
            cells += [f"{p50:.2f}", f"{p99:.2f}", f"{rate:,.0f}", f"{cpu:.0f}"]
            table.values[which][kind] = {"p50": p50, "p99": p99, "rate": rate, "cpu": cpu}
        table.rows.append((*cells, f"{ratio:.2f}"))
    busiest = max(median([f["client"] for f in found]) for found in seen.values())
    table.notes = [
        f"aims: p99 < 10 ms at 64, rate/bare >= 0.50; the load client used at most {busiest:.0%} of its core"
    ]
    return table
