"""The parts that the hook calls of all hosts share: their fields, bounds and checks, the headers that
``hook.sh`` adds, and the events that mean the same everywhere.

Keeps no state and does no I/O. A hook is only a hint: the transcript counts. An unknown field is skipped
(I36). A body of another form raises ``BadReply``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from msgspec import Raw, Struct

from ..core import events as ev
from ..core.errors import BadReply
from .wire import MAX_NAME, decode

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")
B = TypeVar("B", bound="Body")

MAX_BODY: Final = 8 << 20
MAX_PATH: Final = 4_096
MAX_TEXT: Final = 100_000
PERMISSION: Final = "permission"  # a request has no id, so at most one is open
_ORDER: Final = re.compile(r"\brfl_[0-9a-f]{20}\b")


def order_in(text: str) -> str:
    """The last id of an order that stands in the text, "" for none."""
    found: list[str] = _ORDER.findall(text)
    return found[-1] if found else ""


class Hook(Struct, frozen=True, kw_only=True):
    """One hook call. A field that the host does not send is empty.

    ``project``: the folder that the host was started in; ``cwd``: its shell's. ``prompt``: the submitted
    text, from anybody. ``agent_id``: the sub-agent that it is about. ``headless``: ``REFLECTD_HEADLESS`` asks
    to judge sessions without a person too. ``pid``: the host's process, 0 if unknown.
    """

    event: str
    session: str
    transcript: str = ""
    cwd: str = ""
    project: str = ""
    prompt: str = ""
    last_assistant_message: str = ""
    turn_id: str = ""
    source: str = ""
    permission_mode: str = ""
    title: str = ""
    agent_id: str = ""
    tool_name: str = ""
    tool_use_id: str = ""
    pid: int = 0
    headless: bool = False

    @property
    def directory(self) -> str:
        """The session's folder."""
        return self.project or self.cwd

    @property
    def typed(self) -> bool:
        """Says whether a person may have typed the prompt: no order of ours stands in it (I9)."""
        return not self.agent_id and not order_in(self.prompt)


NONE: Final = Raw(b"null")


class Body(Struct):
    """The fields as they came. They are read one by one, so that a list of millions costs nothing."""

    session_id: Raw = NONE
    transcript_path: Raw = NONE
    cwd: Raw = NONE
    prompt: Raw = NONE
    last_assistant_message: Raw = NONE
    turn_id: Raw = NONE
    source: Raw = NONE
    permission_mode: Raw = NONE
    agent_id: Raw = NONE
    tool_name: Raw = NONE
    tool_use_id: Raw = NONE


_NAMES: Final = ("turn_id", "source", "permission_mode", "agent_id", "tool_name", "tool_use_id")


def read_hook(
    event: str, body: bytes, headers: Mapping[str, str], form: type[B], names: tuple[str, ...] = ()
) -> tuple[B, Sender, dict[str, Any]]:
    """The fields as they came, the headers, and those of ``Hook``. ``names``: more fields that are short
    texts. The session id and the folders are checked; all other texts are only cut. Raises ``BadReply``.
    """
    if len(body) > MAX_BODY:
        raise BadReply(f"the body has more than {MAX_BODY >> 20} MB")
    wire, host = decode(body, form), sender(headers)
    fields = {
        "event": event,
        "session": checked_session(text(wire.session_id)),
        "transcript": _path(wire.transcript_path, "transcript_path"),
        "cwd": _path(wire.cwd, "cwd"),
        "prompt": text(wire.prompt)[:MAX_TEXT],
        "last_assistant_message": text(wire.last_assistant_message)[-MAX_TEXT:],
        "pid": host.pid,
        "headless": host.headless,
        **{name: text(getattr(wire, name))[:MAX_NAME] for name in (*_NAMES, *names)},
    }
    return wire, host, fields


def text(value: Raw) -> str:
    """The text, "" for anything else."""
    return value_of(str, value)


def value_of(form: type[T], value: Raw) -> T:
    """The value of this form, an empty one for anything else."""
    try:
        return decode(value, form)
    except BadReply:
        return form()


def _path(value: Raw, name: str) -> str:
    """What is neither text nor null is no path either."""
    return checked_path(text(value) if bytes(memoryview(value)[:1]) in {b'"', b"n"} else "?", name)


def checked_session(session: str) -> str:
    """``session``, if it is an id."""
    if not session or len(session) > MAX_NAME or not session.isprintable():
        raise BadReply("no session_id")
    return session


def checked_path(value: object, name: str) -> str:
    """``value``, if it is an absolute path; "" for none. ``name``: of the field."""
    if value is None or value == "":
        return ""
    if not isinstance(value, str) or not value.startswith("/") or "\0" in value or len(value) > MAX_PATH:
        raise BadReply(f"{name} is no absolute path")
    return value


class Sender(NamedTuple):
    """The headers of a call, without their prefix. ``pid``: the host's process, 0 if unknown. ``headless``:
    ``REFLECTD_HEADLESS`` asks to judge sessions without a person too.
    """

    told: Mapping[str, str]
    pid: int
    headless: bool


def sender(headers: Mapping[str, str]) -> Sender:
    """The headers that ``hook.sh`` adds, with U+FFFD for bytes that are not UTF-8."""
    named = ((name.lower(), value) for name, value in headers.items())
    told = {
        name.removeprefix("x-cc-"): value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        for name, value in named
        if name.startswith("x-cc-")
    }
    pid, asks = told.get("pid", ""), told.get("headless", "") in {"1", "true", "yes", "on"}
    return Sender(told, int(pid) if pid.isascii() and pid.isdigit() and len(pid) < 10 else 0, asks)


def events_of(hook: Hook, t: int, name: str) -> tuple[ev.Event, ...]:
    """The events of a hook call that mean the same in all hosts, at ``t`` (epoch ms); of any other call that
    the session is active. ``name``: the id of a submitted prompt.

    ``SessionEnd`` gives ``SessionIdled`` first: a turn that was cut short gets its final verdict (I21), and
    the session no longer counts as busy.
    """
    session = hook.session
    active, answered = ev.ActivitySeen(session, t), ev.PersonAnswered(session, t, PERMISSION)
    match hook.event:
        case "SessionStart":
            seen = ev.SessionSeen(session, t, title=hook.title, directory=hook.directory)
            return (seen, ev.SessionCompacted(session, t)) if hook.source == "compact" else (seen,)
        case "UserPromptSubmit":
            busy = ev.SessionBusied(session, t)
            if hook.typed:
                agent = "plan" if hook.permission_mode == "plan" else ""
                return (ev.HumanMessaged(session, t, name, agent), busy)
            return (ev.SyntheticMessaged(session, t, name, order_in(hook.prompt)), busy)
        case "PostToolUse":  # no hook tells of a permission's answer
            return (answered, active)
        case "Stop":
            return (answered, ev.SessionIdled(session, t))
        case "Interrupt":
            return (ev.TurnAborted(session, t), answered, ev.SessionIdled(session, t))
        case "SessionEnd":
            return (answered, ev.SessionIdled(session, t), ev.SessionEnded(session, t))
    return (active,)
