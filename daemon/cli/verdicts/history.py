"""``reflectd history``: what was judged. Sessions and their rounds, with what became of the feedback.

A round is a turn that has its verdict; `why`, `dispute` and `case save` take its number. Reads the database.
Exit codes: 0 done, also when nothing was judged · 2 wrong arguments, no session or several sessions match.
"""

from __future__ import annotations

import re
import time
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from ...core.errors import UserError
from ...core.words import OUTCOMES, state_name
from ..render import Paint, count, print_json, severity, short
from ..settings import NOTHING, add_flags, database, here, look
from ..terminal import beginning, columns, fold, say, show
from .why import gist

if TYPE_CHECKING:
    import argparse

    from ...paths import Paths

Json = dict[str, Any]
MOST = 500
TITLE = 60
FORMS = "8h, 90m, 2d, 18:00, today, yesterday, 2026-01-31 or 2026-01-31T18:00"
_SPAN = re.compile(r"(\d{1,6})\s*(s|m|min|h|d|w)")
_UNITS = {"s": "seconds", "m": "minutes", "min": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_TIME = re.compile(r"(\d{1,2}):(\d{2})")
EPILOG = """examples:
  reflectd history                       the newest sessions of this project
  reflectd history --all --since 18:00   what happened overnight, in all projects
  reflectd history ses_58c3              all rounds of one session
  reflectd history --since 2d --json     for scripts; with the file of each case

--since takes 8h, 90m, 2d, 18:00 (the last one), today, yesterday, 2026-01-31 or
2026-01-31T18:00."""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the verb."""
    parser = verbs.add_parser("history", epilog=EPILOG)
    parser.add_argument("session", nargs="?", default="", metavar="SESSION", help="(the beginning of) its id")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--dir", metavar="DIR", help="the project of this folder (of the current one)")
    where.add_argument("--all", action="store_true", help="the sessions of all projects")
    parser.add_argument("--since", metavar="WHEN", default="", help="only rounds since then, such as 18:00")
    parser.add_argument("--limit", type=int, default=20, metavar="N", help="at most N sessions (20)")
    add_flags(parser, run, json="print all that is known as JSON")


def run(args: argparse.Namespace) -> int:
    """Gather what was judged and print it."""
    if not 1 <= args.limit <= MOST:
        raise UserError(f"--limit must be from 1 to {MOST}")
    since = moment(args.since) if args.since else 0
    _, where = look(args)
    folder = "" if args.all or args.session else str(here(where, args.dir))
    found = _gather(where, args.session, folder, since, args.limit)
    if args.json:
        print_json(found)
        return 0
    if not where.database.exists():
        say(NOTHING)
        return 0
    paint = Paint()
    show(lines(found, paint, paint.width, everywhere=args.all))
    return 0


def _gather(where: Paths, session: str, folder: str, since: int, limit: int) -> Json:
    from ...engine.history import History

    nothing: Json = {"since": since, "directory": folder, "more": False, "next": "", "sessions": []}
    with database(where) as db:
        found = nothing
        if db is not None:
            page = History(db, where).page
            found = page(session=session, directory=folder, since=since, limit=limit) or {}
    if not found or (session and db is None):
        raise UserError(
            f"no session begins with {session!r}; `reflectd history --all` lists those that were judged"
        )
    return found


def lines(found: Json, paint: Paint, width: int, *, everywhere: bool = False) -> list[str]:
    """All lines for a person, none wider than ``width`` columns (0: as wide as they come)."""
    listed: list[Json] = found["sessions"]
    folder = short(found["directory"], 400)
    place = f" in {folder}" if folder else " in all projects" if everywhere else ""
    since = f" since {time.strftime('%Y-%m-%d %H:%M', _local(found['since']))}" if found["since"] else ""
    if not any(s["rounds"] for s in listed):
        of = f" of {short(listed[0]['session'], 120)}" if listed else place
        lists = "`reflectd history --all` lists all projects"
        more = f"; {lists if folder else '`reflectd setup` connects an agent'}"
        return fold(f"nothing{of} was judged{since}{more}", width, "  ", cut=False)
    counted = sum(len(s["rounds"]) for s in listed)
    title = f"{count(len(listed), 'session')}, {count(counted, 'round')}{since}"
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
    """One session: its name, its place where several are listed, and its rounds from old to new."""
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
    """The missing items, else the feedback or the reason."""
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


def moment(text: str, now: datetime | None = None) -> int:
    """The moment in the past that a person means by ``text``, in epoch ms. A time of day is the last one:
    18:00, typed at 9:00, is that of yesterday. ``now``: local time without a zone. Raises ``UserError``.
    """
    now = now or datetime.now()  # noqa: DTZ005 - what a person types is local time
    try:
        found = _read(text.strip().lower(), now)
        ms = int(found.timestamp() * 1000)
    except (ValueError, OverflowError, OSError) as e:
        raise UserError(f"{text[:60]!r} is no time; write {FORMS}") from e
    if found > now:
        raise UserError(f"{text[:60]!r} lies in the future")
    return max(0, ms)


def _read(text: str, now: datetime) -> datetime:
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if text in {"today", "yesterday"}:
        return midnight - timedelta(days=text == "yesterday")
    if span := _SPAN.fullmatch(text):
        return now - timedelta(**{_UNITS[span[2]]: int(span[1])})
    if clock := _TIME.fullmatch(text):
        found = midnight.replace(hour=int(clock[1]), minute=int(clock[2]))
        return found if found <= now else found - timedelta(days=1)
    found = datetime.fromisoformat(text.upper())
    return found.astimezone().replace(tzinfo=None) if found.tzinfo else found
