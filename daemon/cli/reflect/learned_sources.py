"""The kinds of things that were learned about a project, as ``reflectd learned`` lists and undoes them.

A new kind is one more ``Source`` in ``SOURCES``. Rules and preferences come from the person, points from the
agents' work. Nothing is changed before a person at a terminal said yes.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from ...client import request
from ...core.errors import Unavailable
from ...core.learned import known_as
from ...files.learned_points import never_again, take_back
from ...files.learned_rules import LearnedRules, Look
from ...paths import Paths, find_socket
from ...playbook.points import each
from ..render import Paint, clock, plain, print_json, short
from ..setup.confirm import asked
from ..terminal import say
from .action import consent
from .history import row_lines
from .unlearn import run as unlearn
from .worn import row_object, wear_of

Json = dict[str, Any]
WAITING_ID: Final = re.compile(r"new-(\d{1,15})")


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


def _rules(about: About) -> list[Item]:
    return _rows(about, soft=False)


def _preferences(about: About) -> list[Item]:
    return _rows(about, soft=True)


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
    return unlearn(args)


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
        items.append(_item(about, point, f"+{p['helpful']} -{p['harmful']}, "))
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


def _asked_daemon(about: About, what: str) -> Json:
    query = urlencode({"directory": str(about.rules.journal.project)})
    return request(find_socket(about.where), "GET", f"/v1/features/playbook/{what}?{query}")


def _item(about: About, point: Json, used: str = "") -> Item:
    said = f"{plain(short(point['text'], 400))} ({used}from {short(point['origin'], 300)})"
    return Item(point["name"], point, tuple(about.paint.row(f"  {short(point['name'], 40):<8}  ", said)))


def _session(session: str, at: int, why: str) -> str:
    return f"session {session}, {clock(at)}" + (f": {why}" if why else "")


def _point_removed(args: argparse.Namespace, about: About, item: Item) -> int:
    return _taken_back(args, about, item, lambda: take_back(about.rules, item.name, item.object["text"]))


def _dismissed(args: argparse.Namespace, about: About, item: Item) -> int:
    number = int(item.name.removeprefix("new-"))

    def dismiss() -> None:
        socket, body = find_socket(about.where), {"id": number, "yes": False}
        request(socket, "POST", "/v1/features/playbook/settle", body)
        never_again(about.rules.journal, item.object["text"])

    return _taken_back(args, about, item, dismiss)


def _taken_back(args: argparse.Namespace, about: About, item: Item, do: Callable[[], None]) -> int:
    """Ask, do it, and see to it that this is never learned again."""
    book, text = about.rules.journal, item.object["text"]
    if args.json:
        print_json({"project": str(book.project), "point": item.object, "changed": False})
        return 0
    question = f'{item.name} "{plain(text)}" be taken back, and never be learned again'
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


SOURCES: Final = (
    Source("rules", "rules: what you want", _rules, _unlearned),
    Source("preferences", "preferences: what you like", _preferences, _unlearned),
    Source("points", "points: what works here", _points, _point_removed),
    Source("waiting", "waiting for your word", _waiting, _dismissed),
)
"""In the order in which they are listed."""
