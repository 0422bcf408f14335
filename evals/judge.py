"""``python -m evals.judge``: replay labelled cases and say how often the judge was right.

Rules by default, which cost nothing; a model's run costs about two calls a case. Exit code 1 when the rules
miss their aims on the held-out half, 2 for wrong arguments or cases. Answers go to stdout, progress to
stderr.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from daemon import config, log, paths
from daemon.core.errors import ReflectdError, UserError
from daemon.core.ports import Client
from daemon.engine.cases import Label, Loaded, load, templates_of
from daemon.engine.replay import replay
from daemon.files.case_folder import read_bytes
from daemon.files.prompts import read_layer
from daemon.llm.select import providers
from evals.report import as_json, table
from evals.score import Outcome, Score, score

if TYPE_CHECKING:
    from daemon.core.ports import Provider
    from daemon.core.settings import Settings
    from daemon.engine.replay import Replayed

CASES = Path(__file__).resolve().parents[1] / "tests" / "data" / "judge"
SPLITS = ("tuning", "heldout")
PRECISION, RECALL = 0.90, 0.60  # of "incomplete", by rules, on the held-out half


@dataclass(frozen=True, slots=True)
class Labelled:
    """A case that a person has judged."""

    loaded: Loaded
    label: Label


def main(argv: list[str]) -> int:
    """Run it; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m evals.judge", description=__doc__)
    parser.add_argument("--provider", default="offline", choices=("offline", "anthropic", "openai", "auto"))
    parser.add_argument("--split", default="all", choices=(*SPLITS, "all"), help="which half (both)")
    parser.add_argument("--cases", type=Path, default=CASES, metavar="DIR", help=f"where they are ({CASES})")
    parser.add_argument("--jobs", type=int, default=4, metavar="N", help="cases at once, for models (4)")
    parser.add_argument("--json", action="store_true", help="print figures and outcomes as JSON")
    args = parser.parse_args(argv)
    try:
        cases = read_cases(args.cases, args.split)
        settings = config.load(os.environ, paths.config_file(os.environ), {}, {})
        judges = providers(args.provider, settings, config.load_keys(os.environ, settings))
        log.configure(settings, sys.stderr)
        jobs = 1 if args.provider == "offline" else max(1, args.jobs)
        outcomes = asyncio.run(judge_all(cases, judges, settings, jobs))
    except ReflectdError as e:
        print(f"evals: {e}", file=sys.stderr)
        return 2 if isinstance(e, UserError) else 1
    halves = {s: [o for o in outcomes if o.split == s] for s in dict.fromkeys(o.split for o in outcomes)}
    scores = {split: score(found) for split, found in halves.items()}
    missed = aims_missed(scores["heldout"]) if args.provider == "offline" and "heldout" in scores else []
    if args.json:
        found = {split: as_json(scores[split], of) for split, of in halves.items()}
        print(json.dumps({"provider": args.provider, "splits": found, "aims_missed": missed}, indent=1))
    else:
        for split, of in halves.items():
            print("\n".join(table(f"{args.provider}, {split or 'no split'}", scores[split], of)), end="\n\n")
        print("\n".join(f"AIM MISSED: {text}" for text in missed), end="\n" if missed else "")
    return 1 if missed else 0


def read_cases(folder: Path, split: str) -> list[Labelled]:
    """The labelled cases of a folder, by name, with the prompts that are shipped. Raises ``UserError``."""
    shipped, found = templates_of(read_layer(paths.shipped("prompts")).texts), []
    for path in sorted(folder.glob("*.json")):
        loaded = load(read_bytes(path), str(path), lambda _: shipped)
        if loaded.label is not None and split in {"all", loaded.split}:
            found.append(Labelled(loaded, loaded.label))
    if not found:
        raise UserError(f"no labelled case of split {split} in {folder}")
    return found


async def judge_all(
    cases: list[Labelled], judges: tuple[Provider, ...], settings: Settings, jobs: int
) -> list[Outcome]:
    """The outcomes in the order of the cases, ``jobs`` at once."""
    room, done = asyncio.Semaphore(jobs), 0

    async def one(case: Labelled) -> Outcome:
        nonlocal done
        async with room:
            found = await replay(
                case.loaded.case,
                *judges,
                timeout_s=float(settings.judge.timeout_s),
                second_look=settings.judge.second_look,
            )
        done += 1
        end = "\r" if sys.stderr.isatty() and done < len(cases) else "\n"
        if end == "\r" or done == len(cases):
            print(f"{done}/{len(cases)} judged", end=end, file=sys.stderr, flush=True)
        return outcome(case, found)

    try:
        return await asyncio.gather(*(one(case) for case in cases))
    finally:
        for judge in judges:
            if isinstance(judge, Client):
                await judge.close()


def outcome(case: Labelled, found: Replayed) -> Outcome:
    """What one case gave. A failed check counts against ``complete`` where no row excuses it, or where the
    person who labelled the case didn't.
    """
    verdict, label = found.decision.verdict, case.label
    failed = [
        r
        for r in found.case.evidence.of("check")
        if r.outcome == "failed" and r.position == "after_last_write"
    ]
    broken = any(r.open or label.expect != "complete" for r in failed)
    costs = [c.cost for c in found.calls]
    said = verdict.feedback or verdict.reason
    return Outcome(
        name=Path(case.loaded.name).stem,
        split=case.loaded.split,
        expect=label.expect,
        got=verdict.state,
        ms=verdict.judge.ms,
        tokens_in=sum(c.input for c in found.calls),
        tokens_out=sum(c.output for c in found.calls),
        calls=len(found.calls),
        cost=None if None in costs else sum(c for c in costs if c is not None),
        why=f"{label.why} The judge: {' '.join(said.split())[:200] or 'nothing said'}",
        broken=verdict.state == "complete" and broken,
    )


def aims_missed(found: Score) -> list[str]:
    """Where the rules fall short of what they must reach on the held-out half."""
    incomplete = next(c for c in found.classes if c.name == "incomplete")
    precision, recall = incomplete.precision.value, incomplete.recall.value
    missed = []
    if precision is not None and precision < PRECISION:
        missed.append(f"precision of incomplete is {precision:.2f}, wanted {PRECISION:.2f}")
    if recall is None or recall < RECALL:
        missed.append(f"recall of incomplete is {recall or 0:.2f}, wanted {RECALL:.2f}")
    if found.broken:
        missed.append(f"{found.broken} called complete on a failed check after the last write")
    return missed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
