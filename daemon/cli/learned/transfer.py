"""Learned texts taken out of a project and brought into another one: ``export`` and ``import``.

Nobody here vouches for imported texts: they wait until the person approves them. A playbook is taken over in
any older form, also the ACE plugin's.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ...core.errors import Unavailable, UserError, words
from ...core.given import folded
from ...learning.playbook.points import SECTION_SLUGS, each, migrated, parts
from ...learning.playbook.project_playbook import LIMIT, dumped, parsed
from ..render import count, plain, print_json, short
from ..terminal import say
from .learned import About

if TYPE_CHECKING:
    import argparse

    from ...learning.playbook.points import Playbook

Json = dict[str, Any]
BLOCK: Final = 100  # lessons in one request


def export(args: argparse.Namespace) -> int:
    """Print what was learned, a line of JSON each, with ``--json`` one object; of points the playbook."""
    about = About.of(args)
    if about.kind == "point":
        found = about.rules.playbook.read()
        if found.problem:
            raise UserError(found.problem)
        text = dumped(found.playbook).decode()
    else:
        with about.database() as db:
            lessons = {e.id: e.as_json() for e in about.learned.episodes(db)}
        lines = [{**r.as_json(), **lessons.get(r.key, {}), "kind": r.kind} for r in about.listing()]
        if args.json:
            print_json({"project": about.learned.project, "records": lines})
            return 0
        text = "".join(f"{json.dumps(line)}\n" for line in lines)  # ASCII
    sys.stdout.write(visible_json(text) if sys.stdout.isatty() else text)
    return 0


def visible_json(text: str) -> str:
    """JSON in which a terminal obeys nothing: what is not ASCII as escapes."""
    return "".join(c if c.isascii() else json.dumps(c)[1:-1] for c in text)


def take(args: argparse.Namespace) -> int:
    """Take over points and lessons that are not here yet. They wait for the person's word."""
    about, raw = About.of(args), _read(args.file)
    theirs, lessons, left_out, notes = _understood(raw, args.file)
    if about.kind == "point":
        lessons = []
    new, known, refused = _take_lessons(args, about, lessons)
    points, told, change = _take_points(args, about, theirs) if about.kind != "lesson" else ([], (), None)
    told = (*notes, *told)
    if args.json:
        print_json({
            "points": points, "change": change, "lessons": new, "known": known, "refused": refused,
            "left_out": left_out, "dry_run": args.dry_run, "told": told,
        })  # fmt: skip
        return 0
    for line in told:
        say(f"reflectd: {plain(line)}", sys.stderr)
    verb = "would be taken over" if args.dry_run else "taken over"
    say(
        f"{verb}: {count(len(points), 'point')}, {count(new, 'lesson')}; "
        f"{count(known, 'lesson')} here already"
    )
    if (points or new) and not args.dry_run:
        say("They wait for your word: `reflectd learned approve` lists them.")
    for one in refused:
        say(f"  left out: {short(one['id'], 40)}: {short(one['why'], 200)}", sys.stderr)
    if left_out:
        say(
            f"  left out: {count(left_out, 'rule or preference', 'rules and preferences')}: they need your "
            "yes, `reflectd learned add --kind rule TEXT`",
            sys.stderr,
        )
    if change:
        say(f"undo with: reflectd learned undo {change}")
    return 0


def _read(name: str) -> bytes:
    """The bytes of the file, of stdin for "-". Raises ``UserError``."""
    try:
        if name == "-":
            raw = sys.stdin.buffer.read(LIMIT + 1)
        else:
            with Path(name).open("rb") as file:
                raw = file.read(LIMIT + 1)
    except FileNotFoundError:
        raise UserError(f"there is no file {name}") from None
    except OSError as error:
        raise UserError(f"can't read {name}: {words(error)}") from None
    if len(raw) > LIMIT:
        raise UserError(f"{name} is larger than {LIMIT // 1024 // 1024} MB")
    return raw


def _understood(raw: bytes, name: str) -> tuple[Playbook | None, list[Json], int, tuple[str, ...]]:
    """The playbook and the lessons in it, how many rules and preferences, and what could not be used as it
    is. Raises ``UserError`` with the number of a line that is none of them.
    """
    with suppress(ValueError, RecursionError):
        whole = migrated(parsed(raw))
        return whole.playbook, [], 0, whole.told
    points: dict[str, list[Json]] = {section: [] for section in SECTION_SLUGS}
    lessons, left_out = list[Json](), 0
    for number, line in enumerate(raw.splitlines(), 1):
        if not line.strip():
            continue
        one = _line(line)
        if one is None:
            what = f"{name} is no playbook, and line {number} of it is nothing that was learned"
            raise UserError(f"{what}; nothing was taken over")
        if one.get("kind") in ("rule", "preference"):
            left_out += 1
        elif one.get("kind") == "point":
            counts = {"helpful": one.get("helped", 0), "harmful": one.get("harmed", 0)}
            point = {"name": one.get("id"), "text": one.get("text"), **counts}
            points.get(str(one.get("where")), points["OTHERS"]).append(point)
        else:
            lessons.append(one)
    if not any(points.values()):
        return None, lessons, left_out, ()
    made = migrated({"sections": points})
    return made.playbook, lessons, left_out, made.told


def _line(line: bytes) -> Json | None:
    """A record or an episode; None for what is none, and for numbers and texts that no JSON has."""
    try:
        found = parsed(line)
        json.dumps(found, ensure_ascii=False).encode()  # half characters can't be sent
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not isinstance(found.get("kind", ""), str):
        return None
    return found if {"lesson", "kind"} & found.keys() else None


def _take_points(
    args: argparse.Namespace, about: About, theirs: Playbook | None
) -> tuple[list[Json], tuple[str, ...], str | None]:
    """The points that say something new."""
    if theirs is None:
        return [], (), None
    taken = []
    with about.rules.playbook.change(dry_run=args.dry_run) as edit:
        said = {folded(p["text"]) for _, p in each(edit.playbook)}
        for section, p in each(theirs):
            if folded(p["text"]) in said:
                continue
            said.add(folded(p["text"]))
            known = parts(p["name"])
            slug = known[0] if known else SECTION_SLUGS[section]
            name = edit.names.keep(p["name"]) if known else edit.names.take(slug)
            taken.append({**p, "name": name})
            edit.playbook["sections"][section].append(taken[-1])
        edit.what = f"imported {count(len(taken), 'point')}"
    return taken, tuple(edit.told), f"p{edit.revision.number}" if edit.revision else None


def _take_lessons(args: argparse.Namespace, about: About, lessons: list[Json]) -> tuple[int, int, list[Json]]:
    """How many are new and known, and those that may not be kept."""
    new, known, refused = 0, 0, list[Json]()
    for at in range(0, len(lessons), BLOCK):
        body = {"directory": str(about.rules.project), "episodes": lessons[at : at + BLOCK]}
        try:
            done = about.post("memory/import", {**body, "dry_run": args.dry_run})
        except (Unavailable, UserError) as error:
            before = f" ({count(new, 'lesson')} taken over before that)" if new else ""
            raise type(error)(f"{error}{before}") from error
        new, known, refused = new + done["new"], known + done["known"], refused + done["refused"]
    return new, known, refused
