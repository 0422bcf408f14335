"""``reflectd reflect status`` and ``history``: the journal, what is suggested, every rule, and each change.

They change nothing. What contradicts a rule since it was learned, and how long nobody confirmed it, is shown;
nothing follows from it by itself. A journal that can't be used is told of; the next change keeps it aside.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from ...learning.rules.standing import NOTES, wear
from ..render import Paint, clock, count, place, plain, print_json, short
from ..terminal import say, show
from .decisions import rules_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Mapping, Sequence

    from ...learning.rules.changes import Change
    from ...learning.rules.journal import Journal
    from ...learning.rules.learned_rules import LearnedRules, Look
    from ...learning.rules.standing import Standing, Wear

Json = dict[str, Any]
CHANGES: Final = 10
_SHOWN: Final = frozenset({"number", "at", "what", "why", "by", "file", "undoes"})


def run(args: argparse.Namespace) -> int:
    """Show the journal."""
    rules = rules_of(args)
    book, look = rules.journal, rules.look()
    quotes = book.state.load("quotes")
    if args.json:
        print_json({
            "project": str(book.project),
            "file": str(book.path),
            **summary(look.journal, quotes),
            "worn": [row_object(row, worn) for row, worn in _worn(rules, look)],
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


# --- the history --------------------------------------------------------------------------------


def history(args: argparse.Namespace) -> int:
    """Show every rule and preference, active and archived, and the changes of them."""
    rules = rules_of(args)
    look = rules.look()
    worn = wear_of(rules, look)
    if args.json:
        print_json(_history_object(rules, look, worn))
        return 0
    tell(look.problems)
    if not look.rows and not look.by_hand and not rules.changes.all():
        say(f"no rule was learned in {place(rules.journal.project)} yet; `reflectd reflect learn` adds one")
        return 0
    show(_history_lines(rules, look, worn, Paint()), pager=not args.no_pager)
    return 0


def _history_object(rules: LearnedRules, look: Look, worn: dict[int, Wear]) -> Json:
    """All of it for a script."""
    from ...learning.revisions import undone

    changes = rules.changes.all()
    gone = undone(changes)
    return {
        "project": str(rules.journal.project),
        "rules": [row_object(row, worn.get(i)) for i, row in enumerate(look.rows)],
        "changes": [
            {key: value for key, value in asdict(c).items() if key in _SHOWN} | {"undone": c.number in gone}
            for c in changes
        ],
        "by_hand": [{"text": line.text, "where": line.where} for line in look.by_hand],
        "problems": list(look.problems),
    }


def _history_lines(rules: LearnedRules, look: Look, worn: dict[int, Wear], paint: Paint) -> list[str]:
    """The same for a person."""
    rows = list(enumerate(look.rows))
    parts = [
        ("active rules", [(i, r) for i, r in rows if r.active and not r.soft]),
        ("active preferences", [(i, r) for i, r in rows if r.active and r.soft]),
        ("archived", [(i, r) for i, r in rows if not r.active]),
    ]
    lines = paint.row(
        "", paint(f"{count(len(rows), 'rule')} in {place(rules.journal.project)}", "bold"), "  "
    )
    for heading, part in parts:
        lines += ["", paint(heading, "bold")] if part else []
        for i, row in part:
            lines += row_lines(row, worn.get(i), paint)
    lines += ["", paint("your own words among them", "bold")] if look.by_hand else []
    for line in look.by_hand:
        lines += paint.row("  ", f"{plain(line.text)} ({short(line.where, 200)})")
    changes = rules.changes.all()
    if changes:
        lines += ["", paint("changes", "bold")]
        lines += [line for change in changes[:CHANGES] for line in _change(change, changes, paint)]
    return lines


def row_lines(row: Standing, worn: Wear | None, paint: Paint) -> list[str]:
    """A rule for a person: what it says, where, since when, and how it wore."""
    where = f"{row.file}:{row.line}" if row.line else row.file
    facts = [where, f"learned {row.learned}" if row.learned else ""]
    if not row.active:
        facts += [f"archived {row.archived}" if row.archived else "", row.reason]
    facts += [NOTES[row.note]] if row.reason != NOTES[row.note] else []
    told = ", ".join(short(fact, 200) for fact in facts if fact)
    lines = paint.row(f"  {row.id}  ", f"{plain(row.text)} ({told})")
    if worn is not None:
        lines += wear_lines(row, worn, paint)
    return lines


def _change(change: Change, every: list[Change], paint: Paint) -> list[str]:
    from ...learning.revisions import undone

    note = " (undone)" if change.number in undone(every) else ""
    why = f": {short(change.why, 200)}" if change.why else ""
    why += "" if change.by == "you" else f", in the {short(change.by, 40)}"
    return paint.row(f"  {change.number:>3}  {clock(change.at)}  ", f"{short(change.what, 200)}{why}{note}")


def wear_of(rules: LearnedRules, look: Look) -> dict[int, Wear]:
    """How each active rule of the person's own wore, by its place among the rows."""
    signals, today = look.journal["signals"], rules.journal.day()
    mine = ((i, row) for i, row in enumerate(look.rows) if row.active and row.note != "another")
    return {i: wear(row, signals, today) for i, row in mine}


def wear_lines(row: Standing, worn: Wear, paint: Paint) -> list[str]:
    """What speaks against a rule, for a person; nothing when nothing does."""
    lines = []
    if worn.worn:
        by = ", ".join(short(name, 40) for name in worn.by[:3])
        said = f"you contradicted it {worn.contradicted} times ({by}): reflectd reflect unlearn {row.id}"
        lines += paint.row("      ", paint(said, "yellow"))
    elif worn.contradicted:
        lines += paint.row("      ", paint(f"you contradicted it once ({short(worn.by[0], 40)})", "dim"))
    if worn.stale:
        lines += paint.row("      ", paint(f"nobody confirmed it for {worn.days} days", "dim"))
    return lines


def row_object(row: Standing, worn: Wear | None) -> Json:
    """A rule for a script."""
    found = {
        "id": row.id,
        "text": row.text,
        "active": row.active,
        "target": "workshop_preference" if row.soft else "claude_md",
        "file": row.file,
        "line": row.line,
        "learned": row.learned,
        "archived": row.archived,
        "reason": row.reason,
        "note": row.note,
        "source_signals": list(row.sources),
    }
    if worn is not None:
        found |= {
            "contradicted": worn.contradicted,
            "contradicted_by": list(worn.by),
            "confirmed": worn.confirmed,
            "unconfirmed_days": worn.days,
            "suggest_unlearning": worn.worn,
        }
    return found


def worn_lines(rules: LearnedRules, look: Look, paint: Paint, *, suggested: bool = False) -> list[str]:
    """What speaks against rules, for a person: what is suggested for unlearning first, or only that."""
    found = _worn(rules, look)
    lines = _part("perhaps to be unlearned", [each for each in found if each[1].worn], paint)
    if suggested:
        return lines
    rest = [each for each in found if not each[1].worn]
    return lines + _part("contradicted, or not confirmed for long", rest, paint)


def _worn(rules: LearnedRules, look: Look) -> list[tuple[Standing, Wear]]:
    """The rules against which something speaks, with what does."""
    wears = wear_of(rules, look).items()
    return [(look.rows[i], worn) for i, worn in wears if worn.contradicted or worn.stale]


def _part(heading: str, found: Sequence[tuple[Standing, Wear]], paint: Paint) -> list[str]:
    lines = []
    for row, worn in found:
        lines += paint.row(f"  {row.id}  ", short(row.text, 300)) + wear_lines(row, worn, paint)
    return ["", paint(heading, "bold"), *lines] if lines else []


def tell(lines: Iterable[str]) -> None:
    """What a person should know besides, on stderr."""
    for line in lines:
        say(f"reflectd: {plain(line)}", sys.stderr)
