"""``reflectd reflect status`` and ``history``: the journal, what is suggested, every rule, and each change.

They change nothing. What contradicts a rule since it was learned, and how long nobody confirmed it, is shown;
nothing follows from it by itself. A journal that can't be used is told of; the next change keeps it aside.
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from msgspec import to_builtins

from ...learning.rules.journal import is_due, ranked
from ...learning.rules.standing import NOTES, Wear, wear
from ..render import Paint, clock, count, place, plain, print_json, short
from ..terminal import say, show
from .decisions import rules_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Mapping

    from ...learning.rules.journal import Journal
    from ...learning.rules.learned_rules import Change, LearnedRules, Look
    from ...learning.rules.standing import Standing

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
            "worn": [row_object(row, worn) for row, worn in _wears(rules, look) if _speaks(worn)],
            "problems": look.problems,
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
    signals, rules = journal["signals"], journal["learned_rules"]
    due = ranked([s for s in signals if is_due(s)])
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
        "suggested": [{**_shown(s), "quotes": quotes.get(str(s["id"]), [])} for s in due],
        "waiting": [s for s in rest if s["type"] != "feedback"],
        "feedback": [s for s in rest if s["type"] == "feedback"],
    }


def _shown(signal: Mapping[str, Any]) -> Json:
    """A signal without the fields that only counting needs."""
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
    for heading, part in (
        ("suggested as rules", "suggested"),
        ("not often enough yet", "waiting"),
        ("praise and blame, which make no rule", "feedback"),
    ):
        lines += ["", paint(heading, "bold")] if found[part] else []
        for signal in found[part]:
            lines += _pattern(signal, paint)
    return lines


def _pattern(signal: Mapping[str, Any], paint: Paint) -> list[str]:
    """A signal for a person: what it asks for, how often, and what was said."""
    often = f"{count(signal['occurrences'], 'session')}, {signal['severity']}, {signal['type']}"
    lines = paint.row(f"  {short(signal['id'], 40)}  ", f"{plain(short(signal['content'], 300))} ({often})")
    for quote in signal.get("quotes", ()):
        where = f"{short(quote.get('day', ''), 10)}  {short(quote.get('session', ''), 12)}  "
        lines += paint.row(f"      {where}", f'"{short(quote.get("text", ""), 200)}"')
    return lines


# --- the history --------------------------------------------------------------------------------


def history(args: argparse.Namespace) -> int:
    """Show every rule and preference, active and archived, and the changes of them."""
    from ...learning.revisions import undone

    rules = rules_of(args)
    look, changes = rules.look(), rules.changes.all()
    gone, wears = undone(changes), _wears(rules, look)
    if args.json:
        shown = ({k: v for k, v in to_builtins(c).items() if k in _SHOWN} for c in changes)
        print_json({
            "project": str(rules.journal.project),
            "rules": [row_object(row, worn) for row, worn in wears],
            "changes": [{**change, "undone": change["number"] in gone} for change in shown],
            "by_hand": [{"text": line.text, "where": line.where} for line in look.by_hand],
            "problems": look.problems,
        })  # fmt: skip
        return 0
    tell(look.problems)
    if not look.rows and not look.by_hand and not changes:
        say(f"no rule was learned in {place(rules.journal.project)} yet; `reflectd reflect learn` adds one")
        return 0
    paint = Paint()
    title = f"{count(len(wears), 'rule')} in {place(rules.journal.project)}"
    lines = paint.row("", paint(title, "bold"), "  ")
    for heading, part in (
        ("active rules", [(row, worn) for row, worn in wears if row.active and not row.soft]),
        ("active preferences", [(row, worn) for row, worn in wears if row.active and row.soft]),
        ("archived", [(row, worn) for row, worn in wears if not row.active]),
    ):
        lines += ["", paint(heading, "bold")] if part else []
        for row, worn in part:
            lines += _row_lines(row, worn, paint)
    lines += ["", paint("your own words among them", "bold")] if look.by_hand else []
    for line in look.by_hand:
        lines += paint.row("  ", f"{plain(line.text)} ({short(line.where, 200)})")
    lines += ["", paint("changes", "bold")] if changes else []
    for change in changes[:CHANGES]:
        lines += _change(change, paint, undone=change.number in gone)
    show(lines, pager=not args.no_pager)
    return 0


def _row_lines(row: Standing, worn: Wear | None, paint: Paint) -> list[str]:
    """A rule for a person: what it says, where, since when, and how it wore."""
    facts = [row.where, f"learned {row.learned}" if row.learned else ""]
    if not row.active:
        facts += [f"archived {row.archived}" if row.archived else "", row.reason]
    told = ", ".join(short(fact, 200) for fact in (*facts, NOTES[row.note]) if fact)
    return paint.row(f"  {row.id}  ", f"{plain(row.text)} ({told})") + _wear_lines(row, worn, paint)


def _change(change: Change, paint: Paint, *, undone: bool) -> list[str]:
    why = f": {short(change.why, 200)}" if change.why else ""
    why += "" if change.by == "you" else f", in the {short(change.by, 40)}"
    what = f"{short(change.what, 200)}{why}{' (undone)' if undone else ''}"
    return paint.row(f"  {change.number:>3}  {clock(change.at)}  ", what)


# --- how rules wear -----------------------------------------------------------------------------


def _wears(rules: LearnedRules, look: Look) -> list[tuple[Standing, Wear | None]]:
    """All rows, with how each active rule of the person's own wore."""
    signals, today = look.journal["signals"], rules.journal.day()
    return [(row, wear(row, signals, today) if row.active and row.mine else None) for row in look.rows]


def _speaks(worn: Wear | None) -> bool:
    return worn is not None and bool(worn.contradicted or worn.stale)


def worn_lines(rules: LearnedRules, look: Look, paint: Paint, *, suggested: bool = False) -> list[str]:
    """The rules against which something speaks, for a person: those suggested for unlearning first, or only
    those.
    """
    lines: list[str] = []
    found = [(row, worn) for row, worn in _wears(rules, look) if worn is not None and _speaks(worn)]
    parts = {True: "perhaps to be unlearned", False: "contradicted, or not confirmed for long"}
    for worst in (True,) if suggested else (True, False):
        some = [(row, worn) for row, worn in found if worn.worn is worst]
        lines += ["", paint(parts[worst], "bold")] if some else []
        for row, worn in some:
            lines += paint.row(f"  {row.id}  ", short(row.text, 300)) + _wear_lines(row, worn, paint)
    return lines


def _wear_lines(row: Standing, worn: Wear | None, paint: Paint) -> list[str]:
    """The facts against a rule, for a person."""
    lines: list[str] = []
    if worn is not None and worn.contradicted:
        by = ", ".join(short(name, 40) for name in worn.by[:3])
        often = "once" if worn.contradicted == 1 else f"{worn.contradicted} times"
        said = f"you contradicted it {often} ({by})"
        said = f"{said}: reflectd reflect unlearn {row.id}" if worn.worn else said
        lines += paint.row("      ", paint(said, "yellow" if worn.worn else "dim"))
    if worn is not None and worn.stale:
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


def tell(lines: Iterable[str]) -> None:
    """Lines that a person should know besides, on stderr."""
    for line in lines:
        say(f"reflectd: {plain(line)}", sys.stderr)
