"""``reflectd history``: what was judged. Sessions and their rounds, with what became of the feedback.

A round is a turn that has its verdict; `why` and `dispute` take its number. Reads the database.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.errors import UserError
from ..render import Paint, clock, count, place, print_json, short
from ..settings import NOTHING, add_flags, database, here, look, unknown
from ..terminal import say, show
from .cost import since
from .why import round_lines

if TYPE_CHECKING:
    import argparse

    from ...paths import Paths

Json = dict[str, Any]
MOST = 500
TITLE = 60
EPILOG = """examples:
  reflectd history                 the newest sessions of this project
  reflectd history --all --days 1  what was judged today, in all projects
  reflectd history ses_58c3        all rounds of one session
  reflectd history --json          for scripts; with the file of each case"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = verbs.add_parser("history", epilog=EPILOG)
    parser.add_argument("session", nargs="?", default="", metavar="SESSION", help="(the beginning of) its id")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--dir", metavar="DIR", help="the project of this folder (of the current one)")
    where.add_argument("--all", action="store_true", help="the sessions of all projects")
    parser.add_argument(
        "--days", type=int, metavar="N", help="only rounds of the last N days, today included"
    )
    parser.add_argument("--limit", type=int, default=20, metavar="N", help="at most N sessions (20)")
    add_flags(parser, run, json="print all that is known as JSON")


def run(args: argparse.Namespace) -> int:
    if not 1 <= args.limit <= MOST:
        raise UserError(f"--limit must be from 1 to {MOST}")
    begin = since(args.days) if args.days is not None else 0
    _, where = look(args)
    folder = "" if args.all or args.session else str(here(where, args.dir))
    found = _gather(where, args.session, folder, begin, args.limit)
    if args.json:
        print_json(found)
        return 0
    if not where.database.exists():
        say(NOTHING)
        return 0
    show(lines(found, Paint(), everywhere=args.all))
    return 0


def _gather(where: Paths, session: str, folder: str, begin: int, limit: int) -> Json:
    from ...engine.history import History

    nothing: Json = {"since": begin, "directory": folder, "more": False, "next": "", "sessions": []}
    with database(where) as db:
        found = nothing
        if db is not None:
            page = History(db, where).page
            found = page(session=session, directory=folder, since=begin, limit=limit) or {}
    if not found or (session and db is None):
        raise unknown(session)
    return found


def lines(found: Json, paint: Paint, *, everywhere: bool = False) -> list[str]:
    listed: list[Json] = found["sessions"]
    of = (
        f" in {place(found['directory'])}" if found["directory"] else " in all projects" if everywhere else ""
    )
    begin = f" since {clock(found['since'])}" if found["since"] else ""
    if not any(s["rounds"] for s in listed):
        of = f" of {short(listed[0]['session'], 120)}" if listed else of
        lists = "`reflectd history --all` lists all projects"
        more = f"; {lists if found['directory'] else '`reflectd setup` connects an agent'}"
        return paint.row("", f"nothing{of} was judged{begin}{more}", "  ")
    counted = sum(len(s["rounds"]) for s in listed)
    title = f"{count(len(listed), 'session')}, {count(counted, 'round')}{begin}{of}"
    text = paint.row("", paint(title, "bold"), "  ")
    for s in listed:
        text += ["", *_session(s, paint, everywhere=not found["directory"])]
    text.append("")
    if found["more"]:
        text.append("There are older sessions: --limit shows more of them.")
    newest = next(s for s in listed if s["rounds"])
    why = f"`reflectd why {short(newest['session'], 120)} --round {newest['rounds'][0]['round']}`"
    return [*text, *paint.row("", paint(f"{why} explains a round", "dim"), "  ")]


def _session(s: Json, paint: Paint, *, everywhere: bool) -> list[str]:
    rounds: list[Json] = s["rounds"][::-1]
    name = short(s["session"], 120)
    text = paint.row("", f"{paint(name, 'bold')}  {short(s['title'], TITLE)}".rstrip(), "  ")
    if everywhere:
        text += paint.row("  ", place(s["directory"]))
    if (left := s["rounds_total"] - len(rounds)) > 0:
        text += paint.row("  ", f"{count(left, 'earlier round')} not shown: `reflectd history {name}`")
    text += [line for r in rounds for line in round_lines(r, paint)]
    if s["phase"] == "judging":
        text.append("  its newest turn is being judged")
    elif s["busy"]:
        text.append("  the agent works")
    return text
