"""``reflectd reflect status``: what is in a project's journal, and what is suggested as a rule.

It changes nothing. A journal that can't be used is told of; the next change keeps it aside.
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

from ..render import Paint, count, place, plain, print_json, short
from ..terminal import add_flag, say, show
from .action import action, rules_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Mapping, Sequence

    from ...files.journal import Changed
    from ...learning.rules.journal import Entry, Journal

Json = dict[str, Any]


def add_parser(what: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the action."""
    add_flag(action(what, "status", "what is in the journal, and what is suggested", run))


def run(args: argparse.Namespace) -> int:
    """Show it."""
    from .worn import worn_lines, worn_objects

    rules = rules_of(args)
    book, look = rules.journal, rules.look()
    quotes = book.state.load("quotes")
    if args.json:
        print_json({
            "project": str(book.project),
            "file": str(book.path),
            **summary(look.journal, quotes),
            "worn": worn_objects(rules, look),
            "problems": list(look.problems),
        })  # fmt: skip
        return 0
    tell(look.problems)
    paint = Paint()
    lines = lines_of(look.journal, place(book.project), quotes, paint) + worn_lines(rules, look, paint)
    show(lines, pager=not args.no_pager)
    return 0


def summary(journal: Journal, quotes: Mapping[str, Any]) -> Json:
    """The journal in numbers, with the signals that are suggested, what was said of them, those that wait,
    and praise and blame, which make no rule.
    """
    from ...learning.rules.journal import is_due, ranked

    signals = journal["signals"]
    rules = journal["learned_rules"]
    due = ranked([s for s in signals if is_due(s)])
    rest = ranked([s for s in signals if s["status"] == "pending" and s not in due])
    return {
        "counts": {
            **dict.fromkeys(("pending", "promoted", "dismissed"), 0),
            **Counter(s["status"] for s in signals),
        },
        "rules": {
            "active": sum(r["active"] for r in rules),
            "archived": sum(not r["active"] for r in rules),
        },
        "suggested": [{**shown(s), "quotes": quotes.get(str(s["id"]), [])} for s in due],
        "waiting": [shown(s) for s in rest if s["type"] != "feedback"],
        "feedback": [shown(s) for s in rest if s["type"] == "feedback"],
    }


def shown(signal: Mapping[str, Any]) -> Json:
    """A signal without what only counting needs."""
    return {key: value for key, value in signal.items() if key != "sightings"}


def lines_of(journal: Journal, project: str, quotes: Mapping[str, Any], paint: Paint) -> list[str]:
    """The same for a person, with what they said."""
    found = summary(journal, quotes)
    counts, rules = found["counts"], found["rules"]
    told = [
        count(sum(counts.values()), "signal"),
        *(f"{counts[status]} {status}" for status in ("pending", "promoted", "dismissed")),
        f"{count(rules['active'], 'active rule')}, {rules['archived']} archived",
    ]
    lines = paint.row("", paint(project, "bold") + ": " + ", ".join(told), "  ")
    if found["suggested"]:
        lines += ["", paint("suggested as rules", "bold")]
        for signal in found["suggested"]:
            lines += pattern(signal, signal["quotes"], paint)
    for heading, part in (
        ("not often enough yet", "waiting"),
        ("praise and blame, which make no rule", "feedback"),
    ):
        lines += ["", paint(heading, "bold")] if found[part] else []
        for signal in found[part]:
            lines += pattern(signal, (), paint)
    return lines


def pattern(signal: Mapping[str, Any], quotes: Sequence[Mapping[str, Any]], paint: Paint) -> list[str]:
    """A signal for a person: what it asks for, how often, and what was said."""
    often = f"{count(signal['occurrences'], 'session')}, {signal['severity']}, {signal['type']}"
    lines = paint.row(f"  {short(signal['id'], 40)}  ", f"{plain(short(signal['content'], 300))} ({often})")
    for quote in quotes:
        where = f"{short(quote.get('day', ''), 10)}  {short(quote.get('session', ''), 12)}  "
        lines += paint.row(f"      {where}", f'"{short(quote.get("text", ""), 200)}"')
    return lines


def tell_changed(args: argparse.Namespace, done: Changed[list[Entry]], verb: str, undo: str = "") -> None:
    """Say which signals were changed."""
    if args.json:
        print_json({"changed": done.written, "signals": [shown(s) for s in done.result], "told": done.told})
        return
    tell(done.told)
    for signal in done.result:
        say(f"{verb} {short(signal['id'], 40)}: {short(signal['content'], 300)}")
    if undo:
        say(f"{undo} {' '.join(s['id'] for s in done.result)}")


def tell(lines: Iterable[str]) -> None:
    """What a person should know besides, on stderr."""
    for line in lines:
        say(f"reflectd: {plain(line)}", sys.stderr)
