"""``reflectd learned``: everything that was learned about a project, in one view, with where it comes from.

Rules and preferences come from the person, points from the agents' work. ``undo`` takes one back: a rule or a
preference is archived, a point removed, what waits for a word is dismissed; the last two are never learned
again. A person at a terminal decides that. Without a daemon, what waits and where points come from is not
known. Exit codes: 0 done, or nothing to do · 1 the file system refused, or you said no · 2 wrong arguments,
no such thing, no terminal, or a file that can't be used.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from ...core.errors import Unavailable, UserError
from ..render import Paint, clock, place, plain, print_json, short
from ..settings import look as look_at
from ..setup.confirm import asked
from ..terminal import add_flag, say, show
from .action import action, consent, rules_at

if TYPE_CHECKING:
    import argparse

    from ...files.learned_rules import LearnedRules
    from ...paths import Paths

Json = dict[str, Any]
EPILOG = """examples:
  reflectd learned                  all of it
  reflectd learned undo rule-004    archive a rule or a preference
  reflectd learned undo pat-003     remove a point, and never learn it again

exit codes: 0 done, or nothing to do; 1 the file system refused, or you said no; 2 wrong arguments,
no such thing, no terminal, or a file that can't be used"""
_WAITING: Final = re.compile(r"new-(\d{1,15})")


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
    from .history import row_lines, row_object
    from .status import tell
    from .worn import wear_of

    settings, where = look_at(args)
    rules = rules_at(settings, where, args.dir)
    look = rules.look()
    worn = wear_of(rules, look)
    points, waiting, silent = _points(where, rules)
    rows = [(i, row) for i, row in enumerate(look.rows) if row.active]
    if args.json:
        of = {i: row_object(row, worn.get(i)) for i, row in rows}
        print_json({
            "project": str(rules.journal.project),
            "rules": [of[i] for i, row in rows if not row.soft],
            "preferences": [of[i] for i, row in rows if row.soft],
            "points": points,
            "waiting": waiting,
            "daemon": not silent,
        })  # fmt: skip
        return 0
    tell(look.problems)
    paint = Paint()
    lines = paint.row("", paint(f"learned about {place(rules.journal.project)}", "bold"), "  ")
    for heading, soft in (("rules: what you want", False), ("preferences: what you like", True)):
        part = [line for i, row in rows if row.soft is soft for line in row_lines(row, worn.get(i), paint)]
        lines += ["", paint(heading, "bold"), *part] if part else []
    for heading, found in (("points: what works here", points), ("waiting for your word", waiting)):
        part = [line for p in found for line in paint.row(f"  {short(p['name'], 40):<8}  ", _said(p))]
        lines += ["", paint(heading, "bold"), *part] if part else []
    if len(lines) == 1:
        lines.append("  nothing yet")
    if silent:
        lines += ["", paint(f"what waits is not known: {short(silent, 200)}", "dim")]
    show(lines, pager=not args.no_pager)
    return 0


def undone(args: argparse.Namespace) -> int:
    """Take one back."""
    settings, where = look_at(args)
    rules = rules_at(settings, where, args.dir)
    points, waiting, silent = _points(where, rules)
    name = args.name.strip()
    point = next((p for p in (*points, *waiting) if p["name"] == name), None)
    if point is None:
        if _WAITING.fullmatch(name) and silent:
            raise UserError(f"{name} is not known: {silent}")
        from .unlearn import run as unlearn

        return unlearn(_as_unlearn(args, name))
    if args.json:
        print_json({"project": str(rules.journal.project), "point": point, "changed": False})
        return 0
    question = f'{name} "{plain(point["text"])}" be taken back, and never be learned again'
    if args.dry_run:
        say(f"you would be asked: shall {question}?")
        return 0
    consent("taking back what was learned")
    if not asked(f"Shall {question}?", "this asks a person, on a terminal"):
        say("Nothing was changed.")
        return 1
    _take_back(where, rules, point)
    say(f"taken back: {name}")
    return 0


def _as_unlearn(args: argparse.Namespace, name: str) -> argparse.Namespace:
    """The same wish for a rule. Raises ``UserError`` for what is no id of one."""
    from ...rules.journal import RULE_ID

    if not RULE_ID.fullmatch(name):
        raise UserError(
            f"nothing that was learned is called {short(name, 80)!r}; `reflectd learned` lists all"
        )
    vars(args).update(text=name, delete=False, why="")
    return args


def _take_back(where: Paths, rules: LearnedRules, point: Json) -> None:
    from ...client import request
    from ...paths import find_socket
    from ...playbook.points import by_name, keep_only
    from ...rules.journal import bury

    number = _WAITING.fullmatch(point["name"])
    if number:
        request(
            find_socket(where), "POST", "/v1/features/playbook/settle", {"id": int(number[1]), "yes": False}
        )
    else:

        def edit(playbook: Json, names: object) -> str:
            del names
            keep_only(playbook, {id(by_name(playbook)[point["name"]])})
            return str(point["name"])

        rules.steps.playbook.change(edit, lambda name: f"took back {name}")
    day = rules.journal.day()
    rules.journal.change(lambda journal: bury(journal, point["text"], day))


def _points(where: Paths, rules: LearnedRules) -> tuple[list[Json], list[Json], str]:
    """The points of the playbook, the texts that wait, each with its origin, and why the latter are not
    known.
    """
    from ...client import request
    from ...core.learned import known_as
    from ...paths import find_socket
    from ...playbook.points import each

    query, silent = urlencode({"directory": str(rules.journal.project)}), ""
    waiting, origins = list[Json](), dict[str, Json]()
    try:
        texts = request(find_socket(where), "GET", f"/v1/features/playbook/waiting?{query}")["texts"]
        waiting = [
            {"name": f"new-{t['id']}", "text": t["text"], "origin": _session(t["session"], t["at"], t["why"])}
            for t in texts
        ]
        found = request(find_socket(where), "GET", f"/v1/features/playbook/confirmed?{query}")
        origins = dict(found.get("origins", {}))
    except Unavailable as error:
        silent = str(error)
    book = rules.steps.playbook
    known, points = book.known(), list[Json]()
    for section, p in each(book.read().playbook):
        origin = origins.get(known_as(p["text"]))
        said = "the file: nobody vouches for it, so no agent is given it"
        if known.is_approved(p["text"]):
            said = "your word"
        if origin is not None:
            said = _session(origin["session"], origin["at"], origin["why"])
            said += f", confirmed by {origin['proof']}" if origin.get("proof") else ""
        counted = {key: p[key] for key in ("helpful", "harmful")}
        points.append({"name": p["name"], "text": p["text"], "section": section, **counted, "origin": said})
    return points, waiting, silent


def _session(session: str, at: int, why: str) -> str:
    return f"session {session}, {clock(at)}" + (f": {why}" if why else "")


def _said(point: Json) -> str:
    used = f"+{point['helpful']} -{point['harmful']}, " if "helpful" in point else ""
    return f"{plain(short(point['text'], 400))} ({used}from {short(point['origin'], 300)})"
