"""opencode's events (``POST /v1/events`` of ``design/protocol.md``) as core events.

Keeps no state and does no I/O. An unknown kind gives no event. A known kind with a broken payload raises
``BadReply``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field

from ...core import events as ev
from ...core.consent import chosen, shown, typed
from ...core.errors import BadReply
from ...core.guards import ABORT_ERROR
from ..wire import Wire, decode

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_NAME: Final = 100  # characters of a tool's name or a digest
MAX_ID: Final = 200
MAX_TITLE: Final = 500  # more than a title has: secrets are taken out of what is left
MAX_ERROR: Final = 4_000
MAX_PATH: Final = 4_096


class _ErrorData(Struct):
    message: str | None = None


class Error(Struct):
    """An error of the host, as events and messages carry it."""

    name: str | None = None
    message: str | None = None
    data: _ErrorData | None = None  # where opencode itself has the message, and a shim may leave it

    @property
    def said(self) -> str:
        """The error's message, from either place."""
        return self.message or (self.data.message if self.data else None) or ""


class Info(Struct):
    """A session, as events and the ``read`` projection describe it."""

    id: str | None = None
    parent: str | None = field(name="parentID", default=None)
    title: str | None = None
    directory: str | None = None

    @property
    def told(self) -> tuple[str, str, str]:
        """Parent, title and folder, "" for missing and overlong ones; a title is cut."""
        parent, folder = self.parent or "", self.directory or ""
        return (
            parent if len(parent) <= MAX_ID else "",
            _short(self.title or ""),
            folder if len(folder) <= MAX_PATH else "",
        )


def _short(title: str) -> str:
    """The title, or its first whole words and a mark: half a secret may not be known as one."""
    if len(title) <= MAX_TITLE:
        return title
    return title[: title.rfind(" ", 0, MAX_TITLE) + 1] + "…"


class _Status(Struct):
    type: str = ""


class _Event(Struct):
    """The fields of all events. The reader of each kind takes those it needs."""

    session: str | None = field(name="sessionID", default=None)
    message: str | None = field(name="messageID", default=None)
    id: str | None = None
    request: str | None = field(name="requestID", default=None)
    info: Info | None = None
    status: _Status | None = None
    error: Error | None = None
    agent: str | None = None
    human: bool | None = None
    steers: bool | None = None
    order: str | None = None
    tool: str | None = None
    call: str | None = None
    result: str | None = None
    failed: bool | None = None
    questions: Any = None
    answers: Any = None
    arguments: str | None = None


def parse_event(kind: str, t: int, data: Wire) -> tuple[ev.Event, ...]:
    """One event of the shim as core events; none when it says nothing new or its ``kind`` is unknown (I36).

    A payload without its ids, or with wrong types, raises ``BadReply``; the caller logs it and goes on.
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
    if len(value) > MAX_ID:
        raise BadReply(f"{name} has more than {MAX_ID} characters")
    return value


def _session(event: _Event) -> str:
    return _need(event.session, "sessionID")


def _seen(event: _Event, t: int) -> tuple[ev.Event, ...]:
    info = event.info or Info()
    session = _need(event.session or info.id, "sessionID")
    return (ev.SessionSeen(session, t, *info.told),)


def _status(event: _Event, t: int) -> tuple[ev.Event, ...]:
    """``busy`` and ``retry`` only: after the status ``idle``, ``session.idle`` follows at once."""
    kind = event.status.type if event.status else ""
    return (ev.SessionBusied(_session(event), t, retry=kind == "retry"),) if kind in {"busy", "retry"} else ()


def _error(event: _Event, t: int) -> tuple[ev.Event, ...]:
    if not event.session:
        return ()  # opencode leaves it out for errors of no session, such as a broken config
    error = event.error or Error()
    if error.name == ABORT_ERROR:
        return (ev.TurnAborted(event.session, t, (event.message or "")[:MAX_ID]),)
    return (ev.HostErrored(event.session, t, (error.name or "")[:MAX_NAME], error.said[:MAX_ERROR]),)


def _chat(event: _Event, t: int) -> tuple[ev.Event, ...]:
    session, message = _session(event), _need(event.message, "messageID")
    if event.human:
        agent = (event.agent or "")[:MAX_NAME]
        return (ev.HumanMessaged(session, t, message, agent, steers=bool(event.steers)),)
    return (ev.SyntheticMessaged(session, t, message, (event.order or "")[:MAX_ID]),)


def _asked(event: _Event, t: int) -> tuple[ev.Event, ...]:
    return (ev.PersonAsked(_session(event), t, _need(event.id, "id")),)


def _answered(event: _Event, t: int) -> tuple[ev.Event, ...]:
    """``questions``: those of the dialog, when they are ours."""
    answered = ev.PersonAnswered(_session(event), t, _need(event.request, "requestID"))
    answers = chosen(shown(event.questions), event.answers)
    if not answers:
        return (answered,)
    return (answered, ev.QuestionAnswered(answered.session, t, _need(event.call, "call"), answers))


def _typed(event: _Event, t: int) -> tuple[ev.Event, ...]:
    wanted = typed(event.arguments or "")
    digest = wanted.digest if wanted is not None else ""
    return (ev.CommandTyped(_session(event), t, _need(event.message, "messageID"), digest),)


def _tool(event: _Event, t: int) -> tuple[ev.Event, ...]:
    call, result = _need(event.call, "call")[:MAX_NAME], _need(event.result, "result")[:MAX_NAME]
    return (
        ev.ToolEnded(
            _session(event), t, (event.tool or "")[:MAX_NAME], call, result, failed=bool(event.failed)
        ),
    )


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
    "command": _typed,
    "activity": lambda e, t: (ev.ActivitySeen(_session(e), t),),
    "tool": _tool,
    "judge.created": lambda e, t: (ev.JudgeCreated(_session(e), t),),
    "dispose": lambda _e, t: (ev.InstanceDisposed(t),),
}
KINDS: Final = frozenset(_READERS)
