"""``reflectd why``: shows how a session's last turn, or another round, was judged, on what evidence, and what
it cost.

Asks the daemon for the state and the verdicts, and reads the case file itself. When no daemon runs, it reads
the newest case file of this project, or the round from the database, and says so. What it explains without
being asked by id is of this project, or it says that it is not. Exit codes: 0 explained · 1 nothing to
explain and no daemon · 2 no session, or several, have an id that begins like that, or the session has no such
round.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from ...client import request
from ...core.errors import BadReply, Unavailable, UserError
from ...paths import find_socket
from ..render import Paint, print_json, short
from ..settings import add_flags, here, look
from ..terminal import add_flag, say, show

if TYPE_CHECKING:
    import argparse

    from ...paths import Paths

BEFORE = 5
MOST = 1_000_000
EPILOG = """examples:
  reflectd why                     the newest verdict of this project, else the newest of all
  reflectd why ses_58c3f0d9        a session, by the beginning of its id
  reflectd why ses_58c3 --round 2  its second round; `reflectd history` lists all rounds
  reflectd why --full              with the whole prompt and reply

exit codes: 0 explained, 1 nothing to explain and no daemon, 2 no session or
several sessions match, or there is no such round"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the verb."""
    parser = verbs.add_parser(
        "why",
        help="why a session was judged as it was",
        epilog=EPILOG,
    )
    parser.add_argument("session", nargs="?", default="", metavar="SESSION", help="(the beginning of) its id")
    parser.add_argument("--dir", metavar="DIR", help="the project of this folder (of the current one)")
    add_round(parser)
    parser.add_argument("--full", action="store_true", help="the whole prompt, reply and feedback")
    parser.add_argument("--json", action="store_true", help="print all that is known as JSON")
    add_flag(parser)
    add_flags(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Gather what is known and print it."""
    _, where = look(args)
    folder = here(where, args.dir)
    found = gather(where, args.session, folder, args.round)
    if found["elsewhere"]:
        of = short(folder_of(found), 200)
        newest = "this session was judged last" if args.round else "this is the newest of all"
        say(f"reflectd: nothing in {folder} was judged; {newest}, in {of}", sys.stderr)
    if args.json:
        print_json(found)
        return 0
    from .why_text import explained

    show(explained(found, Paint(), full=args.full), pager=not args.no_pager)
    return 0


def add_round(parser: argparse.ArgumentParser) -> None:
    """Register ``--round``, for a verb that is about one round of a session."""
    parser.add_argument(
        "--round",
        type=_number,
        default=0,
        metavar="N",
        help="the session's Nth round, as `reflectd history` counts them (the last one)",
    )


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= MOST):
        import argparse

        raise argparse.ArgumentTypeError(f"{text!r} is no number of a round: they count from 1")
    return int(text)


def gather(where: Paths, session: str, folder: Path, number: int = 0) -> dict[str, Any]:
    """The daemon's answer, with ``case`` and ``case_file`` added. ``number``: the round, 0 is the last one.

    Without a daemon ``case`` and ``case_file``, and of a round also ``verdicts``.
    """
    try:
        query = urlencode({"session": session, "directory": str(folder), "round": number})
        found = request(find_socket(where), "GET", f"/v1/why?{query}")
    except Unavailable as e:
        if number:
            return _from_database(where, session, folder, number)
        return _without_daemon(where, session, folder, str(e))
    if number and [v.get("round") for v in found["verdicts"][:1]] != [number]:
        raise Unavailable("the running daemon is too old to tell rounds apart: `reflectd restart`")
    return {**found, **_about(found, session, folder), "daemon": True, **_first_case(found["cases"])}


def _first_case(paths: list[str]) -> dict[str, Any]:
    from ...files.saved_cases import read_case

    case, path = None, ""
    for path in paths[:1]:
        try:
            case = read_case(Path(path))
        except Unavailable as e:
            say(f"reflectd: {e}", sys.stderr)
    return {"case_file": path, "case": case}


def _about(found: dict[str, Any], session: str, folder: Path) -> dict[str, Any]:
    """The project that was asked about, and whether what was found is of another one."""
    return {"project": str(folder), "elsewhere": not session and not is_inside(folder_of(found), folder)}


def _from_database(where: Paths, session: str, folder: Path, number: int) -> dict[str, Any]:
    """A round without a daemon."""
    from ...engine.history import judged_session, last_rounds
    from ...store.outbox import Outbox
    from ...store.readonly import ReadOnly
    from ...store.verdicts import Verdicts

    try:
        with ReadOnly(where.database) as db:
            identity = judged_session(db, session, str(folder))
            rounds = last_rounds(Verdicts(db), Outbox(db), where, identity, number, BEFORE)
    except BadReply as e:
        raise UserError(str(e)) from e
    say("reflectd: no daemon runs; read from its database", sys.stderr)
    found = {"daemon": False, "verdicts": rounds}
    return {**found, **_about(found, session, folder), **_first_case([c for c in (rounds[0]["case"],) if c])}


def folder_of(found: dict[str, Any]) -> str:
    """The folder of the session that the daemon explains."""
    known = [found.get("session") or {}, *found["verdicts"]]
    return next((str(k["directory"]) for k in known if k.get("directory")), "")


def is_inside(place: str, folder: Path) -> bool:
    """Whether a session's folder is this one or below it. One that is not known is."""
    return not place or Path(place).is_relative_to(folder)


def _without_daemon(where: Paths, session: str, folder: Path, why: str) -> dict[str, Any]:
    from ...files.saved_cases import read_case

    cases = cases_upward(where, folder, session)
    if not cases:
        what = f" of a session whose id begins with {session!r}" if session else ""
        raise Unavailable(
            f"{why}. Without a daemon only saved cases can be read, and {folder} has none{what}"
        )
    said = f"no daemon runs; this is the newest case in {cases[0].parent}"
    say(f"reflectd: {said}", sys.stderr)
    about = {"project": str(folder), "elsewhere": False, "daemon": False}
    return {**about, "case_file": str(cases[0]), "case": read_case(cases[0])}


def cases_upward(where: Paths, folder: Path, session: str, limit: int = 1) -> list[Path]:
    """The newest cases, newest first, in the nearest folder upward that has any of such a session."""
    from ...files.saved_cases import folders, newest_cases
    from ...files.upward import upward

    found = (
        newest_cases(folders(place, where.fallback_reflection(place)), session, limit=limit)
        for place in upward(folder)
    )
    return next((cases for cases in found if cases), [])
