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
from ..core.session import Session
from ..files.cases import case_at, folders, newest_cases
from ..files.verdict import verdict_object
from ..store import ledger, outbox
from ..store.outbox import Outbox
from ..store.sessions import Sessions
from ..store.verdicts import ALWAYS, Round, Verdicts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..paths import Paths
    from ..store.readonly import Reads

ROUNDS: Final = 10  # of each session, when several are listed
MOST_ROUNDS: Final = 500
EXPLAINED: Final = 5  # rounds and cases
CALLS: Final = 20
Json = dict[str, Any]


class History:
    """Reads the rounds of sessions from ``db`` and the files of ``paths``."""

    def __init__(self, db: Reads, paths: Paths) -> None:
        self._db = db
        self._paths = paths
        self._verdicts = Verdicts(db)
        self._sessions = Sessions(db)
        self._orders = Outbox(db)

    def page(
        self,
        *,
        session: str = "",
        directory: str = "",
        since: int = 0,
        until: int = ALWAYS,
        after: str = "",
        limit: int = 20,
    ) -> Json | None:
        """The sessions that were judged since then and before ``until`` (epoch ms), newest first. ``after``:
        the ``next`` of the page before.

        ``session``: the beginning of one id. ``directory``: only sessions of this folder and those below it
        or, when none was judged there, of the nearest folder above it in which one was; empty: of all. None:
        no session begins like that. Raises ``BadReply`` when several do.
        """
        verdicts, place, each, more = self._verdicts, "", MOST_ROUNDS, False
        if session:
            identity = self._sessions.only(session) or session
            if not verdicts.how_many(identity) and self._sessions.peek(identity) is None:
                return None
            found = [(0, identity)]
        else:
            place, each = self._nearest(directory), ROUNDS
            found = verdicts.sessions(place, since, limit + 1, until=until, after=_place(after))
            found, more = found[:limit], len(found) > limit
        listed = [self._session(identity, since, until, each) for _, identity in found]
        following = f"{found[-1][0]}-{found[-1][1]}" if more else ""
        return {"since": since, "directory": place, "more": more, "next": following, "sessions": listed}

    def _last_rounds(self, session: str, number: int, limit: int) -> list[Json]:
        """Rounds of a session, newest first: from number ``number`` on downwards, or from its last one when
        that is 0. Raises ``BadReply`` when the session has no round of that number.
        """
        found = self._verdicts.rounds(session, upto=number, limit=limit)
        if number and (not found or found[0].number != number):
            many = self._verdicts.how_many(session)
            has = f"{many} round{'' if many == 1 else 's'}" if many else "no round yet"
            raise BadReply(f"{session} has {has}, so there is no round {number}; see `reflectd history`")
        return [self._round(one, text=True) for one in found]

    def explain(self, session: str, directory: str, number: int = 0) -> Json | None:
        """The stored facts on a session: its state, rounds, calls and case files (``GET /v1/why`` without the
        daemon's own part).

        ``session``: the beginning of an id; empty means that of the newest verdict, in ``directory`` if it
        has one. ``number``: the round to explain, 0 the last one. None: no such session. Raises ``BadReply``
        when several begin like that, or when the session has no such round.
        """
        known, verdicts = self._sessions, self._verdicts
        identity = known.only(session) or session if session else verdicts.newest_session(directory)
        s, total = known.peek(identity), verdicts.how_many(identity)
        if s is None and not total:
            return None
        rounds = self._last_rounds(identity, number, EXPLAINED)
        place = s.directory if s is not None and s.directory else rounds[0]["directory"] if rounds else ""
        cases = [rounds[0]["case"]] if number and rounds[0]["case"] else []
        if not number and place.startswith("/"):
            newest = newest_cases(self._folders(place), identity, exact=True, limit=EXPLAINED)
            cases = [str(path) for path in newest]
        return {
            "session": session_object(s, off=known.is_off(s.directory)) if s is not None else None,
            "verdicts": rounds,
            "rounds_total": total,
            "ledger": report_object(ledger.report(self._db, session=identity, limit=CALLS)),
            "cases": cases,
        }

    def _nearest(self, directory: str) -> str:
        """The folder if a session was judged there or below it, else the nearest above in which one was."""
        if not directory or self._verdicts.sessions(directory, 0, 1):
            return directory
        above = [str(folder) for folder in Path(directory).parents]
        judged = self._verdicts.judged_in(above) if above else set[str]()
        return next((folder for folder in above if folder in judged), directory)

    def _folders(self, directory: str) -> Sequence[Path]:
        return folders(Path(directory), self._paths.fallback_reflection(directory))

    def _session(self, session: str, since: int, until: int, limit: int) -> Json:
        known = self._sessions.peek(session)
        s = known or Session(id=session, host="")
        found = self._verdicts.rounds(session, since=since, until=until, limit=limit)
        return {
            "session": session,
            "title": s.title,
            "host": s.host,
            "directory": (found[0].stored.directory if found else "") or s.directory,
            "phase": s.phase if known is not None else "",
            "busy": s.busy,
            "rounds_total": self._verdicts.how_many(session),
            "rounds": [self._round(one, text=False) for one in found],
        }

    def _round(self, one: Round, *, text: bool) -> Json:
        """The round's verdict, the feedback that followed with its outcome, and its case if that is kept."""
        v, directory = one.stored.verdict, one.stored.directory
        order = self._orders.get(outbox.order_id(v.session, v.turn, "feedback"))
        followed: Json | None = None
        if order is not None and isinstance(order.order, SendFeedback):
            followed = {"id": order.id, "status": order.status, "at": order.created}
            followed |= {"text": order.order.text} if text else {}
        case = case_at(self._folders(directory) if directory.startswith("/") else (), v.session, v.at)
        more = {"round": one.number, "directory": directory, "order": followed, "case": str(case or "")}
        return verdict_object(v) | more


def _place(after: str) -> tuple[int, str]:
    """The session that a page ended with. Raises ``BadReply``."""
    at, _, session = after.partition("-")
    if after and not (at.isascii() and at.isdigit() and len(at) < 17 and session):
        raise BadReply("`after` must be the `next` of another answer")
    return (int(at), session) if after else (ALWAYS, "")


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
    return {
        "rows": [to_builtins(row) for row in report.rows],
        "sums": to_builtins(report.sums),
        "agent": to_builtins(report.agent),
        "groups": [{"name": name, **to_builtins(sums)} for name, sums in report.groups],
    }
