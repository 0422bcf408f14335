"""``reflectd learned``: everything that was learned about a project, in one view, with where it comes from.

What there is to list stands in ``learned_sources``. ``undo`` takes one back: a rule or a preference is
archived, a point removed, what waits for a word is dismissed; the last two are never learned again. A person
at a terminal decides that. Without a daemon, what waits and where points come from is not known. Exit codes:
0 done, or nothing to do · 1 the file system refused, or you said no · 2 wrong arguments, no such thing, no
terminal, or a file that can't be used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.errors import Unavailable, UserError
from ..render import Paint, place, print_json, short
from ..settings import look as look_at
from ..terminal import add_flag, show
from .action import action, rules_at

if TYPE_CHECKING:
    import argparse

    from .learned_sources import About

EPILOG = """examples:
  reflectd learned                  all of it
  reflectd learned undo rule-004    archive a rule or a preference
  reflectd learned undo pat-003     remove a point, and never learn it again

exit codes: 0 done, or nothing to do; 1 the file system refused, or you said no; 2 wrong arguments,
no such thing, no terminal, or a file that can't be used"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the verb and its actions."""
    more: dict[str, str] = {"bare": "show"}
    parser = verbs.add_parser(
        "learned",
        help="all that was learned about this project: rules, preferences, points; undo each",
        epilog=EPILOG,
        **more,  # type: ignore[arg-type] # of our own parser
    )
    what = parser.add_subparsers(dest="what", metavar="WHAT")
    add_flag(action(what, "show", "rules, preferences and points, with where each comes from", shown))
    undo = action(what, "undo", "take one of them back, after asking", undone)
    undo.add_argument("name", metavar="ID", help="its id, such as rule-004, pat-003 or new-12")
    undo.add_argument("--dry-run", action="store_true", help="say what would be asked, change nothing")


def shown(args: argparse.Namespace) -> int:
    """Show all of it."""
    from .learned_sources import SOURCES
    from .status import tell

    about, silent = _about(args), ""
    project = about.rules.journal.project
    lines = about.paint.row("", about.paint(f"learned about {place(project)}", "bold"), "  ")
    found: dict[str, Any] = {"project": str(project)}
    for source in SOURCES:
        try:
            items = source.items(about)
        except Unavailable as error:
            items, silent = [], str(error)
        found[source.key] = [item.object for item in items]
        part = [line for item in items for line in item.lines]
        lines += ["", about.paint(source.heading, "bold"), *part] if part else []
    if args.json:
        print_json({**found, "daemon": not silent, "problems": list(about.look.problems)})
        return 0
    tell(about.look.problems)
    if not any(found[source.key] for source in SOURCES):
        lines.append("  nothing yet")
    if silent:
        lines += ["", about.paint(f"what waits is not known: {short(silent, 200)}", "dim")]
    show(lines, pager=not args.no_pager)
    return 0


def undone(args: argparse.Namespace) -> int:
    """Take one back."""
    from ...learning.rules.journal import RULE_ID
    from .learned_sources import SOURCES, WAITING_ID, unlearned

    about, name, silent = _about(args), args.name.strip(), ""
    for source in SOURCES:
        try:
            item = next((item for item in source.items(about) if item.name == name), None)
        except Unavailable as error:
            silent = str(error)
            continue
        if item is not None:
            return source.undo(args, about, item)
    if WAITING_ID.fullmatch(name) and silent:
        raise UserError(f"{name} is not known: {silent}")
    if not RULE_ID.fullmatch(name):
        raise UserError(
            f"nothing that was learned is called {short(name, 80)!r}; `reflectd learned` lists all"
        )
    return unlearned(args, name)  # says why it is none that could be taken back


def _about(args: argparse.Namespace) -> About:
    from .learned_sources import About

    settings, where = look_at(args)
    rules = rules_at(settings, where, args.dir)
    return About(where, rules, rules.look(), Paint())
