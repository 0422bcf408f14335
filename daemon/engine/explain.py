"""Why a session stands where it stands: its state, the guards, its verdicts, their cost, its case files.

Read only. State is read on the loop; the ledger and the project's folder in a thread.
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from daemon.core.errors import BadReply
from daemon.core.orders import SendFeedback
from daemon.files.cases import folders, newest_cases
from daemon.files.verdict import verdict_object
from daemon.store import ledger, outbox

if TYPE_CHECKING:
    from daemon.core.session import Session
    from daemon.engine.world import World
    from daemon.paths import Paths
    from daemon.store.verdicts import StoredVerdict

VERDICTS = 5
CALLS = 20
CASES = 5
NAMED = 5


async def why(world: World, paths: Paths, session: str, directory: str) -> dict[str, Any] | None:
    """``GET /v1/why``. ``session``: the beginning of an id; empty means that of the newest verdict, in
    ``directory`` if it has one. None: no such session. Raises ``BadReply`` when several begin like that.
    """
    identity = resolve(world, session) if session else world.verdicts.newest_session(directory)
    if not identity:
        return None
    s = world.sessions.get(identity)
    found = world.verdicts.newest(identity, VERDICTS)
    where = s.directory if s is not None and s.directory else found[0].directory if found else ""

    def read() -> tuple[ledger.Report, list[str]]:
        calls = ledger.report(world.db, session=identity, limit=CALLS)
        if not where.startswith("/"):
            return calls, []
        lie = folders(Path(where), paths.fallback_reflection(where))
        return calls, [str(path) for path in newest_cases(lie, identity, exact=True, limit=CASES)]

    calls, cases = await asyncio.to_thread(read)
    return {
        "session": session_object(world, s) if s is not None else None,
        "guard": world.stream.last_skip(identity),
        "verdicts": [_with_order(world, v) for v in found],
        "ledger": report_object(calls),
        "cases": cases,
    }


def session_object(world: World, s: Session) -> dict[str, Any]:
    """A session as ``GET /v1/sessions`` lists it."""
    return {
        "session": s.id,
        "title": s.title,
        "directory": s.directory,
        "phase": s.phase,
        "reason": s.reason,
        "attempts": s.attempts,
        "busy": s.busy,
        "off": s.off or world.sessions.is_off(s.directory),
        "task": s.task,
        "turn": s.turn,
    }


def report_object(report: ledger.Report) -> dict[str, Any]:
    """A ledger report as JSON."""
    return {
        "rows": [asdict(row) for row in report.rows],
        "sums": asdict(report.sums),
        "agent": asdict(report.agent),
        "groups": [{"name": name, **asdict(sums)} for name, sums in report.groups],
    }


def resolve(world: World, prefix: str) -> str:
    """The one session whose id is or begins with this; "" when there is none. Raises ``BadReply``."""
    found = world.sessions.matching(prefix, NAMED + 1)
    if len(found) > 1 and found[0] != prefix:
        more = " …" if len(found) > NAMED else ""
        raise BadReply(f"{prefix!r} begins several sessions: {', '.join(found[:NAMED])}{more}")
    return found[0] if found else ""


def _with_order(world: World, stored: StoredVerdict) -> dict[str, Any]:
    """The verdict, and the feedback that followed from it with what became of it."""
    v = stored.verdict
    order = world.outbox.get(outbox.order_id(v.session, v.turn, "feedback"))
    followed = None
    if order is not None and isinstance(order.order, SendFeedback):
        followed = {"id": order.id, "status": order.status, "at": order.created, "text": order.order.text}
    return {**verdict_object(v), "directory": stored.directory, "order": followed}
