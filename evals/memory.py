"""``python -m evals.memory``: how often a task gets its lesson, and how often one gets a lesson that is none.

A case is one JSON object on a line: a task in somebody's words, stored with a lesson or asked about. For each
embedding (MiniLM from ``make embed``, and words alone): hit@3 with its 95 % interval, false lessons among
near misses and unrelated tasks, and what each signal adds. No model is asked, no cost. Exit code 2 for wrong
cases; with ``--strict`` 1 when an aim is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from daemon.memory.margin import MOST_FALSE, Task, line_of, outcomes_of, texts_of, trials
from daemon.memory.weights import BY_TASK, WITH_MEANING, WITHOUT_MEANING

from daemon.core.errors import UserError
from daemon.core.shares import Share, wilson
from daemon.embed.minilm import MODEL, MiniLM, missing
from evals.memory_actions import Pair, as_json_of, reminded, table_of
from evals.report import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from daemon.memory.margin import Outcome, Trial
    from daemon.memory.weights import Weights

DATA: Final = Path(__file__).resolve().parents[1] / "tests" / "data" / "memory"
HIT, UNRELATED = 0.85, 0.0
WORDS: Final = "words alone"
PARTS: Final = (
    ("meaning of the task", ("meaning",)),
    ("meaning of task and lesson", ("whole",)),
    ("words in common", ("words", "told", "explained")),
    ("what is to be done", ("same_action", "other_action")),
    ("names in code", ("same_names", "other_names")),
    ("margin to the others", ("ahead", "above")),
)
Rows = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Result:
    """The figures with one embedding, at the line that the product draws."""

    name: str
    tasks: int
    first: Share
    third: Share
    hits: Share
    false: Share
    near: Share
    unrelated: Share
    languages: Mapping[str, Share]
    parts: Mapping[str, tuple[float, float]]


def main(argv: list[str]) -> int:
    """Run it; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m evals.memory", description=__doc__)
    parser.add_argument("--cases", type=Path, default=DATA / "tuning.jsonl", metavar="FILE", help="the tasks")
    parser.add_argument("--actions", type=Path, metavar="FILE", help="pairs of a stored failure and a call")
    parser.add_argument("--wrong", action="store_true", help="list what went wrong")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--strict", action="store_true", help="exit code 1 when an aim is missed")
    args = parser.parse_args(argv)
    actions = args.actions or args.cases.with_name(f"{args.cases.stem}_actions.jsonl")
    try:
        tasks = read_tasks(args.cases)
        pairs = read_cases(actions, Pair) if args.actions or actions.exists() else []
    except (UserError, OSError) as e:
        print(f"evals: {e}", file=sys.stderr)
        return 2
    rows = None if missing() else rows_of(tasks)
    embedded = [(MODEL, rows, WITH_MEANING), (f"{MODEL}, of the task alone", rows, BY_TASK)] if rows else []
    if not embedded:
        print("evals: no model for embeddings is installed: `make embed`", file=sys.stderr)
    results, wrong = [], dict[str, list[str]]()
    for name, given, weights in (*embedded, (WORDS, None, WITHOUT_MEANING)):
        tried = trials(tasks, given, wholly=weights is not BY_TASK)
        outcomes = outcomes_of(tried, weights)
        results.append(result(name, outcomes, weights, ablation(tried, weights)))
        wrong[name] = mistakes(outcomes, weights.line)
    met = reminded(pairs)
    missed = aims_missed(results)
    if args.json:
        shown = {"results": [asdict(r) for r in results], "actions": as_json_of(met), "aims_missed": missed}
        print(json.dumps(shown | ({"wrong": wrong} if args.wrong else {}), indent=1, ensure_ascii=False))
    else:
        print("\n".join([*table(results), *(table_of(met) if pairs else [])]))
        for name in wrong if args.wrong else ():
            print("\n".join(["", f"wrong with {name}:", *(wrong[name] or ["  nothing"])]))
        print("\n".join(f"AIM MISSED: {text}" for text in missed), end="\n" if missed else "")
    return 1 if missed and args.strict else 0


def read_tasks(path: Path) -> list[Task]:
    """The tasks of one file. Raises ``UserError`` when one is wrong, or nothing can be measured."""
    tasks = read_cases(path, Task)
    known = {t.group for t in tasks if t.stored and t.group}
    for task in tasks:
        if task.group is not None and task.group not in known:
            raise UserError(f"{path}: {task.id}: no task of group {task.group} is stored")
    if not any(t.group and not t.stored for t in tasks) or not any(not t.group for t in tasks):
        raise UserError(f"{path}: there must be asked tasks with a stored lesson, and some without")
    return tasks


def read_cases(path: Path, kind: type[T]) -> list[T]:
    """One value a line. Raises ``UserError`` when one is wrong."""
    found: list[T] = []
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            found += [msgspec.json.decode(line, type=kind)] if line.strip() else []
        except msgspec.MsgspecError as e:
            raise UserError(f"{path}, line {number}: {e}") from None
    return found


def rows_of(tasks: Sequence[Task]) -> Rows:
    """The vector of each text."""
    texts = texts_of(tasks)

    async def made() -> Rows:
        model = MiniLM()
        try:
            return dict(zip(texts, (await model.embed(texts)).rows, strict=True))
        finally:
            await model.close()

    return asyncio.run(made())


def result(
    name: str, outcomes: Sequence[Outcome], weights: Weights, parts: Mapping[str, tuple[float, float]]
) -> Result:
    """The figures at the line of ``weights``."""
    line = weights.line
    same = [o for o in outcomes if o.kind == "same"]
    other = [o for o in outcomes if o.kind != "same"]

    def got(of: Sequence[Outcome]) -> Share:
        return wilson(sum(o.best >= line for o in of), len(of))

    def hit(of: Sequence[Outcome]) -> Share:
        return wilson(sum(o.hit >= line for o in of), len(of))

    languages = sorted({o.task.language for o in same})
    return Result(
        name,
        len(outcomes),
        wilson(sum(o.first for o in same), len(same)),
        wilson(sum(o.hit >= 0 for o in same), len(same)),
        hit(same),
        got(other),
        got([o for o in other if o.kind == "near"]),
        got([o for o in other if o.kind == "unrelated"]),
        {language: hit([o for o in same if o.task.language == language]) for language in languages},
        parts,
    )


def ablation(tried: Sequence[Trial], weights: Weights) -> dict[str, tuple[float, float]]:
    """What is lost without each signal: hit@3 without any line, and at the line with as many false lessons as
    are allowed. The other weights stay as they are.
    """
    found = {}
    for name, of in (("all", ()), *PARTS):
        if of and not any(part in weights.of for part in of):
            continue
        less = replace(weights, of={n: w for n, w in weights.of.items() if n not in of})
        outcomes = outcomes_of(tried, less)
        same = [o.hit >= 0 for o in outcomes if o.kind == "same"]
        found[name] = (sum(same) / len(same), line_of(outcomes, MOST_FALSE).hits)
    return found


def mistakes(outcomes: Sequence[Outcome], line: float) -> list[str]:
    """What went wrong, a line each."""
    return [
        f"  {o.kind:<9} {max(o.best, 0):.2f} {o.task.id}: {o.task.text[:80]}"
        for o in outcomes
        if (o.hit < line if o.kind == "same" else o.best >= line)
    ]


def aims_missed(results: Sequence[Result]) -> list[str]:
    """Where the ranker falls short with the embedding."""
    found = next((r for r in results if r.name != WORDS), None)
    if found is None:
        return ["the aims are for the ranker with embeddings, and there are none: `make embed`"]
    hits, false, unrelated = (s.value or 0.0 for s in (found.hits, found.false, found.unrelated))
    missed = [f"hit@3 is {hits:.2f}, wanted {HIT}"] * (hits < HIT)
    missed += [f"false lessons are {false:.2f}, wanted at most {MOST_FALSE}"] * (false > MOST_FALSE)
    return missed + [f"of unrelated tasks {unrelated:.2f} get a lesson, wanted 0"] * (unrelated > UNRELATED)


def table(results: Sequence[Result]) -> list[str]:
    """The figures for a person."""
    lines = [f"{results[0].tasks} asked tasks"]
    for r in results:
        rows = (
            ("hit@3", r.hits),
            ("false lessons", r.false),
            ("  near misses", r.near),
            ("  unrelated", r.unrelated),
            ("hit@1 without a line", r.first),
            ("hit@3 without a line", r.third),
        )
        lines += ["", r.name, *(f"  {name:<24}{counted(share):>28}" for name, share in rows)]
        lines += [f"  hit@3 in {language:<15}{counted(share):>28}" for language, share in r.languages.items()]
        lines.append(f"  {'':<28}{'no line':>8}{f'{MOST_FALSE:.0%} false':>12}")
        whole = r.parts["all"]
        lines.append(f"  {'all signals':<28}{whole[0]:>8.2f}{whole[1]:>12.2f}")
        for name, (free, gated) in r.parts.items():
            if name != "all":
                lines.append(f"  without {name:<20}"[:30].ljust(30) + f"{free:>8.2f}{gated:>12.2f}")
    return lines


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
