"""``reflectd why``: the verdict of a session's last turn or of another round, what is missing and on what
evidence, what it cost, and the next command. ``--full`` adds all that the judge was asked and answered.

Reads the database and the case file; a cloned project may have only case files.
"""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from ...core.errors import ReflectdError, Unavailable, UserError
from ...core.proof import in_words
from ...core.verdict import NO_PROOF, OVER_LIMIT
from ...core.words import OUTCOMES, PROVIDERS, STATES, UNJUDGED
from ..render import (
    Paint,
    clock,
    first_line,
    indented,
    money,
    place,
    plain,
    print_json,
    severity,
    short,
    times,
    waiting,
)
from ..settings import NOTHING, add_flags, database, here, look, unknown
from ..terminal import say, show
from .cost import told, worked

if TYPE_CHECKING:
    import argparse

    from ...paths import Paths

Json = dict[str, Any]
MOST = 1_000_000
SHOWN = 3  # missing items without --full
PREFIX = 20  # characters of a session id in a command: enough to name it
WIDTH = 160  # characters of one text, before it is wrapped
EPILOG = """examples:
  reflectd why                     the newest verdict of this project, else the newest of all
  reflectd why ses_58c3f0d9        a session, by the beginning of its id
  reflectd why ses_58c3 --round 2  its second round; `reflectd history` lists all rounds
  reflectd why --full              with the evidence, the whole prompt and the reply"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = verbs.add_parser("why", epilog=EPILOG)
    parser.add_argument("session", nargs="?", default="", metavar="SESSION", help="(the beginning of) its id")
    parser.add_argument("--dir", metavar="DIR", help="the project of this folder (of the current one)")
    add_round(parser)
    parser.add_argument("--full", action="store_true", help="with evidence, prompt, reply and feedback")
    add_flags(parser, run, json="print all that is known as JSON")


def run(args: argparse.Namespace) -> int:
    _, where = look(args)
    folder = here(where, args.dir)
    found = gather(where, args.session, folder, args.round)
    if found["elsewhere"]:
        if args.dir and not os.path.isdir(args.dir):  # noqa: PTH112 - as the person typed it
            raise UserError(f"there is no folder {args.dir}, and nothing in it was judged")
        of = short(folder_of(found), 200)
        say(f"reflectd: nothing in {folder} was judged; this is the newest of all, in {of}", sys.stderr)
    if args.json:
        print_json(found)
    elif not found["session"] and not found["verdicts"] and not found["case"]:
        say(NOTHING)
    else:
        show(explained(found, Paint(), full=args.full))
    return 0


def add_round(parser: argparse.ArgumentParser) -> None:
    """Register ``--round``, for a verb that is about one round of a session."""
    text = "the session's Nth round, as `reflectd history` counts them (the last one)"
    parser.add_argument("--round", type=int, default=0, metavar="N", help=text)


def gather(where: Paths, session: str, folder: Path, number: int = 0) -> Json:
    """The result of ``engine.history.explain``, with ``project``, ``elsewhere``, ``guard``, ``case`` and
    ``case_file``. Where the database has nothing of this project or session, the newest case file upward.
    """
    from ...engine.history import History
    from ...files.cases import read_case

    number = max(-1, min(number, MOST))
    with database(where) as db:
        found = History(db, where).explain(session, str(folder), number) if db is not None else None
    elsewhere = found is not None and not session and not is_inside(folder_of(found), folder)
    cases = found["cases"] if found is not None else []
    if not number and (found is None or elsewhere) and (upward := cases_upward(where, folder, session)):
        found, elsewhere, cases = None, False, [str(path) for path in upward]
    if found is None:
        if session and not cases:
            raise unknown(session)
        found = {"session": None, "verdicts": [], "rounds_total": 0, "cases": cases}
    case = None
    for path in cases[:1]:
        try:
            case = read_case(Path(path))
        except Unavailable as e:
            say(f"reflectd: {e}", sys.stderr)
    more = {"project": str(folder), "elsewhere": elsewhere, "guard": _guard(where, found)}
    return {**found, **more, "case_file": cases[0] if cases else "", "case": case}


def _guard(where: Paths, found: Json) -> Json | None:
    from ...client import request
    from ...paths import find_socket

    with suppress(ReflectdError):
        query = urlencode({"session": found["session"]["session"]}) if found["session"] else ""
        answer: Json = request(find_socket(where), "GET", f"/v1/why?{query}") if query else {}
        return answer.get("guard")
    return None


def folder_of(found: Json) -> str:
    known = [found.get("session") or {}, *found["verdicts"]]
    return next((str(k["directory"]) for k in known if k.get("directory")), "")


def is_inside(folder: str, project: Path) -> bool:
    """Says whether a session's folder is this one or below it. One that is not known is."""
    return not folder or Path(folder).is_relative_to(project)


def cases_upward(where: Paths, folder: Path, session: str, limit: int = 1) -> list[Path]:
    """The newest cases, newest first, in the nearest folder upward that has any of such a session."""
    from ...files.cases import folders, newest_cases
    from ...files.project import upward

    found = (
        newest_cases(folders(place, where.fallback_reflection(place)), session, limit=limit)
        for place in upward(folder)
    )
    return next((cases for cases in found if cases), [])


# The text. A case file may come with a clone, so any field of it may be missing or have a wrong type.


def explained(found: Json, paint: Paint, *, full: bool = False, stored: bool = True) -> list[str]:
    """About ten lines; with ``full`` all that is known. ``stored``: the verdict can be asked about again."""
    case = _object(found.get("case"))
    verdicts = [_object(v) for v in _list(found.get("verdicts"))]
    decided = _object(case.get("verdict"))
    if not verdicts and decided:
        verdicts = [{**decided, "timestamp": decided.get("at", 0), "order": None}]
    same = not verdicts or decided.get("turn") == verdicts[0].get("turn")
    lines = _head(found, verdicts, paint)
    if verdicts:
        lines += _verdict(verdicts[0], case if same else {}, paint, full=full)
    if "ledger" in found:
        sums, agent = _object(found["ledger"].get("sums")), _object(found["ledger"].get("agent"))
        lines += paint.row("  cost      ", f"{told(sums)}{f'; the agent: {worked(agent)}' if full else ''}")
    if not full:
        return lines + (_next(found, verdicts[0], paint) if verdicts and stored else [])
    if not same:
        lines += ["", "The rest is of an earlier turn: the newest has no case file."]
    if case:
        lines += _case(case, paint)
    elif verdicts:
        none = "There is no case file: no judge was asked about this turn, or the file was removed."
        lines += ["", *paint.row("", none)]
    if len(verdicts) > 1:
        lines += ["", paint("Before that", "bold")]
        lines += [line for v in verdicts[1:] for line in round_lines(v, paint)]
    if found.get("case_file"):
        lines += ["", f"Everything: {plain(found['case_file'])}"]
    return lines


def round_lines(v: Json, paint: Paint) -> list[str]:
    """A round: its number, when, the verdict, what is missing, and what became of feedback that did not
    arrive.
    """
    items = [short(_object(m).get("item", ""), WIDTH) for m in _list(v.get("missing"))]
    more = f" (and {len(items) - 1} more)" if len(items) > 1 else ""
    text = f"{items[0]}{more}" if items else short(gist(v), WIDTH)
    status = str(_object(v.get("order")).get("status", "done"))
    lost = "" if status == "done" else f"; {OUTCOMES.get(status, '')}"
    label = f"  {int(_number(v.get('round'))):>2}  {clock(_number(v.get('timestamp')))}  "
    return paint.row(label, f"{_state(v, paint)}{severity(v.get('severity'))}  {text}{lost}".rstrip())


def gist(v: Json) -> str:
    """The first line of the verdict's feedback, else its reason; a foreign text."""
    return first_line(v.get("feedback") or "") or reason(v)


def reason(v: Json) -> str:
    """Why the verdict is what it is, when that was not the judge's answer; else empty."""
    why = str(v.get("reason") or "")
    if why.startswith(NO_PROOF):
        return _over_limit(v) or "no model"
    return (
        ""
        if why in {"judged", "guard:aborted"}
        else why.removeprefix("unscored: ").replace("guard:", "guard ")
    )


def _over_limit(v: Json) -> str:
    """The limit on spending that kept a model from judging, in words; "" for none."""
    why = str(v.get("reason") or "").removeprefix(f"{NO_PROOF}: ")
    return short(why.partition(": ")[2], 200) if why.startswith(OVER_LIMIT) else ""


def _state(v: Json, paint: Paint) -> str:
    return paint.state(str(v.get("state", "?")), str(v.get("reason") or ""))


def _head(found: Json, verdicts: list[Json], paint: Paint) -> list[str]:
    s = _object(found.get("session"))
    case = _object(_object(found.get("case")).get("case"))
    newest = verdicts[0] if verdicts else {}
    identity = s.get("session") or newest.get("session") or case.get("session") or "?"
    title = s.get("title") or next(iter(_list(case.get("requests"))[-1:]), "")
    folder = s.get("directory") or newest.get("directory")
    parts = [paint(short(identity, 120), "bold"), short(title, 60), place(folder) if folder else ""]
    lines = paint.row("", "  ".join(part for part in parts if part), "  ")
    now = waiting(s) or ("the agent works" if s.get("busy") else "reflectd is off" if s.get("off") else "")
    if now:
        lines += paint.row("  now       ", now)
    guard = _object(found.get("guard"))
    if guard and (not verdicts or _number(guard.get("at")) > _number(newest.get("timestamp"))):
        why, when = short(guard.get("reason", ""), 100), clock(_number(guard.get("at")))
        lines += paint.row("  left      ", f"its last turn was left alone: {why} ({when})")
    return lines if verdicts else [*lines, "  verdict   none yet"]


def _verdict(v: Json, case: Json, paint: Paint, *, full: bool) -> list[str]:
    number, when = int(_number(v.get("round"))), clock(_number(v.get("timestamp")))
    state = str(v.get("state"))
    back = int(_number(v.get("attempt"))) if state == "complete" else 0
    before = f", after it was sent back {times(back)}" if back else ""
    title = f"{_state(v, paint)}{severity(v.get('severity'))}, {f'round {number}, ' if number else ''}{when}"
    title += before
    lines = paint.row("  verdict   ", title)
    if str(v.get("reason") or "").startswith(NO_PROOF):
        lines += paint.row("  because   ", _over_limit(v) or UNJUDGED)
    elif reason(v):
        lines += paint.row("  because   ", short(reason(v), 400))
    elif state in {"stopped", "error", "awaiting_user"} and v.get("reason") != "guard:aborted":
        lines += paint.row("  because   ", short(gist(v), 200) or STATES[state])
    elif state == "complete" and (seen := _passed(case)):
        lines += paint.row("  because   ", seen)
    rows = {str(row.get("id")): row.get("text", "") for row in _rows(case)}
    missing = _list(v.get("missing"))
    for i, item in enumerate(missing if full else missing[:SHOWN], 1):
        m = _object(item)
        what, cites = short(m.get("item", m.get("text", "")), WIDTH), short(m.get("cites", ""), 80)
        seen = f"{cites}: {short(rows[cites], WIDTH if full else 60)}" if cites in rows else cites
        lines += paint.row(f"  missing   {i}. ", f"{what} [{seen}]" if seen else what)
    if not full and len(missing) > SHOWN:
        lines.append(f"  missing   and {len(missing) - SHOWN} more")
    for action in _list(v.get("next_actions")) if full else []:
        lines += paint.row("  next      ", short(action, WIDTH))
    if proof := in_words(v.get("proof")):
        lines += paint.row("  proof     ", short(proof, 200))
    order = _object(v.get("order"))
    if order:
        outcome = OUTCOMES.get(str(order.get("status")), "")
        lines += paint.row("  feedback  ", f"{v.get('attempt', '?')} of this task, {outcome}")
    elif v.get("feedback") and state == "incomplete":
        lines.append("  feedback  not sent")
    if full:
        lines += indented(order.get("text") or v.get("feedback") or "", "    | ", paint.width)
    return lines + _judge(v, paint)


def _rows(case: Json) -> list[Json]:
    return [_object(row) for row in _list(_object(_object(case.get("case")).get("evidence")).get("rows"))]


def _passed(case: Json) -> str:
    """The last check that passed after the last edit, in words; "" where the judge went by the rest."""
    checks = [r for r in _rows(case) if r.get("kind") == "check" and r.get("outcome") == "passed"]
    last = [r for r in checks if r.get("position") == "after_last_write"][-1:]
    return f"{short(last[0].get('id', ''), 8)}: {short(last[0].get('text', ''), WIDTH)}" if last else ""


def _judge(v: Json, paint: Paint) -> list[str]:
    by = _object(v.get("judge"))
    provider = short(by.get("provider") or "none", 80)
    if provider == "none" or str(v.get("reason", "")).startswith("guard:"):
        return []
    name = PROVIDERS.get(provider, provider)
    if provider == "offline":
        return paint.row("  judge     ", f"{name}, without a model")
    model, seconds = short(by.get("model", ""), 80), f"{_number(by.get('ms')) / 1000:.1f} s"
    cost = by.get("cost")
    price = money(float(cost)) if isinstance(cost, int | float) else money(None)
    return paint.row("  judge     ", ", ".join(part for part in (name, model, seconds, price) if part))


def _next(found: Json, v: Json, paint: Paint) -> list[str]:
    whole = short(v.get("session") or _object(found.get("session")).get("session") or "", 120)
    name = shlex.quote(whole[:PREFIX])
    number = f" --round {int(v['round'])}" if _number(v.get("round")) < found.get("rounds_total", 0) else ""
    lines = paint.row("  more      ", f"reflectd why {name}{number} --full")
    if str(v.get("reason") or "").startswith(NO_PROOF):
        more = "`reflectd cost`; `reflectd config set spend.…` sets another limit"
        over = paint.row("  limits    ", more) if _over_limit(v) else []
        return [
            *lines,
            *(over or paint.row("  a model   ", "`reflectd setup` or `judge.provider` chooses one")),
        ]
    if not found.get("case_file") or v.get("state") not in {"complete", "incomplete", "awaiting_user"}:
        return lines
    right = "not-done" if v.get("state") == "complete" else "done"
    return [*lines, *paint.row("  wrong?    ", f"reflectd dispute {name}{number} --should-be {right}")]


def _case(found: Json, paint: Paint) -> list[str]:
    case = _object(found.get("case"))
    lines = ["", paint("Asked", "bold")]
    for i, text in enumerate(_list(case.get("requests")), 1):
        lines += paint.row(f"  {i}. ", short(text, WIDTH))
    lines += ["", paint("Evidence", "bold")]
    for each in _list(_object(case.get("evidence")).get("rows")):
        row = _object(each)
        name = f"{short(row.get('id', ''), 8)} {short(row.get('kind', ''), 16)}"
        text = short(row.get("text", ""), WIDTH)
        if row.get("open"):
            name, text = paint(f"{name:14}", "yellow"), paint(text, "yellow")
        lines += paint.row(f"  {name:14}  ", text)
    for i, each in enumerate(_list(found.get("prompts")), 1):
        prompt = _object(each)
        lines += ["", paint(f"Prompt {i} ({short(prompt.get('purpose', ''), 20)})", "bold")]
        for mark, key in (("S", "system"), ("U", "text")):
            lines += indented(prompt.get(key, ""), f"  {mark} ", paint.width)
    for i, each in enumerate(_list(found.get("replies")), 1):
        reply = _object(each)
        by = " ".join(short(reply.get(k, ""), 80) for k in ("provider", "model") if reply.get(k))
        lines += ["", paint(f"Reply {i}", "bold") + f" ({by}, {_number(reply.get('seconds')):.1f} s)"]
        lines += indented(reply.get("text", ""), "  A ", paint.width)
    kinds = [str(_object(o).get("kind", "?")) for o in _list(found.get("orders"))]
    lines += ["", paint("Decision", "bold")]
    for text in (
        short(found.get("why") or "", 400),
        f"to the host: {short(', '.join(kinds), 100) or 'nothing'}",
    ):
        lines += paint.row("  ", text) if text else []
    return lines


def _object(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and abs(value) < 1e300 else 0.0
