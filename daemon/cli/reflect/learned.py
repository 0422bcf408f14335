"""``reflectd learned``: everything that was learned about a project, in one view, with where it comes from.

A kind is one ``Source`` in ``SOURCES``. Rules and preferences come from the person, points from the agents'
work, lessons from tasks that ended badly. ``undo`` takes one back: a rule or a preference is archived, a
point removed, a lesson or what waits for a word is dismissed; a point and what waited are never learned
again. A person at a terminal decides that. Without a daemon, lessons, what waits and where points come from
are not known. Exit codes: 0 done, or nothing to do · 1 the file system refused, or you said no · 2 wrong
arguments, no such thing, no terminal, or a file that can't be used.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from ...client import request
from ...core.errors import Unavailable, UserError
from ...core.given import known_as
from ...learning.playbook.points import each
from ...learning.playbook.project_playbook import never_again, take_back
from ...learning.rules.journal import RULE_ID
from ...learning.rules.learned_rules import LearnedRules, Look
from ...paths import Paths, find_socket
from ..render import Paint, clock, count, place, plain, print_json, short
from ..settings import add_action
from ..settings import look as look_at
from ..setup.confirm import asked
from ..terminal import add_flag, say, show
from .decisions import rules_at
from .reflect import asked as asked_about
from .review import consent
from .status import row_lines, row_object, tell, wear_of

Json = dict[str, Any]
WAITING_ID: Final = re.compile(r"new-(\d{1,15})")
MOST_LESSONS: Final = 100
IN_WORDS: Final = {
    "confirmed": "in use",
    "quarantined": "waiting for your word: `reflectd memory forget --undo`",
}
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
        help="all that was learned about this project: rules, preferences, points, lessons; undo each",
        epilog=EPILOG,
        **more,  # type: ignore[arg-type] # of our own parser
    )
    what = parser.add_subparsers(dest="what", metavar="WHAT")
    add_flag(
        add_action(what, "show", "rules, preferences, points and lessons, with where each comes from", shown)
    )
    undo = add_action(what, "undo", "take one of them back, after asking", undone)
    undo.add_argument("name", metavar="ID", help="its id, such as rule-004, pat-003 or new-12")
    undo.add_argument("--dry-run", action="store_true", help="say what would be asked, change nothing")


def shown(args: argparse.Namespace) -> int:
    """Show all of it."""
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
    settings, where = look_at(args)
    rules = rules_at(settings, where, args.dir)
    return About(where, rules, rules.look(), Paint())


@dataclass(frozen=True, slots=True)
class About:
    """The project that is asked about."""

    where: Paths
    rules: LearnedRules
    look: Look
    paint: Paint


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that was learned. ``name``: by which it is undone. ``object``: for a script. ``lines``: for a
    person, with where it comes from.
    """

    name: str
    object: Json
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """One kind. ``key``: its name for a script. ``heading``: for a person. ``items``: all of it; raises
    ``Unavailable`` when that is not known now. ``undo``: takes one back after asking; gives the exit code.
    """

    key: str
    heading: str
    items: Callable[[About], list[Item]]
    undo: Callable[[argparse.Namespace, About, Item], int]


# --- rules and preferences -----------------------------------------------------------------------------


def _rows(about: About, *, soft: bool) -> list[Item]:
    worn = wear_of(about.rules, about.look)
    return [
        Item(row.id, row_object(row, worn.get(i)), tuple(row_lines(row, worn.get(i), about.paint)))
        for i, row in enumerate(about.look.rows)
        if row.active and row.soft is soft
    ]


def _unlearned(args: argparse.Namespace, about: About, item: Item) -> int:
    del about
    return unlearned(args, item.name)


def unlearned(args: argparse.Namespace, name: str) -> int:
    """``reflectd reflect unlearn`` with this id. Raises ``UserError`` for what it refuses."""
    vars(args).update(text=name, delete=False, why="")
    return asked_about("unlearn", args)


# --- points of the playbook, and texts that wait -------------------------------------------------------


def _points(about: About) -> list[Item]:
    try:
        found = _asked_daemon(about, "confirmed")
        origins = dict(found.get("origins", {}))
    except Unavailable:
        origins = {}
    book = about.rules.playbook
    known, items = book.known(), list[Item]()
    for section, p in each(book.read().playbook):
        origin = origins.get(known_as(p["text"]))
        said = "the file: nobody vouches for it, so no agent is given it"
        if known.is_approved(p["text"]):
            said = "your word"
        if origin is not None:
            said = _session(origin["session"], origin["at"], origin["why"])
            said += f", confirmed by {origin['proof']}" if origin.get("proof") else ""
        counted = {key: p[key] for key in ("helpful", "harmful")}
        point = {"name": p["name"], "text": p["text"], "section": section, **counted, "origin": said}
        items.append(_item(about, point, f"helped {p['helpful']} times, harmed {p['harmful']}, "))
    return items


def _waiting(about: About) -> list[Item]:
    return [
        _item(
            about,
            {
                "name": f"new-{t['id']}",
                "text": t["text"],
                "origin": _session(t["session"], t["at"], t["why"]),
            },
        )
        for t in _asked_daemon(about, "waiting")["texts"]
    ]


def _asked_daemon(about: About, what: str, feature: str = "playbook", **more: object) -> Json:
    query = urlencode({"directory": str(about.rules.journal.project), **more})
    return request(find_socket(about.where), "GET", f"/v1/features/{feature}/{what}?{query}")


def _item(about: About, point: Json, used: str = "") -> Item:
    said = f"{plain(short(point['text'], 400))} ({used}from {short(point['origin'], 300)})"
    return Item(point["name"], point, tuple(about.paint.row(f"  {short(point['name'], 40):<8}  ", said)))


def _session(session: str, at: int, why: str) -> str:
    return f"session {session}, {clock(at)}" + (f": {why}" if why else "")


def _point_removed(args: argparse.Namespace, about: About, item: Item) -> int:
    book, journal, text = about.rules.playbook, about.rules.journal, item.object["text"]
    return _taken_back(args, about, item, lambda: take_back(book, journal, item.name, text))


def _dismissed(args: argparse.Namespace, about: About, item: Item) -> int:
    number = int(item.name.removeprefix("new-"))

    def dismiss() -> None:
        socket, body = find_socket(about.where), {"id": number, "yes": False}
        request(socket, "POST", "/v1/features/playbook/settle", body)
        never_again(about.rules.journal, item.object["text"])

    return _taken_back(args, about, item, dismiss)


def _taken_back(args: argparse.Namespace, about: About, item: Item, do: Callable[[], None]) -> int:
    """Ask, do it, and see to it that this is never learned again."""
    return _confirmed(args, about, item, "be taken back, and never be learned again", do)


def _confirmed(args: argparse.Namespace, about: About, item: Item, what: str, do: Callable[[], None]) -> int:
    """Ask whether ``what`` shall become of it, and do it."""
    book, text = about.rules.journal, item.object["text"]
    if args.json:
        print_json({"project": str(book.project), "point": item.object, "changed": False})
        return 0
    question = f'{item.name} "{plain(text)}" {what}'
    if args.dry_run:
        say(f"you would be asked: shall {question}?")
        return 0
    consent("taking back what was learned")
    if not asked(f"Shall {question}?", "this asks a person, on a terminal"):
        say("Nothing was changed.")
        return 1
    do()
    say(f"taken back: {item.name}")
    return 0


# --- lessons -------------------------------------------------------------------------------------------


def _lessons(about: About) -> list[Item]:
    found = _asked_daemon(about, "list", "memory", state="", after="", limit=MOST_LESSONS)["episodes"]
    return [_lesson(about, e) for e in found if e["state"] in IN_WORDS]


def _lesson(about: About, e: Json) -> Item:
    said, use = IN_WORDS[e["state"]], e["use"]
    if use["given"]:
        said += f", given {count(use['given'], 'time')}, helped {use['helped']}"
    lesson = {"name": e["id"][:12], "text": e["lesson"], "task": e["query"], "state": said}
    text = f'{plain(short(e["lesson"], 400))} ({said}; from "{plain(short(e["query"], 120))}")'
    return Item(
        lesson["name"], lesson | {"id": e["id"]}, tuple(about.paint.row(f"  {lesson['name']}  ", text))
    )


def _lesson_dismissed(args: argparse.Namespace, about: About, item: Item) -> int:
    def dismiss() -> None:
        body = {"ids": [item.object["id"]], "yes": False}
        request(find_socket(about.where), "POST", "/v1/features/memory/settle", body)

    return _confirmed(args, about, item, "be dismissed, and be given to no agent", dismiss)


SOURCES: Final = (
    Source("rules", "rules: what you want", lambda about: _rows(about, soft=False), _unlearned),
    Source("preferences", "preferences: what you like", lambda about: _rows(about, soft=True), _unlearned),
    Source("points", "points: what works here", _points, _point_removed),
    Source("lessons", "lessons: what to do differently next time", _lessons, _lesson_dismissed),
    Source("waiting", "waiting for your word", _waiting, _dismissed),
)
"""In the order in which they are listed."""
