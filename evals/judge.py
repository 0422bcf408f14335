"""``python -m evals.judge``: replay labelled cases and say how often the judge was right.

Rules by default, which cost nothing; a model's run costs about two calls a case. ``--dump`` writes prompts as
files and ``--replies`` reads the replies from there (``evals.replies``), so that any model can be measured.
``fresh`` is the held-out part, to be opened once; on it the rules have aims. A case without a split counts as
``tuning``. Exit code 2 for wrong arguments, cases or files; with ``--strict`` 1 when an aim is missed.
Answers go to stdout, progress to stderr.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from daemon import config, log, paths
from daemon.core.errors import ReflectdError, UserError
from daemon.core.fast import needs_second_look
from daemon.core.ports import Client
from daemon.files.cases import read_file
from daemon.files.prompts import read_layer
from daemon.judge.flow import always
from daemon.judge.prompts import first
from daemon.keys import load_keys
from daemon.llm.select import providers
from daemon.replay.cases import Label, Loaded, load, replay
from evals.replies import PROVIDER, Replies, check_dump, make_dump, nonce_of
from evals.report import as_json, counted, table
from evals.score import PENDING, Outcome, Score, score

if TYPE_CHECKING:
    from daemon.core.ports import Provider
    from daemon.core.settings import Settings
    from daemon.replay.cases import Replayed

CASES = Path(__file__).resolve().parents[1] / "tests" / "data" / "judge"
TUNING, FRESH = "tuning", "fresh"
PRECISION = {"incomplete": 0.90, "complete": 0.85}  # by rules, on the held-out part, where they speak
HELD_OUT = "this opens the held-out part (fresh), once: no rule or prompt may change for what it shows"


class Labelled(Struct, frozen=True):
    """A case that a person has judged."""

    loaded: Loaded
    label: Label

    @property
    def name(self) -> str:
        """The file's name without its ending."""
        return Path(self.loaded.name).stem


def main(argv: list[str]) -> int:
    """Run it; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m evals.judge", description=__doc__)
    who = parser.add_mutually_exclusive_group()
    who.add_argument("--provider", default="offline", choices=("offline", "anthropic", "openai", "auto"))
    who.add_argument("--dump", type=Path, metavar="DIR", help="judge nothing, write each case's first prompt")
    who.add_argument("--replies", type=Path, metavar="DIR", help="judge with the replies in a dump")
    parser.add_argument("--split", default=TUNING, choices=(TUNING, FRESH, "all"), help="which part (tuning)")
    parser.add_argument("--cases", type=Path, default=CASES, metavar="DIR", help=f"where they are ({CASES})")
    parser.add_argument("--jobs", type=int, default=4, metavar="N", help="cases at once, for models (4)")
    parser.add_argument("--small", action="store_true", help="look twice, as where a small model judges")
    parser.add_argument("--json", action="store_true", help="print figures and outcomes as JSON")
    parser.add_argument("--strict", action="store_true", help="exit code 1 when an aim is missed")
    args = parser.parse_args(argv)
    try:
        cases = read_cases(args.cases, args.split)
        if any(c.loaded.split == FRESH for c in cases):
            print(f"evals: {HELD_OUT}", file=sys.stderr)
        outcomes = run(cases, args)
    except (ReflectdError, OSError) as e:
        print(f"evals: {e}", file=sys.stderr)
        return 2 if isinstance(e, UserError | OSError) else 1
    provider = "dump" if args.dump else PROVIDER if args.replies else args.provider
    return show(outcomes, provider, args)


def run(cases: list[Labelled], args: argparse.Namespace) -> list[Outcome]:
    """Judge the cases as the arguments say; their outcomes."""
    settings = config.load(os.environ, paths.config_file(os.environ))
    log.configure(settings, sys.stderr)
    folder: Path | None = args.dump or args.replies
    if folder is None:
        judges = providers(args.provider, settings, load_keys(os.environ, settings))
        jobs = 1 if args.provider == "offline" else max(1, args.jobs)
        return asyncio.run(judge_all(cases, judges, settings, jobs, small=args.small))
    names = {c.name for c in cases}
    if args.dump:
        make_dump(folder, names)
    else:
        check_dump(folder, names)
    files = Replies(folder, names, dump=args.dump is not None)
    outcomes = asyncio.run(judge_all([fenced(c) for c in cases], (files,), settings, 1, small=args.small))
    files.check()
    waiting = files.pending
    return [replace(o, got=PENDING, why=str(waiting[o.name])) if o.name in waiting else o for o in outcomes]


def show(outcomes: list[Outcome], provider: str, args: argparse.Namespace) -> int:
    """Print the figures of each part, and how the aims were met; the exit code."""
    parts = {s: [o for o in outcomes if o.split == s] for s in dict.fromkeys(o.split for o in outcomes)}
    scores = {split: score(found) for split, found in parts.items()}
    aimed = scores.get(FRESH) if provider == "offline" else None
    missed = aims_missed(aimed) if aimed else []
    if args.json:
        found = {split: as_json(scores[split], of) for split, of in parts.items()}
        print(json.dumps({"provider": provider, "splits": found, "aims_missed": missed}, indent=1))
    elif args.dump:
        print(
            f"{sum(s.pending for s in scores.values())} prompts of {len(outcomes)} cases are in {args.dump}"
        )
        print(
            "Write each answer to <digest>/1-judge.reply.txt, then judge with --replies (make: REPLIES=DIR)."
        )
    else:
        for split, of in parts.items():
            print("\n".join(table(f"{provider}, {split or 'no split'}", scores[split], of)), end="\n\n")
        if aimed:
            print("aims:", ", ".join(f"precision of {c} at least {p:.2f}" for c, p in PRECISION.items()))
        print("\n".join(f"AIM MISSED: {text}" for text in missed), end="\n" if missed else "")
    return 1 if missed and args.strict else 0


def read_cases(folder: Path, split: str) -> list[Labelled]:
    """The labelled cases of a folder, by name, with the prompts that are shipped. Raises ``UserError``."""
    shipped, found = read_layer(paths.shipped("prompts")).texts, []
    for path in sorted(folder.glob("*.json")):
        loaded = load(read_file(path), str(path), lambda _: shipped)
        if loaded.label is not None and split in {"all", loaded.split or TUNING}:
            found.append(Labelled(loaded, loaded.label))
    if not found:
        raise UserError(f"no labelled case of split {split} in {folder}")
    return found


def fenced(case: Labelled) -> Labelled:
    """The case with the same marker in each run, so that a reply from a file fits its prompt."""
    of = replace(case.loaded.case, nonce=nonce_of(case.name))
    return replace(case, loaded=replace(case.loaded, case=of))


async def judge_all(
    cases: list[Labelled], judges: tuple[Provider, ...], settings: Settings, jobs: int, *, small: bool = False
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
                second_look=always if small else partial(needs_second_look, settings),
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
    prompt = first(found.case).prompt(found.case.templates)
    return Outcome(
        name=case.name,
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
        system_chars=len(prompt.system),
        data_chars=len(prompt.text),
        counted=next((c.input for c in found.calls if c.purpose == prompt.purpose and c.input), None),
    )


def aims_missed(found: Score) -> list[str]:
    """Where the rules fall short of what they must reach on the held-out part. A class that they never name
    has no precision, and how often they speak has no aim.
    """
    missed = [
        f"precision of {c.name} is {counted(c.precision)}, wanted {PRECISION[c.name]:.2f}"
        for c in found.classes
        if c.name in PRECISION and c.precision.value is not None and c.precision.value < PRECISION[c.name]
    ]
    if found.broken:
        missed.append(f"{found.broken} called complete on a failed check after the last write")
    return missed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
