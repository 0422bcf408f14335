"""``reflectd playbook approve``: a person's word on what nobody vouches for yet.

That is two things: points of the file that came with a clone or were written by hand (by their names), and
texts that reflectd learned and keeps apart until another session shows that they are true (``new-12``; only a
running daemon knows them). Approving is for a person: it asks on a terminal, and no flag answers in their
place, because an agent could set it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from ...client import request
from ...core.errors import Unavailable, UserError
from ...core.learned import refusal
from ...files.learned_points import may_count, unvouched, vouch
from ...paths import find_socket
from ..render import Paint, count, place, plain, print_json, short
from ..settings import look
from ..setup.confirm import asked
from ..terminal import say
from .shown import Json, opened

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from ...files.project_playbook import ProjectPlaybook

_NEW = re.compile(r"new-(\d{1,15})")


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
    say("dismissed" if args.dismiss else "approved; the next session is given it")
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
