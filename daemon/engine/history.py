"""Judged sessions and their rounds, read from the database and the folders of the cases.

A round is a turn that has its final verdict. A session's rounds are numbered from 1, the oldest that is kept.
It reads only, and it blocks: call it in a thread. The command line calls it too, where no daemon runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import to_builtins

from ..core.errors import BadReply
from ..core.orders import SendFeedback
from ..files.cases import case_at, folders, newest_cases
from ..files.verdict import verdict_object
from ..store import ledger, outbox
from ..store.outbox import Outbox
from ..store.sessions import Sessions
from ..store.verdicts import ALWAYS, Verdicts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.session import Session
    from ..paths import Paths
    from ..store.readonly import Reads
    from ..store.verdicts import Round

ROUNDS: Final = 10  # of each session, when several are listed
MOST_ROUNDS: Final = 500
EXPLAINED: Final = 5  # rounds and cases
CALLS: Final = 20
Json = dict[str, Any]


def history(
    db: Reads,
    paths: Paths,
    *,
    session: str = "",
    directory: str = "",
    since: int = 0,
    until: int = ALWAYS,
    after: str = "",
    limit: int = 20,
) -> Json | None:
    """``GET /v1/history``: the sessions that were judged since then and before ``until`` (epoch ms), newest
    first. ``after``: the ``next`` of the page before.

    ``session``: the beginning of one id. ``directory``: only sessions of this folder and those below it or,
    when none was judged there, of the nearest folder above it in which one was; empty: of all. None: no
    session begins like that. Raises ``BadReply`` when several do.
    """
    verdicts, known = Verdicts(db), Sessions(db)
    if session:
        identity = known.only(session) or session
        if not verdicts.how_many(identity) and known.peek(identity) is None:
            return None
        found, place, each, more = [(0, identity)], "", MOST_ROUNDS, False
    else:
        place = _nearest(verdicts, directory)
        found = verdicts.sessions(place, since, limit + 1, until=until, after=_place(after))
        found, each, more = found[:limit], ROUNDS, len(found) > limit
    orders = Outbox(db)
    listed = [_session(verdicts, known, orders, paths, one, (since, until), each) for _, one in found]
    following = f"{found[-1][0]}-{found[-1][1]}" if more else ""
    return {"since": since, "directory": place, "more": more, "next": following, "sessions": listed}


def _place(after: str) -> tuple[int, str]:
    """The session that a page ended with. Raises ``BadReply``."""
    at, _, session = after.partition("-")
    if after and not (at.isascii() and at.isdigit() and len(at) < 17 and session):
        raise BadReply("`after` must be the `next` of another answer")
    return (int(at), session) if after else (ALWAYS, "")


def last_rounds(
    verdicts: Verdicts, orders: Outbox, paths: Paths, session: str, number: int, limit: int
) -> list[Json]:
    """Rounds of a session, newest first: from number ``number`` on downwards, or from its last one when that
    is 0. Raises ``BadReply`` when the session has no round of that number.
    """
    found = verdicts.rounds(session, upto=number, limit=limit)
    if number and (not found or found[0].number != number):
        many = verdicts.how_many(session)
        has = f"{many} round{'' if many == 1 else 's'}" if many else "no round yet"
        raise BadReply(f"{session} has {has}, so there is no round {number}; see `reflectd history`")
    return [_object(paths, orders, one, text=True) for one in found]


def explain(db: Reads, paths: Paths, session: str, directory: str, number: int = 0) -> Json | None:
    """The stored facts on a session: its state, rounds, calls and case files (``GET /v1/why`` without the
    daemon's own part).

    ``session``: the beginning of an id; empty means that of the newest verdict, in ``directory`` if it has
    one. ``number``: the round to explain, 0 the last one. None: no such session. Raises ``BadReply`` when
    several begin like that, or when the session has no such round.
    """
    verdicts, known = Verdicts(db), Sessions(db)
    identity = known.only(session) or session if session else verdicts.newest_session(directory)
    s, total = known.peek(identity), verdicts.how_many(identity)
    if s is None and not total:
        return None
    rounds = last_rounds(verdicts, Outbox(db), paths, identity, number, EXPLAINED)
    place = s.directory if s is not None and s.directory else rounds[0]["directory"] if rounds else ""
    cases = [rounds[0]["case"]] if number and rounds[0]["case"] else []
    if not number and place.startswith("/"):
        lie = folders(Path(place), paths.fallback_reflection(place))
        cases = [str(p) for p in newest_cases(lie, identity, exact=True, limit=EXPLAINED)]
    return {
        "session": session_object(s, off=known.is_off(s.directory)) if s is not None else None,
        "verdicts": rounds,
        "rounds_total": total,
        "ledger": report_object(ledger.report(db, session=identity, limit=CALLS)),
        "cases": cases,
    }


def session_object(s: Session, *, off: bool) -> Json:
    """A session as ``GET /v1/sessions`` lists it. ``off``: whether its folder is."""
    return {
        "session": s.id,
        "title": s.title,
        "host": s.host,
        "directory": s.directory,
        "active_at": s.active_at,
        "phase": s.phase,
        "reason": s.reason,
        "attempts": s.attempts,
        "busy": s.busy,
        "waits_for": list(s.background),
        "asks": len(s.waiting),
        "off": s.off or off,
        "task": s.task,
        "turn": s.turn,
        "model": s.model,
        "context_tokens": s.context,
    }


def verdict_rows(db: Reads, session: str, limit: int) -> list[Json]:
    """``GET /v1/verdicts``: the newest verdicts, of one session or all."""
    known, rows = Sessions(db), []
    for kept in Verdicts(db).newest(session, limit):
        s = known.peek(kept.verdict.session)
        more = {"title": s.title if s else "", "feedback_sent": kept.verdict.will_prompt}
        rows.append({**verdict_object(kept.verdict), "directory": kept.directory, **more})
    return rows


def report_object(report: ledger.Report) -> Json:
    """A ledger report as JSON."""
    return {
        "rows": [to_builtins(row) for row in report.rows],
        "sums": to_builtins(report.sums),
        "agent": to_builtins(report.agent),
        "groups": group_objects(report.groups),
    }


def group_objects(groups: Sequence[ledger.Group]) -> list[Json]:
    """Groups of a ledger report as JSON."""
    return [{"name": name, **to_builtins(sums)} for name, sums in groups]


def _nearest(verdicts: Verdicts, directory: str) -> str:
    """The folder if a session was judged there or below it, else the nearest above it in which one was."""
    if not directory or verdicts.sessions(directory, 0, 1):
        return directory
    above = [str(folder) for folder in Path(directory).parents]
    judged = verdicts.judged_in(above) if above else set[str]()
    return next((folder for folder in above if folder in judged), directory)


def _session(
    verdicts: Verdicts,
    known: Sessions,
    orders: Outbox,
    paths: Paths,
    session: str,
    between: tuple[int, int],
    limit: int,
) -> Json:
    s = known.peek(session)
    found = verdicts.rounds(session, since=between[0], until=between[1], limit=limit)
    newest = found[0].stored.directory if found else ""
    return {
        "session": session,
        "title": s.title if s is not None else "",
        "host": s.host if s is not None else "",
        "directory": newest or (s.directory if s is not None else ""),
        "phase": s.phase if s is not None else "",
        "busy": s is not None and s.busy,
        "rounds_total": verdicts.how_many(session),
        "rounds": [_object(paths, orders, one, text=False) for one in found],
    }


def _object(paths: Paths, orders: Outbox, one: Round, *, text: bool) -> Json:
    """The round's verdict, the feedback that followed with its outcome, and its case if that is kept."""
    v, directory = one.stored.verdict, one.stored.directory
    order = orders.get(outbox.order_id(v.session, v.turn, "feedback"))
    followed: Json | None = None
    if order is not None and isinstance(order.order, SendFeedback):
        followed = {"id": order.id, "status": order.status, "at": order.created}
        followed |= {"text": order.order.text} if text else {}
    lie = folders(Path(directory), paths.fallback_reflection(directory)) if directory.startswith("/") else ()
    case = case_at(lie, v.session, v.at)
    more = {"round": one.number, "directory": directory, "order": followed, "case": str(case or "")}
    return verdict_object(v) | more
