"""What one line tells of a session: where it stands, what the day cost, how many sessions wait for a person.

Read only, for prompts and status bars, which ask often: a few reads of the database, nothing from a file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from ..core.errors import BadReply
from .world import DAY_MS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..core.session import Phase, Session
    from .world import World

State = Literal[
    "none",
    "several",
    "off",
    "waiting",
    "judging",
    "stuck",
    "working",
    "idle",
    "complete",
    "incomplete",
    "stopped",
    "unscored",
    "error",
    "skipped",
]
_NAMES: Final[dict[Phase, State]] = {"open": "idle", "awaiting_user": "waiting"}


def line(world: World, stuck: Mapping[str, str], session: str, directory: str) -> dict[str, Any]:
    """``GET /v1/line``. ``session``: the beginning of an id; empty means the newest session in ``directory``
    or below it, else in the nearest folder above it that has one. When several begin like that, none of them
    is shown. ``stuck``: the sessions of which a person was told so.
    """
    identity, nothing = "", "none"
    try:
        identity = world.sessions.only(session) if session else world.sessions.newest_in(directory)
    except BadReply:
        nothing = "several"
    s = world.sessions.peek(identity) if identity else None
    now = world.clock.now_ms()
    spent = world.ledger.spent("", now - DAY_MS)
    return {
        "state": state_of(world, stuck, s) if s is not None else nothing,
        "session": s.id if s is not None else "",
        "host": s.host if s is not None else "",
        "directory": s.directory if s is not None else "",
        "round": s.attempts if s is not None else 0,
        "usd_today": spent.today,
        "tokens_today": spent.tokens,
        "waiting": len(waiting(world, now)),
    }


def state_of(world: World, stuck: Mapping[str, str], s: Session) -> State:
    """Where a session stands, in one word."""
    if s.off or not world.limits(s).enabled:
        return "off"
    if s.waiting:
        return "waiting"
    if s.phase == "judging":
        return "judging"
    if s.busy:
        return "stuck" if s.id in stuck else "working"
    phase: State = _NAMES.get(s.phase, s.phase)  # type: ignore[arg-type]
    return phase


def waiting(world: World, now_ms: int) -> list[Session]:
    """A person's own sessions that ask something or were judged to need an answer, in the last 24 hours."""
    since = now_ms - DAY_MS
    return [s for s in world.sessions.perhaps_waiting(since) if s.active_at > since and _waits(world, s)]


def _waits(world: World, s: Session) -> bool:
    asks = s.waiting or (s.phase == "awaiting_user" and not s.busy)
    return bool(asks) and not s.deleted and not s.off and not world.sessions.is_off(s.directory)
