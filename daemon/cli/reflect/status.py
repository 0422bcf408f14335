"""``reflectd reflect status`` and ``history``: the journal, what is suggested, and every rule.

They change nothing. Messages that contradict a rule since it was learned are shown; nothing follows from them
by itself. A journal that can't be used is told of; the next change keeps it aside.
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from ...learning.rules.candidates import quotes_of
from ...learning.rules.journal import due, is_due, ranked
from ...learning.rules.standing import CONTRADICTED, contradicting, facts, in_words
from ..render import Paint, count, place, plain, print_json, short
from ..terminal import say, show
from .decisions import rules_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Mapping

    from ...learning.rules.journal import Journal
    from ...learning.rules.journal_file import ProjectJournal
    from ...learning.rules.learned_rules import Look
    from ...learning.rules.standing import Standing

Json = dict[str, Any]
_ROW: Final = ("id", "text", "active", "file", "line", "learned", "archived", "reason", "note")


def status(args: argparse.Namespace) -> int:
    rules = rules_of(args)
    look = rules.look()
    found = summary(rules.journal, look.journal)
    if args.json:
        worn = [row_object(row, look) for row in look.rows if contradicting(row, look.journal["signals"])]
        about = {"project": str(rules.project), "file": str(rules.journal.path)}
        print_json({**about, **found, "worn": worn, "problems": look.problems})
        return 0
    tell(look.problems)
    paint = Paint()
    counts, many = found["counts"], found["rules"]
    told = [
        count(sum(counts.values()), "signal"),
        *(f"{counts[status]} {status}" for status in ("pending", "promoted", "dismissed")),
        f"{count(many['active'], 'active rule')}, {many['archived']} archived",
    ]
    lines = paint.row("", paint(place(rules.project), "bold") + ": " + ", ".join(told), "  ")
    for heading, part in (
        ("suggested as rules", "suggested"),
        ("not often enough yet", "waiting"),
        ("praise and blame, which make no rule", "feedback"),
    ):
        lines += _part(heading, (_pattern(signal, paint) for signal in found[part]), paint)
    show(lines + worn_lines(look, paint))
    return 0


def _part(heading: str, rows: Iterable[list[str]], paint: Paint) -> list[str]:
    """The lines of these rows below a heading; none without rows."""
    lines = [line for row in rows for line in row]
    return ["", paint(heading, "bold"), *lines] if lines else []


def summary(book: ProjectJournal, journal: Journal) -> Json:
    """Counts, suggested signals with quotes, those that wait, and praise and blame."""
    signals, rules, messages = journal["signals"], journal["learned_rules"], book.messages(journal).values()
    rest = [_shown(s) for s in ranked([s for s in signals if s["status"] == "pending" and not is_due(s)])]
    return {
        "counts": {
            **dict.fromkeys(("pending", "promoted", "dismissed"), 0),
            **Counter(s["status"] for s in signals),
        },
        "rules": {
            "active": sum(r["active"] for r in rules),
            "archived": sum(not r["active"] for r in rules),
        },
        "suggested": [{**_shown(s), "quotes": quotes_of(messages, str(s["id"]))} for s in due(journal)],
        "waiting": [s for s in rest if s["type"] != "feedback"],
        "feedback": [s for s in rest if s["type"] == "feedback"],
    }


def _shown(signal: Mapping[str, Any]) -> Json:
    """A signal without the fields that only counting needs."""
    return {key: value for key, value in signal.items() if key != "sightings"}


def _pattern(signal: Mapping[str, Any], paint: Paint) -> list[str]:
    often = f"{count(signal['occurrences'], 'session')}, {signal['severity']}, {signal['type']}"
    lines = paint.row(f"  {short(signal['id'], 40)}  ", f"{plain(short(signal['content'], 300))} ({often})")
    for quote in signal.get("quotes", ()):
        where = f"{short(quote['day'], 10)}  {short(quote['session'], 12)}  "
        lines += paint.row(f"      {where}", f'"{short(quote["text"], 200)}"')
    return lines


def worn_lines(look: Look, paint: Paint) -> list[str]:
    """The rules that were contradicted often enough to suggest unlearning them."""
    lines = list[str]()
    for row in look.rows:
        by = contradicting(row, look.journal["signals"])
        if by.total() >= CONTRADICTED:
            said = f"{in_words(by)}: reflectd reflect unlearn {row.id}"
            lines += paint.row(f"  {row.id}  ", short(row.text, 300))
            lines += paint.row("      ", paint(said, "yellow"))
    return ["", paint("perhaps to be unlearned", "bold"), *lines] if lines else []


# --- the history --------------------------------------------------------------------------------


def history(args: argparse.Namespace) -> int:
    rules = rules_of(args)
    look = rules.look()
    if args.json:
        print_json({
            "project": str(rules.project),
            "rules": [row_object(row, look) for row in look.rows],
            "by_hand": [{"text": line.text, "where": line.where} for line in look.by_hand],
            "problems": look.problems,
        })  # fmt: skip
        return 0
    tell(look.problems)
    if not look.rows and not look.by_hand:
        say(f"no rule was learned in {place(rules.project)} yet; `reflectd reflect learn` adds one")
        return 0
    paint = Paint()
    title = f"{count(len(look.rows), 'rule')} in {place(rules.project)}"
    lines = paint.row("", paint(title, "bold"), "  ")
    for heading, part in (
        ("active rules", [row for row in look.rows if row.active and not row.soft]),
        ("active preferences", [row for row in look.rows if row.active and row.soft]),
        ("archived", [row for row in look.rows if not row.active]),
    ):
        lines += _part(heading, (_row_lines(row, look, paint) for row in part), paint)
    own = (paint.row("  ", f"{plain(line.text)} ({short(line.where, 200)})") for line in look.by_hand)
    show(lines + _part("your own words among them", own, paint) + worn_lines(look, paint))
    return 0


def _row_lines(row: Standing, look: Look, paint: Paint) -> list[str]:
    about = f"{row.where}, {facts(row, look.journal['signals'])}".removesuffix(", ")
    return paint.row(f"  {row.id}  ", f"{plain(row.text)} ({short(about, 600)})")


def row_object(row: Standing, look: Look) -> Json:
    by = contradicting(row, look.journal["signals"])
    return {
        **{name: getattr(row, name) for name in _ROW},
        "target": "workshop_preference" if row.soft else "claude_md",
        "source_signals": list(row.sources),
        "contradicted": by.total(),
        "contradicted_by": list(by),
        "suggest_unlearning": by.total() >= CONTRADICTED,
    }


def tell(lines: Iterable[str]) -> None:
    """Lines that a person should know besides, on stderr."""
    for line in lines:
        say(f"reflectd: {plain(line)}", sys.stderr)
