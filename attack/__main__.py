"""``python -m attack``: attacks the real daemon, prints a table, and ends with 1 when something was found.

Each attack has its own sandbox and stops after ``--seconds``. What is random follows from ``--seed``.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

from attack import api, clock, damage, inject, kills, load, shared, stalls, telling, transcripts
from attack.outcome import SHOWN, Deadline, Outcome
from bench.stand import Table

if TYPE_CHECKING:
    from collections.abc import Callable


def main(argv: list[str]) -> int:
    """Run what is asked for, all by default."""
    parser = argparse.ArgumentParser(prog="python -m attack", description=__doc__)
    numbers = (
        ("kills", 200, "kill -9 so often, with new sessions each time"),
        ("sessions", 10_000, "so many sessions for the load"),
        ("events", 100, "events of each of them"),
        ("requests", 100_000, "requests made from the schemas"),
        ("transcripts", 5_000, "damaged transcripts"),
        ("texts", 200, "long and hostile texts"),
        ("changes", 200, "changes of a shared store by somebody else"),
        ("jumps", 20, "jumps of the clock"),
        ("streams", 300, "sessions into which another plugin puts messages"),
        ("rows", 5_000, "texts with telling names in each row"),
        ("seconds", 1_800, "each attack stops after so many"),
        ("seed", 1, "what is random follows from it"),
    )
    for name, default, words in numbers:
        parser.add_argument(f"--{name}", type=int, default=default, help=f"{words} ({default})")
    parser.add_argument("--rate", type=float, default=12.0, help="sessions a second (12)")
    parser.add_argument("--p99-ms", type=float, default=15.0, help="how long an event may take (15)")
    names = (
        "kills",
        "api",
        "transcripts",
        "stalls",
        "telling",
        "clock",
        "inject",
        "shared",
        "damage",
        "load",
    )
    parser.add_argument("--only", action="append", choices=names, help="one of them; may be repeated")
    args = parser.parse_args(argv)
    attacks: dict[str, Callable[[Deadline], Outcome]] = {
        "kills": lambda d: kills.run(args.kills, args.seed, d),
        "api": lambda d: api.run(args.requests, args.seed, d),
        "transcripts": lambda d: transcripts.run(args.transcripts, args.seed, d),
        "stalls": lambda d: stalls.run(args.texts, args.seed, d),
        "telling": lambda d: telling.run(args.rows, args.seed, d),
        "clock": lambda d: clock.run(args.jumps, args.seed, d),
        "inject": lambda d: inject.run(args.streams, args.seed, d),
        "shared": lambda d: shared.run(args.changes, args.seed, d),
        "damage": lambda d: damage.run(args.seed, d),
        "load": lambda d: load.run(args.sessions, args.events, args.rate, args.p99_ms, d),
    }
    table = Table("Attacks", ("attack", "done", "of", "seconds", "findings", "figures"))
    outcomes = []
    for name in args.only or names:
        began = time.monotonic()
        print(f"{name} …", flush=True)
        found = attacks[name](Deadline(args.seconds))
        outcomes.append(found)
        for finding in found.findings[:SHOWN]:
            print(f"  FOUND {finding}", flush=True)
        took, count = time.monotonic() - began, len(found.findings)
        row = (found.name, f"{found.done:,}", f"{found.wanted:,}", f"{took:.0f}", f"{count}", found.figures)
        table.rows.append(row)
    print(f"\n{table.text()}")
    return 1 if any(o.findings for o in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
