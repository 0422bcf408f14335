"""``reflectd history``: what was judged. Sessions and their rounds, with what became of the feedback.

A round is a turn that has its verdict; `why` and `dispute` take its number. Reads the database.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ...core.errors import UserError
from ...core.words import OUTCOMES, state_name
from ..render import Paint, count, print_json, severity, short
from ..settings import NOTHING, add_flags, database, here, look, unknown
from ..terminal import beginning, columns, fold, say, show
from .cost import since
from .why import gist

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
    paint = Paint()
    show(lines(found, paint, paint.width, everywhere=args.all))
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


def lines(found: Json, paint: Paint, width: int, *, everywhere: bool = False) -> list[str]:
    """All lines for a person, none wider than ``width`` columns (0: as wide as they come)."""
    listed: list[Json] = found["sessions"]
    folder = short(found["directory"], 400)
    place = f" in {folder}" if folder else " in all projects" if everywhere else ""
    begin = f" since {_day(found['since'])}" if found["since"] else ""
    if not any(s["rounds"] for s in listed):
        of = f" of {short(listed[0]['session'], 120)}" if listed else place
        lists = "`reflectd history --all` lists all projects"
        more = f"; {lists if folder else '`reflectd setup` connects an agent'}"
        return fold(f"nothing{of} was judged{begin}{more}", width, "  ")
    counted = sum(len(s["rounds"]) for s in listed)
    title = f"{count(len(listed), 'session')}, {count(counted, 'round')}{begin}"
    text = [paint(_fit(f"{title}{place}", width), "bold")]
    for s in listed:
        text += ["", *_session(s, paint, width, everywhere=not folder)]
    text.append("")
    if found["more"]:
        text.append(_fit("There are older sessions: --limit shows more of them.", width))
    newest = next(s for s in listed if s["rounds"])
    why = f"reflectd why {short(newest['session'], 120)} --round {newest['rounds'][0]['round']}"
    return [*text, paint(_fit(f"{why}   explains a round", width), "dim")]


def _session(s: Json, paint: Paint, width: int, *, everywhere: bool) -> list[str]:
    rounds: list[Json] = s["rounds"][::-1]
    day = _day(rounds[0]["timestamp"]) if rounds else ""
    name = short(s["session"], 120)
    text = [_fit(f"{name}  {day}  {short(s['title'], TITLE)}".rstrip(), width)]
    text[0] = paint(name, "bold") + text[0].removeprefix(name)
    if everywhere:
        text.append(_fit(f"  {short(s['directory'], 400)}", width))
    if (left := s["rounds_total"] - len(rounds)) > 0:
        text.append(_fit(f"  {count(left, 'earlier round')} not shown: reflectd history {name}", width))
    numbers = max((len(str(r["round"])) for r in rounds), default=0)
    states = max((len(_state(r)) for r in rounds), default=0)
    for r in rounds:
        if (today := _day(r["timestamp"])) != day:
            day = today
            text.append(f"{'':{numbers + 4}}{day}")
        text += _round(r, paint, width, numbers, states)
    if s["phase"] == "judging":
        text.append("  its newest turn is being judged")
    elif s["busy"]:
        text.append("  the agent works")
    return text


def _round(r: Json, paint: Paint, width: int, numbers: int, states: int) -> list[str]:
    """When, what the verdict was, its feedback or reason, and what became of feedback that did not arrive."""
    at = time.strftime("%H:%M", _local(r["timestamp"]))
    head = f"  {r['round']:>{numbers}}  {at}  "
    state, room = _state(r), width - len(head) - states - 2 if width else 200
    name = state_name(r["state"], r.get("reason", ""))
    rest = f"{state.removeprefix(name)}{'':{states - len(state)}}"
    shown = f"{head}{paint.state(r['state'], r.get('reason', ''))}{rest}"
    found = [f"{shown}  {_fit(short(_gist(r), 400), max(room, 16))}".rstrip()]
    order = r.get("order") or {}
    if order and order.get("status") != "done":
        outcome = OUTCOMES.get(str(order.get("status")), "")
        found.append(paint(_fit(f"{'':{len(head) + states + 2}}{outcome}", width), "dim"))
    return found


def _gist(r: Json) -> str:
    missing = [str(m["item"]) for m in r.get("missing") or []]
    more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
    return f"{missing[0]}{more}" if missing else gist(r)


def _state(r: Json) -> str:
    return f"{state_name(r['state'], r.get('reason', ''))}{severity(r.get('severity'))}"


def _fit(text: str, width: int) -> str:
    """One line that the terminal does not wrap; 0 is no limit."""
    return text if not width or columns(text) <= width else f"{beginning(text, width - 1)}…"


def _day(ms: int) -> str:
    return time.strftime("%Y-%m-%d", _local(ms))


def _local(ms: int) -> time.struct_time:
    try:
        return time.localtime(ms / 1000)
    except (OverflowError, ValueError, OSError):
        return time.localtime(0)
