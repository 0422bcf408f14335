"""``python -m evals.reflect``: read labelled messages and say how often the rules were right about them.

Precision and recall of each class with 95 % intervals, of all signals together, and how often the instruction
was worded alike. No model, no cost. A case is one JSON object on a line of a ``.jsonl`` file: ``text``,
``prior_assistant``, ``type``, ``content``. Exit code 2 for wrong cases; with ``--strict`` 1 when an aim is
missed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from daemon.api.rules import classify
from daemon.core.errors import UserError
from daemon.core.shares import Share, wilson
from daemon.rules.patterns import alike, shape_of
from daemon.rules.signals import Kind, Reading
from evals.report import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

CASES: Final = Path(__file__).resolve().parents[1] / "tests" / "data" / "reflect" / "tuning"
SIGNALS: Final = ("correction", "instruction", "positive", "negative")
PRECISION, RECALL = 0.85, 0.50  # of all signals, on messages that nobody tuned the rules on
SHOWN: Final = 110  # characters of a message


class Case(msgspec.Struct):
    """One labelled message."""

    text: str
    type: Kind
    prior_assistant: str | None = ""
    content: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was expected of a message, and what came."""

    case: Case
    got: Reading

    @property
    def right(self) -> bool:
        """Whether it is of the right class."""
        return self.got.type == self.case.type


def main(argv: list[str]) -> int:
    """Run it; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m evals.reflect", description=__doc__)
    parser.add_argument("--cases", type=Path, default=CASES, metavar="DIR", help=f"where they are ({CASES})")
    parser.add_argument("--json", action="store_true", help="print figures and mistakes as JSON")
    parser.add_argument("--strict", action="store_true", help="exit code 1 when an aim is missed")
    args = parser.parse_args(argv)
    try:
        outcomes = [Outcome(c, classify(c.text, c.prior_assistant or "")) for c in read_cases(args.cases)]
    except (UserError, OSError) as e:
        print(f"evals: {e}", file=sys.stderr)
        return 2
    missed = aims_missed(outcomes)
    if args.json:
        print(json.dumps({**as_json(outcomes), "aims_missed": missed}, indent=1, ensure_ascii=False))
    else:
        print("\n".join(table(outcomes)))
        print("\n".join(f"AIM MISSED: {text}" for text in missed), end="\n" if missed else "")
    return 1 if missed and args.strict else 0


def read_cases(folder: Path) -> list[Case]:
    """The cases of a folder or of one file. Raises ``UserError`` when one is wrong or none is there."""
    cases: list[Case] = []
    for path in [folder] if folder.is_file() else sorted(folder.glob("*.jsonl")):
        for number, line in enumerate(path.read_bytes().splitlines(), 1):
            try:
                cases += [msgspec.json.decode(line, type=Case)] if line.strip() else []
            except msgspec.MsgspecError as e:
                raise UserError(f"{path}, line {number}: {e}") from None
    if not cases:
        raise UserError(f"there is no labelled message in {folder}")
    return cases


def precision(outcomes: Sequence[Outcome], names: Sequence[str]) -> Share:
    """Of the messages that the rules called one of these, those that are what they were called."""
    said = [o for o in outcomes if o.got.type in names]
    return wilson(sum(o.right for o in said), len(said))


def recall(outcomes: Sequence[Outcome], names: Sequence[str]) -> Share:
    """Of the messages that are one of these, those that the rules called so."""
    there = [o for o in outcomes if o.case.type in names]
    return wilson(sum(o.right for o in there), len(there))


def false_alarms(outcomes: Sequence[Outcome]) -> Share:
    """Of the messages that are no signal, those that the rules called one."""
    none = [o for o in outcomes if o.case.type == "none"]
    return wilson(sum(o.got.type != "none" for o in none), len(none))


def worded(outcomes: Sequence[Outcome]) -> Share:
    """Of the corrections and instructions that were found, those worded as the label has it."""
    found = [o for o in outcomes if o.right and o.case.type in SIGNALS[:2] and o.case.content]
    return wilson(sum(alike(shape_of(o.got.content), shape_of(o.case.content)) for o in found), len(found))


def aims_missed(outcomes: Sequence[Outcome]) -> list[str]:
    """Where the rules fall short, over all signals."""
    exact, found = precision(outcomes, SIGNALS), recall(outcomes, SIGNALS)
    missed = [f"precision is {exact.value or 0:.2f}, wanted {PRECISION}"] * ((exact.value or 0) < PRECISION)
    return missed + [f"recall is {found.value or 0:.2f}, wanted {RECALL}"] * ((found.value or 0) < RECALL)


def table(outcomes: Sequence[Outcome]) -> list[str]:
    """The figures for a person, then each mistake."""
    cases: Counter[str] = Counter(o.case.type for o in outcomes)
    lines = [f"{len(outcomes)} messages, {len(outcomes) - cases['none']} of them signals", ""]
    lines.append(f"{'class':<14}{'cases':>6}{'precision':>32}{'recall':>32}")
    for name, of in (*((s, (s,)) for s in SIGNALS), ("all signals", SIGNALS)):
        many = sum(cases[s] for s in of)
        row = f"{counted(precision(outcomes, of)):>32}{counted(recall(outcomes, of)):>32}"
        lines.append(f"{name:<14}{many:>6}{row}")
    lines += ["", f"false alarms on other messages: {counted(false_alarms(outcomes))}"]
    lines.append(f"instructions worded alike: {counted(worded(outcomes))}")
    wrong = [o for o in outcomes if not o.right]
    lines += ["", "wrong:"] if wrong else ["", "nothing wrong"]
    for o in wrong:
        text = " ".join(o.case.text.split())[:SHOWN]
        lines.append(f"  {o.case.type} called {o.got.type} ({o.got.confidence:.2f}): {text}")
    return lines


def as_json(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The same, for programs."""
    classes = {
        name: {"precision": asdict(precision(outcomes, of)), "recall": asdict(recall(outcomes, of))}
        for name, of in (*((s, (s,)) for s in SIGNALS), ("all", SIGNALS))
    }
    wrong = [
        {"text": o.case.text, "expect": o.case.type, "got": o.got.type, "confidence": o.got.confidence}
        for o in outcomes
        if not o.right
    ]
    shares = {"false_alarms": asdict(false_alarms(outcomes)), "worded": asdict(worded(outcomes))}
    return {"cases": len(outcomes), "classes": classes, **shares, "wrong": wrong}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
