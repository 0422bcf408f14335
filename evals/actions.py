"""``python -m evals.actions stuck|compaction``: how well a small model reads a silent or a compacted session.

Cases are lines of JSON: a transcript, what events say besides (``seen``, of a silent session), and the answer
that a person expects. ``--dump`` writes the prompts as files and ``--replies`` reads the replies from there
(``evals.replies``). What the fixed rules answer needs neither and is counted apart. Exit code 2 for wrong
arguments, cases or files.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from daemon import paths
from daemon.compaction import case as compaction
from daemon.core.errors import UserError
from daemon.core.question import ask
from daemon.core.transcript import Transcript
from daemon.engine.page import Share, wilson
from daemon.files.prompts import read_layer
from daemon.stuck import silence as stuck
from daemon.stuck.loops import loop_in
from evals.replies import answered
from evals.report import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from daemon.core.llm import Prompt, Reply

    Flow = Generator[Prompt, Reply, "stuck.Assessment | compaction.Outcome"]

DATA: Final = Path(__file__).resolve().parents[1] / "tests" / "data"
CASES: Final = {
    "stuck": DATA / "stuck" / "silent.jsonl",
    "compaction": DATA / "compaction" / "cases.jsonl",
}
ANSWERS: Final[dict[str, tuple[str, ...]]] = {
    "stuck": get_args(stuck.Reason),
    "compaction": get_args(compaction.Action),
}


class Case(msgspec.Struct, forbid_unknown_fields=True):
    """One labelled line. ``seen`` is given for a silent session only."""

    name: str
    expect: str
    why: str
    host: Literal["opencode", "claude-code"]
    transcript: Transcript
    seen: stuck.Seen | None = None


class Outcome(Struct, frozen=True):
    """What was expected and what came; ``got`` is "" where a reply could not be used. ``by``: a rule's or a
    model's answer.
    """

    name: str
    expect: str
    got: str
    by: Literal["rules", "replies"]


def main(argv: list[str]) -> int:
    """Run it; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m evals.actions", description=__doc__)
    parser.add_argument("question", choices=(*CASES,))
    who = parser.add_mutually_exclusive_group(required=True)
    who.add_argument("--dump", type=Path, metavar="DIR", help="ask nobody, write each prompt")
    who.add_argument("--replies", type=Path, metavar="DIR", help="measure the replies in a dump")
    parser.add_argument("--cases", type=Path, metavar="FILE", help="labelled cases, one on a line")
    parser.add_argument("--json", action="store_true", help="print figures and mistakes as JSON")
    args = parser.parse_args(argv)
    folder: Path = args.dump or args.replies
    try:
        cases = read_cases(args.cases or CASES[args.question], args.question)
        flows: dict[str, Callable[[str], Flow]] = {c.name: partial(flow_of, c) for c in cases}
        found = answered(folder, flows, dump=args.dump is not None)
    except (UserError, OSError) as e:
        print(f"evals: {e}", file=sys.stderr)
        return 2
    if args.dump:
        print(f"{len(found.pending)} prompts of {len(cases)} cases are in {folder}")
        print("Write each answer to <digest>/1-<purpose>.reply.txt, then use --replies (make: REPLIES=DIR).")
        return 0
    outcomes = [outcome(c, found.results[c.name]) for c in cases if c.name in found.results]
    figures, wrong = figures_of(outcomes, ANSWERS[args.question]), [o for o in outcomes if o.got != o.expect]
    if args.json:
        shown = {"figures": figures, "wrong": wrong, "pending": sorted(found.pending)}
        print(json.dumps(msgspec.to_builtins(shown), indent=1, ensure_ascii=False))
        return 0
    print("\n".join(table(outcomes, figures)))
    why = {c.name: c.why for c in cases}
    for o in wrong:
        print(f"  {o.name}: expected {o.expect}, got {o.got or 'nothing'}\n    {why[o.name]}")
    print("\n".join(f"pending: {path}" for path in found.pending.values()))
    return 0


def read_cases(path: Path, question: str) -> list[Case]:
    """The cases of a file. Raises ``UserError`` when one is wrong, or there is none."""
    cases: list[Case] = []
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            case = msgspec.json.decode(line, type=Case)
        except msgspec.MsgspecError as e:
            raise UserError(f"{path}, line {number}: {e}") from None
        if case.expect not in ANSWERS[question] or (case.seen is None) is (question == "stuck"):
            raise UserError(f"{path}, line {number}: no case for {question}")
        cases.append(case)
    if not cases:
        raise UserError(f"{path} holds no case")
    return cases


def flow_of(case: Case, nonce: str) -> Flow:
    """The question as the daemon asks it, with the prompts that are shipped."""
    texts: Mapping[str, str] = read_layer(paths.shipped("prompts")).texts
    if case.seen is None:
        compacted = compaction.make_case(case.transcript)
        if (outcome := compaction.certain(compacted)) is not None:
            return outcome
        question = replace(compaction.question(compacted), nonce=nonce)
        return compaction.outcome((yield from ask(question, texts)))
    silent = stuck.make_case(case.transcript, case.seen, loop_in(case.transcript))
    if silent is None:
        raise UserError(f"{case.name}: nobody asked for anything")
    if (sure := stuck.certain(silent)) is not None:
        return sure
    return stuck.assessment((yield from ask(replace(stuck.question(silent), nonce=nonce), texts)))


def outcome(case: Case, found: stuck.Assessment | compaction.Outcome) -> Outcome:
    """What came of one case."""
    got = found.reason if isinstance(found, stuck.Assessment) else found.action
    return Outcome(case.name, case.expect, got or "", "rules" if found.provider == stuck.RULES else "replies")


def figures_of(outcomes: Sequence[Outcome], answers: Sequence[str]) -> dict[str, dict[str, Share]]:
    """Of each answer, precision and recall; and how many are right, by who answered."""
    by: dict[str, dict[str, Share]] = {}
    for answer in answers:
        said, there = ([o for o in outcomes if answer == getattr(o, of)] for of in ("got", "expect"))
        hits = sum(o.got == answer for o in there)
        by[answer] = {"precision": wilson(hits, len(said)), "recall": wilson(hits, len(there))}
    for who in ("rules", "replies"):
        of = [o for o in outcomes if o.by == who]
        by[who] = {"right": wilson(sum(o.got == o.expect for o in of), len(of))}
    return by


def table(outcomes: Sequence[Outcome], figures: Mapping[str, Mapping[str, Share]]) -> list[str]:
    """The figures for a person."""
    cases: Counter[str] = Counter(o.expect for o in outcomes)
    lines = [f"{len(outcomes)} cases", "", f"{'answer':<22}{'cases':>6}{'precision':>28}{'recall':>28}"]
    for name, of in figures.items():
        shown = "".join(f"{counted(share):>28}" for share in of.values())
        lines.append(
            f"{name:<22}{cases[name]:>6}{shown}" if "recall" in of else f"right by {name}: {shown.strip()}"
        )
    return lines


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
