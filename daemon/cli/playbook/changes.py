"""What a person changes in a playbook: one revision each."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...core.errors import UserError
from ...core.learned import folded
from ...core.redact import redact
from ...learning.playbook.points import SECTION_SLUGS, by_name, drop, each, section_of
from ..render import Paint, place, print_json, short
from ..terminal import attended, say
from .shown import line_of, opened, points_named, tell

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from pathlib import Path

    from ...files.project_playbook import Changed, ProjectPlaybook
    from ...learning.playbook.points import Names, Playbook, Point

Points = list[dict[str, Any]]
MAX_TEXT = 2_000  # characters of a point that a person types


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
    told: str = "",
) -> int:
    """Make a change, or only say what it would be, and tell what came of it. ``mine``: a person wrote the
    texts, so on a terminal they count as approved. ``told``: what the person should know besides.
    """
    project, book = opened(args)
    vouched = mine and attended()

    def what(points: Points) -> str:
        names = ", ".join(p["name"] for p in points[:5])
        more = f" and {len(points) - 5} more" if len(points) > 5 else ""
        return f"{verb} {names}{more}" if points else "names of points"

    done = book.change(
        edit,
        what,
        why=" ".join(redact(args.why).split())[:300],
        approved=(lambda points: [p["text"] for p in points]) if vouched else None,
        dry_run=args.dry_run,
    )
    if mine and not vouched and done.revision is not None:
        names = " ".join(p["name"] for p in done.result)
        told = f"no terminal, so no agent is given it before `reflectd playbook approve {names}`"
    if told:
        done = replace(done, told=(*done.told, told))
    return report(args, project, book, done, verb, nothing)


def report(
    args: argparse.Namespace,
    project: Path,
    book: ProjectPlaybook,
    done: Changed[Points],
    verb: str,
    nothing: str,
) -> int:
    """Say what was changed."""
    revision = done.revision.number if done.revision else None
    if args.json:
        fields = {"changed": done.revision is not None, "revision": revision, "points": done.result}
        print_json({"project": str(project), "file": str(book.path), **fields, "told": done.told})
        return 0
    tell(done.told)
    if not done.result:
        say(f"{nothing} in {place(project)}")
        return 0
    paint = Paint()
    say(f"{'would be ' if args.dry_run else ''}{verb} in {place(book.path)}:")
    for point in done.result:
        print("\n".join(line_of(point, paint)))
    if revision is not None:
        say(f"undo with: reflectd playbook undo {revision}")
    return 0


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
