"""``reflectd reflect undo``: take a change of the rules back. A person at a terminal decides that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.errors import UserError
from ..render import place, print_json, short
from ..setup.confirm import asked
from ..terminal import say
from .action import action, consent, rules_of
from .asking import tell_done

if TYPE_CHECKING:
    import argparse


def add_parser(what: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the action."""
    parser = action(what, "undo", "take a change of the rules back, after asking", run)
    parser.add_argument(
        "number", nargs="?", type=int, default=0, metavar="ID", help="of `history` (the newest)"
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would be asked, change nothing")


def run(args: argparse.Namespace) -> int:
    """Ask, and undo it."""
    rules = rules_of(args)
    if args.number < 0:
        raise UserError(f"there is no change {args.number}")
    change = rules.changes.wanted(args.number)
    where = f" in {place(rules.journal.project / change.file)}" if change.file else ""
    if args.json:
        print_json({
            "project": str(rules.journal.project),
            "undo": {"number": change.number, "what": change.what, "file": change.file},
            "changed": False,
        })  # fmt: skip
        return 0
    text = f"{change.number} ({short(change.what, 200)}){where}"
    if args.dry_run:
        say(f"you would be asked whether change {text} is undone")
        return 0
    consent("undoing a change")
    if not asked(f"Undo change {text}?", "this asks a person, on a terminal"):
        say("Nothing was changed.")
        return 1
    tell_done(rules.undo(change.number), f"undid {text}")
    return 0
