"""Past facts of a host. Frozen values; times are the host's wall clock in epoch ms.

``daemon.hosts`` makes events from a host's payloads, and ``core.session.fold`` takes them in. An event is
only a hint: before anything is judged, the host's messages are read, and they count.
"""

from __future__ import annotations

from msgspec import Struct

from .consent import Chosen


class _Told(Struct, frozen=True):
    """An event of one session."""

    session: str
    t: int


class SessionSeen(_Told, frozen=True):
    """A session exists. ``parent`` is empty for a top-level session."""

    parent: str = ""
    title: str = ""
    directory: str = ""


class SessionDeleted(_Told, frozen=True):
    """The person or reflectd deleted the session."""


class SessionEnded(_Told, frozen=True):
    """The person closed the session, or its process is gone. It may be opened again."""


class SessionBusied(_Told, frozen=True):
    """The agent is working. ``retry``: the host waits to ask a failing model again, which counts as busy."""

    retry: bool = False


class SessionIdled(_Told, frozen=True):
    """The agent stopped. After an abort or an error it may come twice for one turn."""


class BackgroundAwaited(_Told, frozen=True):
    """The agent stopped. Its background tasks (``names``) are awaited before its turn is judged."""

    names: tuple[str, ...]


class HumanMessaged(_Told, frozen=True):
    """A person typed, and the agent answers. Opens a new task, whose id is ``message`` (I7). ``steers``: the
    agent was at work when the message came, perhaps of a program, so it opens none while the task is open.
    """

    message: str
    agent: str = ""
    steers: bool = False


class SyntheticMessaged(_Told, frozen=True):
    """A user-role message that nobody typed, for example our feedback, whose order ``order`` names (I4)."""

    message: str
    order: str = ""


class TurnAborted(_Told, frozen=True):
    """The person pressed Esc. May come before or after the idle it causes (I11).

    ``message``: the assistant message that carries the abort error, where the host names it.
    """

    message: str = ""


class HostErrored(_Told, frozen=True):
    """The host gave up a call to its model. The agent is not to blame, so this turn is never judged."""

    name: str = ""
    message: str = ""


class PersonAsked(_Told, frozen=True):
    """A permission or a question is open: the session waits for the person (guard 8)."""

    request: str


class PersonAnswered(_Told, frozen=True):
    """The permission or question ``request`` was answered or dismissed."""

    request: str


class QuestionAnswered(_Told, frozen=True):
    """The person answered questions of ours. ``call``: the id of the agent's call."""

    call: str
    answers: tuple[Chosen, ...]


class CommandTyped(_Told, frozen=True):
    """The person typed our slash command. ``digest``: of its wish (``core.consent.Wish``), "" where it
    changes nothing. ``message``: the id of its message.
    """

    message: str
    digest: str


class SessionCompacted(_Told, frozen=True):
    """The host summarised the context. The list of messages changed; the task is still the same (I7)."""


class ActivitySeen(_Told, frozen=True):
    """The model or a tool wrote something."""


class ToolEnded(_Told, frozen=True):
    """A tool call ended. Equal digests (``call``, ``result``) mean the same call, the same outcome."""

    tool: str
    call: str
    result: str
    failed: bool = False


class JudgeCreated(_Told, frozen=True):
    """The shim made a judge session. It says so before it prompts that session (guard 2, I1)."""


class InstanceDisposed(Struct, frozen=True):
    """The host process (or one directory of it) is going away."""

    t: int


SessionEvent = (
    SessionSeen
    | SessionDeleted
    | SessionEnded
    | SessionBusied
    | SessionIdled
    | BackgroundAwaited
    | HumanMessaged
    | SyntheticMessaged
    | TurnAborted
    | HostErrored
    | PersonAsked
    | PersonAnswered
    | QuestionAnswered
    | CommandTyped
    | SessionCompacted
    | ActivitySeen
    | ToolEnded
    | JudgeCreated
)
Event = SessionEvent | InstanceDisposed
