"""Past facts of a host. Frozen values; times are the host's wall clock in epoch ms.

``daemon.hosts`` makes events from a host's payloads, and ``core.session.fold`` takes them in. An event is
only a hint: before anything is judged, the host's messages are read, and they count.
"""

from __future__ import annotations

from msgspec import Struct

from .consent import Chosen


class SessionSeen(Struct, frozen=True):
    """A session exists. ``parent`` is empty for a top-level session."""

    session: str
    t: int
    parent: str = ""
    title: str = ""
    directory: str = ""


class SessionDeleted(Struct, frozen=True):
    """The person or reflectd deleted the session."""

    session: str
    t: int


class SessionEnded(Struct, frozen=True):
    """The person closed the session, or its process is gone. It may be opened again."""

    session: str
    t: int


class SessionBusied(Struct, frozen=True):
    """The agent is working. ``retry``: the host waits to ask a failing model again, which counts as busy."""

    session: str
    t: int
    retry: bool = False


class SessionIdled(Struct, frozen=True):
    """The agent stopped. After an abort or an error it may come twice for one turn."""

    session: str
    t: int


class BackgroundAwaited(Struct, frozen=True):
    """The agent stopped, and its background tasks are awaited before its turn is judged.

    ``names``: a name for each such task, for a person to read.
    """

    session: str
    t: int
    names: tuple[str, ...]


class HumanMessaged(Struct, frozen=True):
    """A person typed, and the agent answers. Opens a new task, whose id is ``message`` (I7). ``steers``: the
    agent was at work when the message came, perhaps of a program, so it opens none while the task is open.
    """

    session: str
    t: int
    message: str
    agent: str = ""
    steers: bool = False


class SyntheticMessaged(Struct, frozen=True):
    """A user-role message that nobody typed, for example our feedback, whose order ``order`` names (I4)."""

    session: str
    t: int
    message: str
    order: str = ""


class TurnAborted(Struct, frozen=True):
    """The person pressed Esc. May come before or after the idle it causes (I11).

    ``message``: the assistant message that carries the abort error, where the host names it.
    """

    session: str
    t: int
    message: str = ""


class HostErrored(Struct, frozen=True):
    """The host gave up a call to its model. The agent is not to blame, so this turn is never judged."""

    session: str
    t: int
    name: str = ""
    message: str = ""


class PersonAsked(Struct, frozen=True):
    """A permission or a question is open: the session waits for the person (guard 8)."""

    session: str
    t: int
    request: str


class PersonAnswered(Struct, frozen=True):
    """The permission or question ``request`` was answered or dismissed."""

    session: str
    t: int
    request: str


class QuestionAnswered(Struct, frozen=True):
    """The person answered questions of ours. ``call``: the id of the agent's call."""

    session: str
    t: int
    call: str
    answers: tuple[Chosen, ...]


class CommandTyped(Struct, frozen=True):
    """The person typed our slash command. ``digest``: of its wish (``core.consent.Wish``), "" where it
    changes nothing. ``message``: the id of its message.
    """

    session: str
    t: int
    message: str
    digest: str


class SessionCompacted(Struct, frozen=True):
    """The host summarised the context. The list of messages changed; the task is still the same (I7)."""

    session: str
    t: int


class ActivitySeen(Struct, frozen=True):
    """The model or a tool wrote something: ``bytes`` since the last such event."""

    session: str
    t: int
    bytes: int = 0


class ToolEnded(Struct, frozen=True):
    """A tool call ended. ``call`` and ``result`` are digests: equal ones mean the same call, the same
    outcome.
    """

    session: str
    t: int
    tool: str
    call: str
    result: str
    failed: bool = False


class JudgeCreated(Struct, frozen=True):
    """The shim made a judge session. It says so before it prompts that session (guard 2, I1)."""

    session: str
    t: int


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
