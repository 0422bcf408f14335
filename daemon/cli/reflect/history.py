"""``reflectd reflect history``: every rule and preference, active and archived, and the changes of them.

It changes nothing. What contradicts a rule since it was learned, and how long nobody confirmed it, is shown;
nothing follows from it by itself.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ...learning.rules.standing import NOTES
from ..render import Paint, clock, count, place, plain, print_json, short
from ..terminal import add_flag, say, show
from .action import action, rules_of
from .status import tell
from .worn import row_object, wear_lines, wear_of

if TYPE_CHECKING:
    import argparse

    from ...files.learned_rules import LearnedRules, Look
    from ...files.rule_changes import Change
    from ...learning.rules.standing import Standing, Wear

CHANGES = 10


def add_parser(what: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the action."""
    add_flag(action(what, "history", "every rule, active and archived, and each change", run))


def run(args: argparse.Namespace) -> int:
    """Show them."""
    rules = rules_of(args)
    look = rules.look()
    worn = wear_of(rules, look)
    if args.json:
        print_json(history_object(rules, look, worn))
        return 0
    tell(look.problems)
    if not look.rows and not look.by_hand and not rules.changes.all():
        say(f"no rule was learned in {place(rules.journal.project)} yet; `reflectd reflect learn` adds one")
        return 0
    show(lines_of(rules, look, worn, Paint()), pager=not args.no_pager)
    return 0


def history_object(rules: LearnedRules, look: Look, worn: dict[int, Wear]) -> dict[str, Any]:
    """All of it for a script."""
    from ...files.rule_changes import undone

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


_SHOWN = {"number", "at", "what", "why", "by", "file", "undoes", "done"}


def lines_of(rules: LearnedRules, look: Look, worn: dict[int, Wear], paint: Paint) -> list[str]:
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
    from ...files.rule_changes import undone

    note = " (undone)" if change.number in undone(every) else "" if change.done else " (interrupted)"
    why = f": {short(change.why, 200)}" if change.why else ""
    why += "" if change.by == "you" else f", in the {short(change.by, 40)}"
    return paint.row(f"  {change.number:>3}  {clock(change.at)}  ", f"{short(change.what, 200)}{why}{note}")
