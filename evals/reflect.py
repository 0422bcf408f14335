"""``python -m evals.reflect``: how well a small model reads what a person typed, and finds contradictions.

A folder has ``signals.jsonl`` ({"text", "prior_assistant", "type", "content"} a line) and
``contradicts.jsonl`` ({"rule", "statements", "contradicts": numbers from 1}); one of them may be missing.
``--dump`` writes the prompts as files and ``--replies`` reads the replies from there (``evals.replies``), so
any model can be measured. Without either it says how many signals the keywords alone would show to a person.
Messages are asked about in batches, as `/reflect` does. Exit code 2 for wrong cases or files.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from msgspec import Struct, to_builtins
from msgspec.structs import replace

from daemon import paths
from daemon.core.errors import UserError
from daemon.core.question import Answer, Question, Texts, ask
from daemon.core.transcript import Said
from daemon.engine.page import Share, wilson
from daemon.files.prompts import read_layer
from daemon.learning.rules import questions
from daemon.learning.rules.candidates import Candidate, candidate_of, for_a_person
from daemon.learning.rules.journal import Kind
from evals.replies import answered
from evals.report import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from daemon.core.llm import Prompt, Reply

T = TypeVar("T")
Json = dict[str, Any]
CASES: Final = Path(__file__).resolve().parents[1] / "tests" / "data" / "reflect"
SIGNALS: Final = ("correction", "instruction", "positive", "negative")
SHOWN: Final = 110  # characters of a message


class Message(msgspec.Struct):
    """One labelled message."""

    text: str
    type: Kind
    prior_assistant: str | None = ""
    content: str = ""


class Rule(msgspec.Struct):
    """One labelled rule. ``contradicts``: numbers of its statements, from 1."""

    rule: str
    statements: list[str]
    contradicts: list[int]


class Outcome(Struct, frozen=True):
    """What was expected of something, and what came; ``got`` is "" where a reply left it out."""

    text: str
    expect: str
    got: str


def main(argv: list[str]) -> int:
    """Run it; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m evals.reflect", description=__doc__)
    parser.add_argument("--cases", type=Path, default=CASES, metavar="DIR", help=f"where they are ({CASES})")
    who = parser.add_mutually_exclusive_group()
    who.add_argument("--dump", type=Path, metavar="DIR", help="ask nobody, write each prompt")
    who.add_argument("--replies", type=Path, metavar="DIR", help="read the replies in a dump")
    parser.add_argument("--json", action="store_true", help="print figures and mistakes as JSON")
    args = parser.parse_args(argv)
    try:
        messages = read_cases(args.cases / "signals.jsonl", Message)
        rules = read_cases(args.cases / "contradicts.jsonl", Rule)
        if not messages and not rules:
            raise UserError(f"there is no labelled case in {args.cases}")
        folder: Path | None = args.dump or args.replies
        if folder is None:
            print("\n".join(by_keyword(messages)))
            return 0
        return show(args, messages, rules, folder)
    except (UserError, OSError) as e:
        print(f"evals: {e}", file=sys.stderr)
        return 2


def show(args: argparse.Namespace, messages: Sequence[Message], rules: Sequence[Rule], folder: Path) -> int:
    """Write the prompts, or print the figures by the replies."""
    texts = read_layer(paths.shipped("prompts")).texts
    batches = dict(named("signals", questions.batches(messages)))
    pairs = dict(named("contradicts", rules))
    flows: dict[str, Callable[[str], Generator[Prompt, Reply, Answer[Any]]]]
    flows = {
        name: partial(_asked, questions.to_read([candidate(m) for m in batch], ()), texts)
        for name, batch in batches.items()
    }
    for name, rule in pairs.items():
        flows[name] = partial(_asked, questions.to_compare(rule.rule, rule.statements), texts)
    found = answered(folder, flows, dump=args.dump is not None)
    if args.dump:
        print(
            f"{len(found.pending)} prompts of {len(messages)} messages and {len(rules)} rules are in {folder}"
        )
        print("Write each answer to <digest>/1-<purpose>.reply.txt, then use --replies (make: REPLIES=DIR).")
        return 0
    read = [o for name, of in batches.items() for o in _said(of, found.results.get(name))]
    compared = [o for name, of in pairs.items() for o in _met(of, found.results.get(name))]
    if args.json:
        print(json.dumps(as_json(read, compared, len(found.pending)), indent=1, ensure_ascii=False))
    else:
        print("\n".join(table(read, compared)))
        print("\n".join(f"pending: {path}" for path in found.pending.values()))
    return 0


def named(name: str, found: Sequence[T]) -> list[tuple[str, T]]:
    """Names of cases."""
    return [(f"{name}-{number:03d}", case) for number, case in enumerate(found, 1)]


def read_cases(path: Path, form: type[T]) -> list[T]:
    """The cases of a file; none where it is missing. Raises ``UserError`` when one is wrong."""
    cases: list[T] = []
    for number, line in enumerate(path.read_bytes().splitlines() if path.exists() else (), 1):
        try:
            cases += [msgspec.json.decode(line, type=form)] if line.strip() else []
        except msgspec.MsgspecError as e:
            raise UserError(f"{path}, line {number}: {e}") from None
    return cases


def candidate(message: Message) -> Candidate:
    """The message as `/reflect` keeps it, also one that is too long to be kept."""
    found = candidate_of(Said(message.text, message.prior_assistant or "", session="s", message="m"))
    return found or Candidate("", message.text, message.prior_assistant or "")


def precision(outcomes: Sequence[Outcome], names: Sequence[str]) -> Share:
    """Of what was called one of these, what is what it was called."""
    said = [o for o in outcomes if o.got in names]
    return wilson(sum(o.got == o.expect for o in said), len(said))


def recall(outcomes: Sequence[Outcome], names: Sequence[str]) -> Share:
    """Of what is one of these, what was called so."""
    there = [o for o in outcomes if o.expect in names]
    return wilson(sum(o.got == o.expect for o in there), len(there))


def by_keyword(messages: Sequence[Message]) -> list[str]:
    """How many messages a person would be shown who has no model (TR3's keywords)."""
    shown = [m for m in messages if for_a_person([candidate(m)])]
    there = [m for m in messages if m.type in SIGNALS[:2]]
    found = [m for m in shown if m.type in SIGNALS[:2]]
    return [
        "without a model, by the keywords of the requirements:",
        f"  corrections and instructions shown: {counted(wilson(len(found), len(there)))}",
        f"  of what is shown, one of them: {counted(wilson(len(found), len(shown)))}",
    ]


def table(read: Sequence[Outcome], compared: Sequence[Outcome]) -> list[str]:
    """The figures for a person, then each mistake."""
    cases: Counter[str] = Counter(o.expect for o in read)
    lines = [f"{len(read)} messages, {len(read) - cases['none']} of them signals", ""]
    lines.append(f"{'class':<14}{'cases':>6}{'precision':>32}{'recall':>32}")
    for name, of in classes():
        many = sum(cases[s] for s in of)
        row = f"{counted(precision(read, of)):>32}{counted(recall(read, of)):>32}"
        lines.append(f"{name:<14}{many:>6}{row}")
    met = ("contradicts",)
    lines += ["", f"{len(compared)} pairs of a rule and a statement"]
    lines.append(f"  precision {counted(precision(compared, met))}, recall {counted(recall(compared, met))}")
    wrong = [o for o in (*read, *compared) if o.got != o.expect]
    lines += ["", "wrong:"] if wrong else ["", "nothing wrong"]
    for o in wrong:
        lines.append(f"  {o.expect} called {o.got or 'nothing'}: {' '.join(o.text.split())[:SHOWN]}")
    return lines


def as_json(read: Sequence[Outcome], compared: Sequence[Outcome], pending: int) -> Json:
    """The same, for programs."""
    met = ("contradicts",)
    return {
        "messages": len(read),
        "classes": {
            name: {"precision": to_builtins(precision(read, of)), "recall": to_builtins(recall(read, of))}
            for name, of in classes()
        },
        "pairs": len(compared),
        "contradicts": {
            "precision": to_builtins(precision(compared, met)),
            "recall": to_builtins(recall(compared, met)),
        },
        "pending": pending,
        "wrong": [to_builtins(o) for o in (*read, *compared) if o.got != o.expect],
    }


def classes() -> Sequence[tuple[str, tuple[str, ...]]]:
    """Each type of signal, and all of them."""
    return (*((s, (s,)) for s in SIGNALS), ("all signals", SIGNALS))


def _asked(question: Question[T], texts: Texts, nonce: str) -> Generator[Prompt, Reply, Answer[T]]:
    return ask(replace(question, nonce=nonce), texts)


def _said(batch: Sequence[Message], found: Answer[questions.Signals] | None) -> list[Outcome]:
    if found is None:
        return []
    read = questions.readings(found.reply, (), len(batch))
    return [Outcome(m.text, m.type, read[at].type if at in read else "") for at, m in enumerate(batch)]


def _met(rule: Rule, found: Answer[questions.Contradicts] | None) -> list[Outcome]:
    if found is None:
        return []
    met = questions.compared(found.reply, rule.statements).contradicts
    outcomes = []
    for at, statement in enumerate(rule.statements):
        expect = "contradicts" if at + 1 in rule.contradicts else "none"
        got = "" if found.reply is None else "contradicts" if at in met else "none"
        outcomes.append(Outcome(f"{rule.rule} / {statement}", expect, got))
    return outcomes


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
