"""What ``reflectd playbook`` shows: points and changes. Also how every action finds its project."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ...clock import SystemClock
from ...core.errors import UserError
from ...files.project_playbook import ProjectPlaybook
from ...files.revise import undone
from ...learning.playbook.points import SECTION_SLUGS, by_name, each
from ..render import Paint, clock, count, place, plain, print_json, short
from ..settings import here, look
from ..terminal import say
from ..terminal import show as show_lines
from .ace import offer

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from ...files.revise import Revision

Json = dict[str, Any]
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
    lines += ["", *paint.row("", offered, "  ")] if offered else []
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
