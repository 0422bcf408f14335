"""A person's changes of learned texts: add, approve, forget, undo, import.

A text counts by a person's word, so approving and forgetting ask on a terminal, and no flag answers in their
place: an agent could set it. A text that is added without a terminal waits. Rules and preferences are changed
as ``reflectd reflect`` changes them. Every change of a file is kept, and ``undo`` takes it back while nobody
edited the file since. Nobody here vouches for imported texts: they wait until the person approves them. A
playbook is taken over in any older form, also the ACE plugin's.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ...core.errors import Unavailable, UserError, words
from ...core.given import folded
from ...learning.playbook import points
from ...learning.playbook.project_playbook import LIMIT, may_count, parsed
from ...learning.records import NOBODY, change_named, changes, settle
from ...learning.texts import refusal
from ..reflect.review import consent
from ..reflect.review import decided as asked_about
from ..render import Paint, clock, count, place, plain, print_json, short
from ..terminal import asked, attended, say, show
from .learned import About, line_of

if TYPE_CHECKING:
    import argparse

    from ...learning.playbook.points import Playbook
    from ...learning.records import Kind, Record

Json = dict[str, Any]
REWARD: Final = -1.0  # of a task whose lesson a person wrote down: it went wrong
BLOCK: Final = 100  # lessons in one request
PERSON: Final = "this asks a person, on a terminal"


# --- add ----------------------------------------------------------------------------------------------------


def add(args: argparse.Namespace) -> int:
    """Add one in the person's words. On a terminal they vouch for it, so it counts at once."""
    if args.kind in {"rule", "preference"}:
        vars(args).update(soft=args.kind == "preference")
        return asked_about("learn", args)
    about = About.of(args)
    return _add_lesson(args, about) if args.kind == "lesson" else _add_point(args, about)


def _add_point(args: argparse.Namespace, about: About) -> int:
    text, vouched = about.rules.check(args.text), attended()
    section = next(name for name, slug in points.SECTION_SLUGS.items() if slug == args.section)
    with about.rules.playbook.change() as edit:
        point = points.add(edit.playbook, text, section, edit.names, points.said_in(edit.playbook))
        if point is None:
            twin = next(p for _, p in points.each(edit.playbook) if folded(p["text"]) == folded(text))
            raise UserError(f"{twin['name']} says the same: {short(twin['text'], 200)}")
        edit.what, edit.approved = f"added {point['name']}", [text] if vouched else []
    how, given = _reaches(about, "point", text, str(point["name"]), vouched=vouched)
    change = f"p{edit.revision.number}" if edit.revision else None
    return _told(
        args,
        {"changed": True, "change": change, "point": point, "given": bool(how), "told": given},
        *(f"reflectd: {plain(line)}" for line in edit.told),
        f"added: {point['name']} {plain(text)}",
        given,
        f"undo with: reflectd learned undo {change}",
    )


def _told(args: argparse.Namespace, found: Json, *lines: str) -> int:
    """Tell what was done: to a script as JSON, to a person in these lines."""
    if args.json:
        print_json(found)
        return 0
    for line in lines:
        say(line)
    return 0


def _reaches(about: About, kind: Kind, text: str, id_: str, *, vouched: bool) -> tuple[str, str]:
    """How agents get a new text, "" when none does; and a sentence that says it to the person."""
    how, why = about.learned.reaches(kind, text, vouched=vouched)
    if why == NOBODY:
        why = f"no terminal, so not before `reflectd learned approve {id_}`"
    return how, f"agents: {how}" if how else f"no agent is given it: {why}"


def _add_lesson(args: argparse.Namespace, about: About) -> int:
    task, lesson = args.task.strip(), about.rules.check(args.text)
    if not task:
        raise UserError("say which task the lesson is about: --task TASK")
    said = f"Problem: It went wrong before.\nLesson: {lesson}"
    body = {"directory": str(about.rules.project), "query": task, "reward": REWARD, "reflection": said}
    made = about.post("memory/add", body)["episode"]
    vouched = attended()
    if vouched:
        made["state"] = "confirmed"
        about.post("memory/settle", {"ids": [made["id"]], "yes": True})
    about.ask_for_model()
    short_id = made["id"][:12]
    how, given = _reaches(about, "lesson", made["lesson"], short_id, vouched=vouched)
    added, back = plain(made["lesson"]), f"take it back with: reflectd learned forget {short_id}"
    return _told(args, {"episode": made, "given": bool(how)}, f"added: {short_id} {added}", given, back)


# --- approve and forget -------------------------------------------------------------------------------------


def approve(args: argparse.Namespace) -> int:
    """Let agents be given these; without an id, all that waits."""
    about = About.of(args)
    found = _to_approve(about, args.ids)
    if not found:
        said = () if args.ids else (f"nothing waits for a word of yours in {about.name}",)
        return _told(args, {"changed": False, "records": []}, *said)
    if not _agreed(args, found, "Shall agents be given {}?"):
        return 0 if args.json else 1
    for r in found:
        _settle(about, r, yes=True)
        how, why = about.learned.reaches(r.kind, r.text)
        say(f"approved: {r.id}; {how or f'no agent is given it: {why}'}")
    return 0


def _to_approve(about: About, ids: list[str]) -> list[Record]:
    """The records that are meant. Raises ``UserError`` for one that needs no approval or can't have it."""
    if not ids:
        waits = [r for r in about.listing() if r.state == "waiting" and r.kind in {"point", "lesson"}]
        return [r for r in waits if not refusal(r.text)]
    found = about.those(ids)
    for r in found:
        may_count(r.id, r.text)
        if r.kind in {"rule", "preference"}:
            more = "reflectd reflect" if r.kind == "rule" else "reflectd trust"
            raise UserError(f"{r.id} is a {r.kind}: `{more}` asks about it")
        if not r.approvable:
            say(f"{r.id} counts already: {r.how or r.why}")
    return [r for r in found if r.approvable]


def forget(args: argparse.Namespace) -> int:
    """No agent is given these any more, and they are not learned again."""
    about = About.of(args)
    found = about.those(args.ids)
    code = 0
    for r in found:
        if r.kind in {"rule", "preference"} and not r.suggested:
            vars(args).update(text=r.id, delete=False, why="")
            code = asked_about("unlearn", args) or code
    rest = [r for r in found if r.kind not in {"rule", "preference"} or r.suggested]
    if not rest:
        return code
    if not _agreed(args, rest, "Shall no agent be given {} any more, nor learn it again?"):
        return code if args.json else 1
    for r in rest:
        _settle(about, r, yes=False)
        back = f"; `reflectd learned approve {r.id}` takes that back" if r.kind == "lesson" else ""
        say(f"taken back: {r.id}{back}")
    return code


def _settle(about: About, r: Record, *, yes: bool) -> None:
    if route := r.route(yes=yes):
        feature, name, body = route
        if not about.post(f"{feature}/{name}", body).get("changed", True):
            raise UserError(f"{r.id} is not there any more, or was changed while you were asked: look again")
    settle(about.rules, r, yes=yes)


def _agreed(args: argparse.Namespace, records: list[Record], question: str) -> bool:
    """Says whether the person at the terminal says yes; never with ``--json``, which shows what would be
    asked. Raises ``UserError`` without a terminal.
    """
    if args.json:
        print_json({"changed": False, "records": [r.as_json() for r in records]})
        return False
    question = question.format("it" if len(records) == 1 else "these")
    consent("a change of what was learned")
    paint = Paint()
    print("\n".join(line for r in records for line in line_of(r, paint)))
    if asked(question, PERSON):
        return True
    say("Nothing was changed.")
    return False


# --- undo ---------------------------------------------------------------------------------------------------


def undo(args: argparse.Namespace) -> int:
    """Take a change of a file back; without one, list the changes, newest first."""
    about = About.of(args)
    if not args.change:
        return _list_changes(args, about)
    change = change_named(args.change)
    if change is None:
        raise UserError(
            f"{short(args.change, 40)!r} is no change; `reflectd learned undo` lists them. A lesson that was "
            "taken back comes again with `reflectd learned approve`"
        )
    letter, number = change
    if letter == "r":
        what = about.rules.changes.wanted(number).what
    else:
        what = next((r.what for r in about.rules.playbook.history() if r.number == number), "")
    undone: Json = {"changed": False, "undone": f"{letter}{number}", "change": None}
    said, told = f"{letter}{number}: {short(what, 300)}", list[str]()
    if letter == "p":
        made = about.rules.playbook.undo(number).number
    elif args.json:
        return _told(args, undone)
    else:
        consent("a change of what was learned")
        if not asked(f"Undo {said}?", PERSON):
            say("Nothing was changed.")
            return 1
        done = about.rules.undo(number)
        made, told = done.change.number, done.told
    found = undone | {"changed": True, "change": f"{letter}{made}"}
    back = f"undo that with: reflectd learned undo {letter}{made}"
    return _told(args, found, f"undid {said}", *map(plain, told), back)


def _list_changes(args: argparse.Namespace, about: About) -> int:
    letters = {"": "pr", "point": "p", "lesson": ""}.get(about.kind, "r")
    found = [change for change in changes(about.rules) if change["change"][0] in letters]
    if args.json or not found:
        nothing = f"reflectd changed no file of what was learned in {about.name} yet"
        back = "A lesson that was taken back comes again with `reflectd learned approve ID`."
        return _told(args, {"project": about.learned.project, "changes": found}, nothing, back)
    paint, lines = Paint(), list[str]()
    for c in found:
        why = f": {short(c['why'], 200)}" if c["why"] else ""
        note = " (undone)" if c["undone"] else ""
        label = f"  {c['change']:<5} {clock(c['at'])}  "
        lines += paint.row(
            label, f"{short(c['what'], 200)}{why}, by {short(c['by'], 20)}, in {place(c['file'])}{note}"
        )
    show([*lines, "Take one back with: reflectd learned undo CHANGE"])
    return 0


# --- import -------------------------------------------------------------------------------------------------


def take(args: argparse.Namespace) -> int:
    """Take over points and lessons that are not here yet. They wait for the person's word."""
    about, raw = About.of(args), _read(args.file)
    theirs, lessons, left_out, notes = _understood(raw, args.file)
    if about.kind == "point":
        lessons = []
    new, known, refused = _take_lessons(about, lessons)
    taken, told, change = _take_points(about, theirs) if about.kind != "lesson" else ([], (), None)
    told = (*notes, *told)
    if args.json:
        print_json({
            "points": taken, "change": change, "lessons": new, "known": known, "refused": refused,
            "left_out": left_out, "told": told,
        })  # fmt: skip
        return 0
    for line in told:
        say(f"reflectd: {plain(line)}", sys.stderr)
    brought = f"{count(len(taken), 'point')}, {count(new, 'lesson')}"
    say(f"taken over: {brought}; {count(known, 'lesson')} here already")
    if taken or new:
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
        whole = points.migrated(parsed(raw))
        return whole.playbook, [], 0, whole.told
    found: dict[str, list[Json]] = {section: [] for section in points.SECTION_SLUGS}
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
            found.get(str(one.get("where")), found["OTHERS"]).append(point)
        else:
            lessons.append(one)
    if not any(found.values()):
        return None, lessons, left_out, ()
    made = points.migrated({"sections": found})
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


def _take_points(about: About, theirs: Playbook | None) -> tuple[list[Json], tuple[str, ...], str | None]:
    if theirs is None:
        return [], (), None
    taken = []
    with about.rules.playbook.change() as edit:
        said = {folded(p["text"]) for _, p in points.each(edit.playbook)}
        for section, p in points.each(theirs):
            if folded(p["text"]) in said:
                continue
            said.add(folded(p["text"]))
            known = points.parts(p["name"])
            slug = known[0] if known else points.SECTION_SLUGS[section]
            name = edit.names.keep(p["name"]) if known else edit.names.take(slug)
            taken.append({**p, "name": name})
            edit.playbook["sections"][section].append(taken[-1])
        edit.what = f"imported {count(len(taken), 'point')}"
    return taken, tuple(edit.told), f"p{edit.revision.number}" if edit.revision else None


def _take_lessons(about: About, lessons: list[Json]) -> tuple[int, int, list[Json]]:
    new, known, refused = 0, 0, list[Json]()
    for at in range(0, len(lessons), BLOCK):
        body = {"directory": str(about.rules.project), "episodes": lessons[at : at + BLOCK]}
        try:
            done = about.post("memory/import", body)
        except (Unavailable, UserError) as error:
            before = f" ({count(new, 'lesson')} taken over before that)" if new else ""
            raise type(error)(f"{error}{before}") from error
        new, known, refused = new + done["new"], known + done["known"], refused + done["refused"]
    return new, known, refused
