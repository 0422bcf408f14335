"""Why a session stands where it stands: its state, the guards, its verdicts, their cost, its case files.

Read only. State is read on the loop; the ledger and the project's folder in a thread.
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.policy import Judging, in_force
from ..files.saved_cases import folders, newest_cases
from ..store import ledger
from .history import last_rounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.session import Session
    from ..core.settings import Settings
    from ..paths import Paths
    from .world import World

VERDICTS = 5
CALLS = 20
CASES = 5


async def why(
    world: World, paths: Paths, session: str, directory: str, number: int = 0
) -> dict[str, Any] | None:
    """``GET /v1/why``. ``session``: the beginning of an id; empty means that of the newest verdict, in
    ``directory`` if it has one. ``number``: the round to explain, 0 the last one. None: no such session.
    Raises ``BadReply`` when several begin like that, or when the session has no such round.
    """
    identity = world.sessions.only(session) if session else world.verdicts.newest_session(directory)
    if not identity:
        return None
    s = world.sessions.get(identity)

    def read() -> tuple[ledger.Report, list[dict[str, Any]], list[str]]:
        calls = ledger.report(world.db, session=identity, limit=CALLS)
        rounds = last_rounds(world.verdicts, world.outbox, paths, identity, number, VERDICTS)
        if number:
            return calls, rounds, [case for case in (rounds[0]["case"],) if case]
        where = s.directory if s is not None and s.directory else rounds[0]["directory"] if rounds else ""
        if not where.startswith("/"):
            return calls, rounds, []
        lie = folders(Path(where), paths.fallback_reflection(where))
        return calls, rounds, [str(p) for p in newest_cases(lie, identity, exact=True, limit=CASES)]

    calls, rounds, cases = await asyncio.to_thread(read)
    if s is not None:
        await world.projects.read(s.directory)
    return {
        "session": session_object(world, s) if s is not None else None,
        "judge": {"host": s.host, **judging_object(world, s.host, world.project(s.directory))} if s else None,
        "guard": world.stream.last_skip(identity),
        "verdicts": rounds,
        "rounds_total": world.verdicts.how_many(identity),
        "ledger": report_object(calls),
        "cases": cases,
    }


def session_object(world: World, s: Session) -> dict[str, Any]:
    """A session as ``GET /v1/sessions`` lists it."""
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
        "off": s.off or world.sessions.is_off(s.directory),
        "task": s.task,
        "turn": s.turn,
        "model": s.model,
        "context_tokens": s.context,
    }


def judging_object(world: World, host: str, settings: Settings) -> dict[str, Any]:
    """Who judges the sessions of a host, with the settings that count there."""
    found = Judging(*settings.judge.of(host), world.calls.judges.get(host, ()))
    return in_force(settings, found)._asdict()


def report_object(report: ledger.Report) -> dict[str, Any]:
    """A ledger report as JSON."""
    return {
        "rows": [asdict(row) for row in report.rows],
        "sums": asdict(report.sums),
        "agent": asdict(report.agent),
        "groups": group_objects(report.groups),
    }


def group_objects(groups: Sequence[ledger.Group]) -> list[dict[str, Any]]:
    """Groups of a ledger report as JSON."""
    return [{"name": name, **asdict(sums)} for name, sums in groups]
