"""What happened in a host, as past facts. Frozen values; times are the host's wall clock in epoch ms.

Hosts produce them (``daemon.hosts``), ``core.session.fold`` consumes them. An event is a hint:
the host's messages are the truth and are read before anything is judged.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SessionSeen:
    """A session exists. ``parent`` is empty for a top-level session."""

    session: str
    t: int
    parent: str = ""
    title: str = ""
    directory: str = ""


@dataclass(frozen=True, slots=True)
class SessionDeleted:
    """The person (or we) removed the session."""

    session: str
    t: int


@dataclass(frozen=True, slots=True)
class SessionBusied:
    """The agent is working. ``retry`` marks a provider back-off, which counts as busy."""

    session: str
    t: int
    retry: bool = False


@dataclass(frozen=True, slots=True)
class SessionIdled:
    """The agent stopped. It may come twice for one turn (abort, error)."""

    session: str
    t: int


@dataclass(frozen=True, slots=True)
class HumanMessaged:
    """A person typed. Opens a new task, whose id is ``message`` (I7)."""

    session: str
    t: int
    message: str
    agent: str = ""


@dataclass(frozen=True, slots=True)
class SyntheticMessaged:
    """A user-role message nobody typed: our feedback (``order``), a compaction continuation … (I4)."""

    session: str
    t: int
    message: str
    order: str = ""


@dataclass(frozen=True, slots=True)
class TurnAborted:
    """The person pressed Esc. May come before or after the idle it causes (I11).

    ``message``: the assistant message that carries the abort error, where the host names it.
    """

    session: str
    t: int
    message: str = ""


@dataclass(frozen=True, slots=True)
class HostErrored:
    """The host gave up on a provider call; not the agent's fault and never judged."""

    session: str
    t: int
    name: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class PersonAsked:
    """A permission or a question is open: the session waits for the person (guard 8)."""

    session: str
    t: int
    request: str


@dataclass(frozen=True, slots=True)
class PersonAnswered:
    """The permission or question ``request`` was answered or dismissed."""

    session: str
    t: int
    request: str


@dataclass(frozen=True, slots=True)
class SessionCompacted:
    """The host summarised the context; message counts changed, the task did not (I7)."""

    session: str
    t: int


@dataclass(frozen=True, slots=True)
class ActivitySeen:
    """Tokens or tool output flowed: ``bytes`` since the last such event."""

    session: str
    t: int
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class ToolEnded:
    """A tool call is over. Equal digests: the same call, the same outcome."""

    session: str
    t: int
    tool: str
    call: str
    result: str
    failed: bool = False


@dataclass(frozen=True, slots=True)
class JudgeCreated:
    """A judge session of ours exists; announced before it is prompted (guard 2, I1)."""

    session: str
    t: int


@dataclass(frozen=True, slots=True)
class InstanceDisposed:
    """The host process (or one directory of it) is going away."""

    t: int


SessionEvent = (
    SessionSeen
    | SessionDeleted
    | SessionBusied
    | SessionIdled
    | HumanMessaged
    | SyntheticMessaged
    | TurnAborted
    | HostErrored
    | PersonAsked
    | PersonAnswered
    | SessionCompacted
    | ActivitySeen
    | ToolEnded
    | JudgeCreated
)
Event = SessionEvent | InstanceDisposed
