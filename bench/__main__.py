"""``python -m bench``: prints one table per benchmark; ``--json FILE`` keeps the numbers, ``--compare FILE``
sets them against those of an earlier run. A benchmark that fails does not stop the others.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import signal
import subprocess
import sys
import time
import traceback
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from bench import (
    accept,
    backtest,
    claude,
    dashboard,
    detector,
    embeddings,
    episodes,
    evidence,
    hosted,
    judged,
    learning,
    line,
    playbook,
    prompts,
    reflect,
    review,
    rollouts,
    starts,
    transcripts,
    turns,
    watching,
)
from bench.compare import BadFile, Run, compared, differences, load
from bench.stand import Failed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from bench.stand import Json, Table

BENCHMARKS: dict[str, Callable[..., Table]] = {
    "accept": accept.run,
    "order": turns.event_to_order,
    "judge": judged.model_to_order,
    "host": hosted.overhead,
    "start": starts.cold_start,
    "help": starts.command_help,
    "line": line.run,
    "dashboard": dashboard.run,
    "evidence": evidence.run,
    "detector": detector.run,
    "playbook": playbook.run,
    "compose": learning.composer,
    "transform": learning.transform,
    "review": review.run,
    "embeddings": embeddings.run,
    "embedding-memory": learning.memory,
    "episodes": episodes.run,
    "prompts": prompts.run,
    "transcript": transcripts.run,
    "rollout": rollouts.run,
    "reflect": reflect.run,
    "backtest": backtest.run,
    "hook": claude.hooks,
    "memory": turns.memory,
    "watching": watching.idle_cpu,
}

SIZED = {"transcript", "rollout", "reflect", "backtest"}
MB, QUICK_MB = 100, 10
LIMIT_S, QUICK_LIMIT_S = 3_600.0, 600.0
"""For one benchmark: more than ten times what the longest takes on idle cores."""


def main(argv: list[str], benchmarks: Mapping[str, Callable[..., Table]] = BENCHMARKS) -> int:
    """Run what is asked for, all by default. 1: one of them failed; 2: a wrong argument; 130: Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two minutes in all: fewer runs, smaller sizes")
    parser.add_argument(
        "--only", action="append", choices=benchmarks, metavar="NAME", help=", ".join(benchmarks)
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers to FILE")
    parser.add_argument(
        "--compare", type=Path, metavar="OLD", help="below each table: the ratios to the numbers in OLD"
    )
    parser.add_argument(
        "--mb", type=int, help=f"size of the generated transcript ({MB}, with --quick {QUICK_MB})"
    )
    parser.add_argument("--large", action="store_true", help="episodes, prompts: 100,000 (ten minutes)")
    parser.add_argument("--million", action="store_true", help="episodes: 1,000,000 of them too (an hour)")
    args = parser.parse_args(argv)
    try:
        old = load(args.compare) if args.compare else None
    except BadFile as e:
        parser.error(f"argument --compare: {e}")
    if args.json and not args.json.absolute().parent.is_dir():
        parser.error(f"argument --json: there is no folder {args.json.absolute().parent}")
    new = Run(_machine(), args.quick, {})
    facts = "{system}, {cores} cores, load {load}, Python {python} ({loop})"
    print(facts.format_map(new.machine))
    print("Trust ratios and medians; the machine may be doing other things.")
    if old is not None:
        for difference in differences(old, new):
            print(f"Compared with {args.compare}, which is another kind of run: {difference}")
    mb = args.mb or (QUICK_MB if args.quick else MB)
    limit_s = 0.0 if args.large or args.million else QUICK_LIMIT_S if args.quick else LIMIT_S
    failed, began = list[str](), time.monotonic()
    for name in dict.fromkeys(args.only or benchmarks):
        sized = {"mb": mb} if name in SIZED else {}
        sized |= {"large": args.large} if name in {"episodes", "prompts"} else {}
        sized |= {"million": args.million} if name == "episodes" else {}
        try:
            with _limit(limit_s):
                table = benchmarks[name](quick=args.quick, **sized)
        except KeyboardInterrupt:
            return 130
        except Exception as e:
            failed.append(name)
            print(f"\n{name}: failed: {_reason(e)}", flush=True)
            if not isinstance(e, Failed | subprocess.CalledProcessError):
                traceback.print_exc()
            continue
        new.benchmarks[name] = table.values
        print(f"\n{table.text()}", flush=True)
        if old is not None:
            print(_ratios(old, name, table.values), flush=True)
    print(f"\ntables: {len(new.benchmarks)}, seconds: {time.monotonic() - began:.0f}")
    if args.json:
        new.save(args.json)
    if failed:
        print(f"bench: failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _machine() -> Json:
    return {
        "system": platform.system(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "loop": "uvloop" if find_spec("uvloop") else "asyncio",
        "load": round(os.getloadavg()[0], 1),
    }


def _ratios(old: Run, name: str, values: Json) -> str:
    if name not in old.benchmarks:
        return "  not in the old run"
    table = compared(old.benchmarks[name], values)
    return table.text() if table.rows else "\n".join(["  no number in both runs", *table.notes])


def _reason(error: Exception) -> str:
    """One line, and of a program the end of what it said."""
    if isinstance(error, subprocess.CalledProcessError):
        said = error.stderr or b""
        text = said if isinstance(said, str) else said.decode("utf-8", "replace")
        command = " ".join(str(part) for part in error.cmd)[:200]
        return f"{command} ended with {error.returncode}\n{text[-2000:]}".rstrip()
    return f"{error}" if isinstance(error, Failed) else f"{type(error).__name__}: {error}"


@contextlib.contextmanager
def _limit(seconds: float) -> Iterator[None]:
    """The block fails when it takes longer; 0 for no limit."""

    def ring(*_: object) -> None:
        raise Failed(f"not over after {seconds:g} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
