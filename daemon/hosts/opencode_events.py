"""opencode's events (``POST /v1/events`` of ``design/protocol.md``) to core events.

Keeps no state and does no I/O. An unknown kind gives no event; a broken payload of a known kind raises
``BadReply``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from daemon.core import events as ev
from daemon.core.errors import BadReply
from daemon.hosts.wire import Error, Info, Wire, decode, milliseconds

if TYPE_CHECKING:
    from collections.abc import Callable

ABORTED: Final = "MessageAbortedError"
DIGEST: Final = 100  # characters of a name or a digest


class _Status(Struct):
    type: str = ""


class _Event(Struct):
    """The union of all events' fields; each reader takes those of its own kind."""

    session: str | None = field(name="sessionID", default=None)
    message: str | None = field(name="messageID", default=None)
    id: str | None = None
    request: str | None = field(name="requestID", default=None)
    info: Info | None = None
    status: _Status | None = None
    error: Error | None = None
    agent: str | None = None
    human: bool | None = None
    order: str | None = None
    bytes: float | None = None
    tool: str | None = None
    call: str | None = None
    result: str | None = None
    failed: bool | None = None


def parse_event(kind: str, t: int, data: Wire) -> tuple[ev.Event, ...]:
    """One event of the shim as core events: none when it says nothing new.

    An unknown ``kind`` gives ``()`` (I36); a known kind with a payload that lacks its ids or has wrong
    types raises ``BadReply``, for the caller to log and skip.
    """
    read = _READERS.get(kind)
    if read is None:
        return ()
    try:
        return read(decode(data, _Event), t)
    except BadReply as error:
        raise BadReply(f"opencode event {kind}: {error}", error.raw) from None


def _need(value: str | None, name: str) -> str:
    if not value:
        raise BadReply(f"{name} is missing")
    return value


def _session(e: _Event) -> str:
    return _need(e.session, "sessionID")


def _seen(e: _Event, t: int) -> tuple[ev.Event, ...]:
    info = e.info or Info()
    session = _need(e.session or info.id, "sessionID")
    return (ev.SessionSeen(session, t, info.parent or "", info.title or "", info.directory or ""),)


def _status(e: _Event, t: int) -> tuple[ev.Event, ...]:
    """``idle`` says nothing: ``session.idle`` follows in the same tick."""
    kind = e.status.type if e.status else ""
    return (ev.SessionBusied(_session(e), t, retry=kind == "retry"),) if kind in {"busy", "retry"} else ()


def _error(e: _Event, t: int) -> tuple[ev.Event, ...]:
    if not e.session:
        return ()  # opencode leaves it out for errors of no session, e.g. a broken config
    error = e.error or Error()
    if error.name == ABORTED:
        return (ev.TurnAborted(e.session, t, e.message or ""),)
    return (ev.HostErrored(e.session, t, error.name or "", error.said),)


def _chat(e: _Event, t: int) -> tuple[ev.Event, ...]:
    session, message = _session(e), _need(e.message, "messageID")
    if e.human:
        return (ev.HumanMessaged(session, t, message, e.agent or ""),)
    return (ev.SyntheticMessaged(session, t, message, e.order or ""),)


def _asked(e: _Event, t: int) -> tuple[ev.Event, ...]:
    return (ev.PersonAsked(_session(e), t, _need(e.id, "id")),)


def _answered(e: _Event, t: int) -> tuple[ev.Event, ...]:
    return (ev.PersonAnswered(_session(e), t, _need(e.request, "requestID")),)


def _tool(e: _Event, t: int) -> tuple[ev.Event, ...]:
    call, result = _need(e.call, "call")[:DIGEST], _need(e.result, "result")[:DIGEST]
    return (ev.ToolEnded(_session(e), t, (e.tool or "")[:DIGEST], call, result, failed=bool(e.failed)),)


_READERS: Final[dict[str, Callable[[_Event, int], tuple[ev.Event, ...]]]] = {
    "session.created": _seen,
    "session.updated": _seen,
    "session.deleted": lambda e, t: (ev.SessionDeleted(_session(e), t),),
    "session.status": _status,
    "session.idle": lambda e, t: (ev.SessionIdled(_session(e), t),),
    "session.error": _error,
    "message.error": _error,
    "session.compacted": lambda e, t: (ev.SessionCompacted(_session(e), t),),
    "chat.message": _chat,
    "permission.asked": _asked,
    "question.asked": _asked,
    "permission.replied": _answered,
    "question.replied": _answered,
    "question.rejected": _answered,
    "activity": lambda e, t: (ev.ActivitySeen(_session(e), t, milliseconds(e.bytes)),),
    "tool": _tool,
    "judge.created": lambda e, t: (ev.JudgeCreated(_session(e), t),),
    "dispose": lambda _e, t: (ev.InstanceDisposed(t),),
}
KINDS: Final = frozenset(_READERS)
