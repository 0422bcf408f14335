"""``reflectd playbook`` without a model: shows the points of a project, takes a person's changes and their
word, copies points in and out, and says what each was worth.

Each change is one revision. Approving is for a person: it asks on a terminal, and no flag answers in their
place, because an agent could set it. What waits for a word is two things: points of the file that nobody
vouches for, because they came with a clone or were written by hand (by their names), and texts that reflectd
learned and keeps apart until another session shows that they are true (``new-12``; only a running daemon
knows them).
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from ... import config
from ...client import request
from ...clock import SystemClock
from ...core.errors import Unavailable, UserError
from ...core.given import folded
from ...core.redact import redact
from ...files import upward
from ...files.bounded import reason
from ...learning.playbook.points import SECTION_SLUGS, by_name, drop, each, migrated, parts, section_of
from ...learning.playbook.project_playbook import (
    ACE,
    LIMIT,
    ProjectPlaybook,
    dumped,
    load,
    may_count,
    parsed,
    unvouched,
    vouch,
)
from ...learning.revisions import undone
from ...learning.texts import refusal
from ...paths import find_socket
from ..render import Paint, clock, count, place, plain, print_json, short
from ..settings import here, look
from ..setup.confirm import asked
from ..terminal import attended, say
from ..terminal import show as show_lines

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Container, Iterable

    from ...core.settings import Settings
    from ...learning.playbook.points import Names, Playbook, Point
    from ...learning.revisions import Revision
    from ...paths import Paths

Json = dict[str, Any]
Points = list[Json]
MAX_TEXT = 2_000  # characters of a point that a person types
_NEW = re.compile(r"new-(\d{1,15})")
MOST = 100


def opened(args: argparse.Namespace) -> tuple[Path, ProjectPlaybook]:
    """The project that the arguments mean, and its playbook. Raises ``UserError``."""
    settings, where = look(args)
    project = here(where, args.dir)
    if not project.is_dir():
        raise UserError(f"there is no folder {project}")
    return project, ProjectPlaybook(project, where.state_dir, SystemClock(), settings.playbook.path)


def show(args: argparse.Namespace) -> int:
    """The points, by section."""
    project, book = opened(args)
    found, known = book.read(), book.known()
    if found.problem:
        raise UserError(found.problem)
    wanted = points_named(by_name(found.playbook), args.names)
    points = [(section, p) for section, p in each(found.playbook) if not args.names or p["name"] in wanted]
    if args.json:
        listed = [{**p, "section": s, "approved": known.is_approved(p["text"])} for s, p in points]
        times = {"last_updated": found.playbook["last_updated"]}
        print_json(
            {"project": str(project), "file": str(book.path), **times, "points": listed, "told": found.told}
        )
        return 0
    tell(found.told)
    offered = "" if args.names else offer(project, book)
    if not points:
        say(f"no points in {place(project)}; `reflectd playbook add TEXT` makes one")
        if offered:
            say(offered)
        return 0
    paint = Paint()
    lines = lines_of(points, project, known.is_approved, paint)
    never = when_given(args, project)
    notes = [f"no agent is given these: {never}" if never else "", offered]
    lines += [line for note in notes if note for line in ("", *paint.row("", note, "  "))]
    show_lines(lines, pager=not args.no_pager)
    return 0


def lines_of(
    points: list[tuple[str, Json]], project: Path, is_approved: Callable[[str], bool], paint: Paint
) -> list[str]:
    """The points (section and point) for a person, under their sections."""
    lines = [paint(short(f"{count(len(points), 'point')} in {place(project)}", 400), "bold")]
    for section in SECTION_SLUGS:
        of = [p for name, p in points if name == section]
        lines += ["", paint(section, "bold")] if of else []
        for p in of:
            lines += line_of(p, paint, "" if is_approved(p["text"]) else " (not approved by you)")
    return lines


def line_of(point: Json, paint: Paint, note: str = "") -> list[str]:
    """A point for a person: name, how often it helped and harmed, the text."""
    counted = f"+{point['helpful']} -{point['harmful']}"
    label = f"  {short(point['name'], 40):<9} {counted:<8} "
    return paint.row(label, " ".join(plain(point["text"]).split()) + note)


def points_named(known: dict[str, Json], names: Iterable[str]) -> dict[str, Json]:
    """These points. Raises ``UserError`` for a name that none has."""
    missing = [name for name in names if name not in known]
    if missing:
        raise UserError(f"there is no point {short(missing[0], 80)!r}; `reflectd playbook show` lists all")
    return {name: known[name] for name in names}


def history(args: argparse.Namespace) -> int:
    """Every change, newest first."""
    if not 1 <= args.limit <= MOST:
        raise UserError(f"--limit must be from 1 to {MOST}")
    project, book = opened(args)
    every = book.history()
    found, gone = every[: args.limit], undone(every)
    if args.json:
        listed = [{**asdict(r), "undone": r.number in gone} for r in found]
        print_json({"project": str(project), "file": str(book.path), "revisions": listed})
        return 0
    if not found:
        say(f"reflectd has not changed {place(book.path)} yet")
        return 0
    paint = Paint()
    lines = [part for r in found for part in _revision(r, paint, r.number in gone)]
    if len(every) > len(found):
        lines.append(
            paint(f"{count(len(every) - len(found), 'older change')} not shown: --limit shows more", "dim")
        )
    show_lines(lines, pager=not args.no_pager)
    return 0


def _revision(r: Revision, paint: Paint, gone: bool) -> list[str]:
    why = f": {short(r.why, 300)}" if r.why else ""
    note = " (undone)" if gone else ""
    return paint.row(f"{r.number:>4}  {clock(r.at)}  {short(r.by, 20)}  ", f"{short(r.what, 300)}{why}{note}")


def tell(lines: Iterable[str]) -> None:
    """What a person should know besides, on stderr."""
    for line in lines:
        say(f"reflectd: {plain(line)}", sys.stderr)


def add(args: argparse.Namespace) -> int:
    """Add a point."""
    text, section = checked(args.text), _section(args.section)

    def edit(playbook: Playbook, names: Names) -> Points:
        refuse_twin(playbook, text)
        point = {"name": names.take(SECTION_SLUGS[section]), "text": text, "helpful": 0, "harmful": 0}
        playbook["sections"][section].append(point)
        return [point]

    return changed(args, edit, "added", mine=True)


def edit(args: argparse.Namespace) -> int:
    """Give a point another text; its name and counters stay."""
    text = checked(args.text)

    def change(playbook: Playbook, _: Names) -> Points:
        point = points_named(by_name(playbook), [args.name])[args.name]
        refuse_twin(playbook, text, besides=point)
        point["text"] = text
        return [point]

    return changed(args, change, "edited", mine=True)


def remove(args: argparse.Namespace) -> int:
    """Remove points."""

    def change(playbook: Playbook, _: Names) -> Points:
        gone = list(points_named(by_name(playbook), args.names).values())
        drop(playbook, gone)
        return gone

    return changed(args, change, "removed")


def undo(args: argparse.Namespace) -> int:
    """Take a change back."""
    project, book = opened(args)
    if args.number < 0:
        raise UserError(f"there is no revision {args.number}")
    done = book.undo(args.number, dry_run=args.dry_run)
    undone = done if args.dry_run else next(r for r in book.history() if r.number == done.undoes)
    if args.json:
        made = None if args.dry_run else done.number
        fields = {"changed": not args.dry_run, "undone": undone.number, "revision": made}
        print_json({"project": str(project), "file": str(book.path), **fields})
    elif args.dry_run:
        say(f"would undo {undone.number}: {short(undone.what, 300)}")
    else:
        say(f"undid {undone.number}: {short(undone.what, 300)}")
        say(f"undo that with: reflectd playbook undo {done.number}")
    return 0


def changed(
    args: argparse.Namespace,
    edit: Callable[[Playbook, Names], Points],
    verb: str,
    *,
    mine: bool = False,
    nothing: str = "nothing to do",
) -> int:
    """Make a change, or only say what it would be, and tell what came of it. ``mine``: a person wrote the
    texts, so on a terminal they count as approved, and it is said whether agents are given them.
    """
    project, book = opened(args)
    vouched = mine and attended()

    with book.change(why=" ".join(redact(args.why).split())[:300], dry_run=args.dry_run) as done:
        points = edit(done.playbook, done.names)
        names = ", ".join(p["name"] for p in points[:5])
        more = f" and {len(points) - 5} more" if len(points) > 5 else ""
        done.what = f"{verb} {names}{more}" if points else "names of points"
        done.approved = [p["text"] for p in points] if vouched else []
    when = ""
    if mine and done.revision is not None:
        (name, text), *_ = [(p["name"], p["text"]) for p in points]
        unapproved = "" if vouched else f"no terminal, so not before `reflectd playbook approve {name}`"
        whys = [why for why in (when_given(args, project, text), unapproved) if why]
        when = f"no agent is given it: {'; '.join(whys)}" if whys else GIVEN
    revision = done.revision.number if done.revision else None
    if args.json:
        fields = {"changed": done.revision is not None, "revision": revision, "points": points}
        told = [*done.told, *([when] if when else [])]
        print_json({"project": str(project), "file": str(book.path), **fields, "told": told})
        return 0
    tell(done.told)
    if not points:
        say(f"{nothing} in {place(project)}")
        return 0
    paint = Paint()
    say(f"{'would be ' if args.dry_run else ''}{verb} in {place(book.path)}:")
    for point in points:
        print("\n".join(line_of(point, paint)))
    if when:
        say(when)
    if revision is not None:
        say(f"undo with: reflectd playbook undo {revision}")
    return 0


GIVEN = "the next session of an agent in this project is given it, whoever judges"


def when_given(args: argparse.Namespace, project: Path, text: str = "") -> str:
    """Why no agent is given this text in this project, although a person vouches for it; "" when one is.
    Without a text: why none is given any.
    """
    from ...learning.playbook.playbooks import blocked_in, rules_of

    base, where = look(args)
    settings, _ = config.load_project(base, project)
    if not base.playbook.enabled:
        return "playbook.enabled is false; `reflectd setup --learning on` switches learning on"
    for off, what in (
        (not settings.playbook.enabled, "playbook.enabled"),
        (not settings.enabled, "enabled"),
        (not settings.offer.enabled, "offer.enabled"),
    ):
        if off:
            return f"{what} is false (`reflectd config` says where)"
    if settings.judge.mode == "observe":
        return "judge.mode is observe, which gives agents nothing"
    if not text:
        return ""
    if why := refusal(text):
        return why
    if folded(text) in folded("\n".join(rules_of(str(project)))):
        return "AGENTS.md or CLAUDE.md says it already"
    if blocked_in(where.state_dir, str(project))(text):
        return "a rule says it already, or you dismissed it"
    return ""


def checked(text: str) -> str:
    """A point's text as a person typed it, on one line. Raises ``UserError``."""
    found = " ".join(text.split())
    if not found:
        raise UserError("the text is empty")
    if len(found) > MAX_TEXT:
        raise UserError(f"the text has {len(found)} characters; a point has at most {MAX_TEXT}")
    if redact(found) != found:
        raise UserError("the text holds a secret, and a playbook may be committed: leave it out")
    return found


def refuse_twin(playbook: Playbook, text: str, besides: Point | None = None) -> None:
    """Raise ``UserError`` when a point says the same."""
    wanted = folded(text)
    twin = next((p for _, p in each(playbook) if p is not besides and folded(p["text"]) == wanted), None)
    if twin is not None:
        raise UserError(f"{twin['name']} says the same: {short(twin['text'], 200)}")


def _section(name: str) -> str:
    """The section by its slug or its name. Raises ``UserError``."""
    by_slug = {slug: section for section, slug in SECTION_SLUGS.items()}
    found = by_slug.get(name.strip().lower()) or section_of(name)
    if found == "OTHERS" and name.strip().lower() not in {"oth", "others"}:
        raise UserError(f"there is no section {short(name, 40)!r}; there are {', '.join(by_slug)}")
    return found


def export(args: argparse.Namespace) -> int:
    """Print the playbook, or write it to a new file."""
    project, book = opened(args)
    found = book.read()
    if found.problem:
        raise UserError(found.problem)
    data = dumped(found.playbook)
    number = sum(1 for _ in each(found.playbook))
    if args.out:
        try:
            fd = os.open(args.out, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
            with os.fdopen(fd, "wb") as file:
                file.write(data)
        except FileExistsError:
            raise UserError(f"{args.out} exists already; name another file") from None
        except OSError as error:
            raise Unavailable(f"can't write {args.out}: {reason(error)}") from error
    if args.json:
        fields = {"points": number, "out": args.out, **({} if args.out else {"playbook": found.playbook})}
        print_json({"project": str(project), "file": str(book.path), **fields})
    elif args.out:
        say(f"{count(number, 'point')} of {place(project)} written to {args.out}")
    else:
        sys.stdout.write(data.decode())
    return 0


def take(args: argparse.Namespace) -> int:
    """Take over the points of another playbook that say something new. They are not approved by that."""
    theirs = _theirs(args.file)

    def edit(playbook: Playbook, names: Names) -> list[dict[str, Any]]:
        said = {folded(p["text"]) for _, p in each(playbook)}
        taken = []
        for section, p in each(theirs):
            if folded(p["text"]) in said:
                continue
            said.add(folded(p["text"]))
            known = parts(p["name"])
            slug = known[0] if known else SECTION_SLUGS[section]
            point = {**p, "name": names.keep(p["name"]) if known else names.take(slug)}
            playbook["sections"][section].append(point)
            taken.append(point)
        return taken

    return changed(args, edit, "imported", nothing="nothing new to import")


def _theirs(file: str) -> Playbook:
    """The playbook in the file. Raises ``UserError`` and ``Unavailable``."""
    if file == "-":
        raw = sys.stdin.buffer.read(LIMIT + 1)
        try:
            if len(raw) > LIMIT:
                raise ValueError(f"it is larger than {LIMIT} bytes")
            found = migrated(parsed(raw))
        except (ValueError, RecursionError) as error:
            raise UserError(f"stdin is no playbook that can be used: {error}") from None
        tell(found.told)
        return found.playbook
    if not Path(file).exists():
        raise UserError(f"there is no file {file}")
    loaded = load(file)
    if loaded.problem:
        raise UserError(loaded.problem)
    tell(loaded.told)
    return loaded.playbook


def approve(args: argparse.Namespace) -> int:
    """List what waits, or approve it by name; with ``--dismiss`` texts that are kept apart go for good."""
    project, book = opened(args)
    socket = find_socket(look(args)[1])
    waiting, silent = _waiting(socket, project)
    unknown = _unknown(book, socket, project)
    there = {f"new-{t['id']}": t for t in waiting} | {p["name"]: p for p in unknown}
    names = args.names or []
    if args.all:
        if names or args.dismiss:
            raise UserError("--all stands alone")
        names = [name for name, found in there.items() if not refusal(found["text"])]
    missing = [name for name in names if name not in there]
    if missing:
        why = f" ({silent})" if silent and _NEW.fullmatch(missing[0]) else ""
        raise UserError(f"nothing called {short(missing[0], 80)!r} waits{why}")
    if args.dismiss and (own := [n for n in names if not _NEW.fullmatch(n)]):
        raise UserError(f"{own[0]} is a point of the file: `reflectd playbook remove {own[0]}` removes it")
    if not args.dismiss:
        may_count({name: there[name]["text"] for name in names})
    if args.json and names:
        raise UserError("--json only lists; approving asks on a terminal")
    if args.json:
        print_json({"project": str(project), "waiting": waiting, "unknown": unknown, "daemon": not silent})
        return 0
    if not there:
        say(f"nothing waits for a word of yours in {place(project)}{f' ({silent})' if silent else ''}")
        return 0
    shown = {name: there[name] for name in names} if names else there
    _tell(shown, project)
    if not names:
        say("\nApprove with: reflectd playbook approve NAME …; new ones go for good with --dismiss.")
        return 0
    what = "Dismiss" if args.dismiss else "Approve"
    if not asked(f"{what} {'it' if len(names) == 1 else 'them'}?", "this asks a person, on a terminal"):
        say("Nothing was changed.")
        return 1
    _settle(names, there, book, socket, yes=not args.dismiss)
    never = "" if args.dismiss else when_given(args, project, there[names[0]]["text"])
    say("dismissed" if args.dismiss else f"approved; {f'no agent is given it: {never}' if never else GIVEN}")
    return 0


def _waiting(socket: Path, project: Path) -> tuple[list[Json], str]:
    """What is kept apart, and why that can't be told."""
    try:
        query = urlencode({"directory": str(project)})
        found = request(socket, "GET", f"/v1/features/playbook/waiting?{query}")["texts"]
    except Unavailable as e:
        return [], str(e)
    return list(found), ""


def _unknown(book: ProjectPlaybook, socket: Path, project: Path) -> list[Json]:
    """The points of the file that nobody vouches for."""
    confirmed: set[str] = set()
    try:
        query = urlencode({"directory": str(project)})
        confirmed |= set(request(socket, "GET", f"/v1/features/playbook/confirmed?{query}")["digests"])
    except Unavailable:
        pass  # then those that a session confirmed are listed too
    return unvouched(book, confirmed)


def _tell(shown: dict[str, Any], project: Path) -> None:
    paint = Paint()
    lines = paint.row("", paint(f"{count(len(shown), 'text')} in {place(project)}", "bold"), "  ")
    for name, found in shown.items():
        why = refusal(found["text"])
        note = f" (may not be offered: {why})" if why else ""
        lines += paint.row(f"  {short(name, 40):<9} ", " ".join(plain(found["text"]).split()) + note)
    print("\n".join(lines))


def _settle(
    names: list[str], there: dict[str, Any], book: ProjectPlaybook, socket: Path, *, yes: bool
) -> None:
    own = [name for name in names if not _NEW.fullmatch(name)]
    if own:
        vouch(book, {name: there[name]["text"] for name in own})
    for name in names:
        if name not in own:
            body = {"id": there[name]["id"], "yes": yes}
            request(socket, "POST", "/v1/features/playbook/settle", body)


def report(args: argparse.Namespace) -> int:
    """Ask the daemon and say it. Raises ``Unavailable`` without one."""
    project, _ = opened(args)
    query = urlencode({"directory": str(project)})
    found = request(find_socket(look(args)[1]), "GET", f"/v1/features/playbook/report?{query}")
    if args.json:
        print_json(found)
        return 0
    print("\n".join(lines(found, Paint())))
    return 0


def lines(found: dict[str, Any], paint: Paint) -> list[str]:
    """The report for a person."""
    told = paint.row("", paint(f"points in {place(found['directory'])}", "bold"), "  ")
    for p in found["points"]:
        said = f"given to {count(p['given'], 'session')}, cited in {p['cited']}, "
        said += f"helped in {p['helpful']}, harmed in {p['harmful']}"
        told += paint.row(f"  {short(p['name'], 40):<9} ", said)
    if not found["points"]:
        told += paint.row("  ", "no session was given a point yet")
    told.append("")
    for name, side in (("with points", found["with_points"]), ("without", found["held_out"])):
        told += paint.row(f"  {name:<12} ", _side(side))
    return told + paint.row("  ", found["shows"])


def _side(side: dict[str, Any]) -> str:
    if not side["tasks"]:
        return "no task was judged"
    low, high = round(100 * side["low"]), round(100 * side["high"])
    return (
        f"{side['complete']:,} of {count(side['tasks'], 'task')} complete at their first verdict "
        f"({low} to {high} %)"
    )


def offer_here(settings: Settings, where: Paths, known: Container[str] = ()) -> str:
    """``offer`` for the project of the current folder. ``known``: where hosts work. Never raises."""
    try:
        project = upward.project(".", known)
    except UserError:
        return ""
    return offer(project, ProjectPlaybook(project, where.state_dir, SystemClock(), settings.playbook.path))


def offer(project: Path, book: ProjectPlaybook) -> str:
    """What a person may do with the ACE plugin's playbook of this project, in words; "" when there is none,
    or when it says nothing new. Never raises.
    """
    if book.named == ACE or book.problem(ACE):
        return ""
    theirs = [folded(p["text"]) for _, p in each(load(project / ACE, follow=False, sleep=_at_once).playbook)]
    mine = {folded(p["text"]) for _, p in each(book.read().playbook)} if theirs else set()
    new = len(set(theirs) - mine)
    if not new:
        return ""
    return (
        f"{ACE} of this project has {count(new, 'point')} that its playbook lacks: `reflectd playbook import "
        f"{ACE}` takes them over"
    )


def _at_once(seconds: float) -> None:
    """A file that is being written is offered the next time."""
