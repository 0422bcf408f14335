"""``python -m bench``: prints one table per benchmark; with ``--json FILE`` the numbers go there too."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
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
    starts,
    transcripts,
    turns,
    watching,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.stand import Table

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
    "reflect": reflect.run,
    "backtest": backtest.run,
    "hook": claude.hooks,
    "memory": turns.memory,
    "watching": watching.idle_cpu,
}


def main(argv: list[str]) -> int:
    """Run what is asked for, all by default."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer runs, rougher numbers")
    parser.add_argument(
        "--only", action="append", choices=BENCHMARKS, metavar="NAME", help=", ".join(BENCHMARKS)
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers to FILE")
    parser.add_argument("--mb", type=int, default=100, help="size of the generated transcript (100)")
    parser.add_argument("--large", action="store_true", help="episodes, prompts: 100,000 (ten minutes)")
    parser.add_argument("--million", action="store_true", help="episodes: 1,000,000 of them too (an hour)")
    args = parser.parse_args(argv)
    load = os.getloadavg()[0]
    loop = "uvloop" if find_spec("uvloop") else "asyncio"
    python = f"Python {platform.python_version()} ({loop})"
    print(f"{platform.system()}, {os.cpu_count()} cores, load {load:.1f}, {python}")
    print("Trust ratios and medians; the machine may be doing other things.")
    values = {}
    try:
        for name in args.only or BENCHMARKS:
            sized = {"mb": args.mb} if name in {"transcript", "reflect", "backtest"} else {}
            sized |= {"large": args.large} if name in {"episodes", "prompts"} else {}
            sized |= {"million": args.million} if name == "episodes" else {}
            table = BENCHMARKS[name](quick=args.quick, **sized)
            values[name] = table.values
            print(f"\n{table.text()}", flush=True)
    except KeyboardInterrupt:
        return 130
    except subprocess.CalledProcessError as e:
        print(f"bench: {name} stopped: {' '.join(e.cmd)} ended with {e.returncode}", file=sys.stderr)
        return 1
    if args.json:
        args.json.write_text(json.dumps(values, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
