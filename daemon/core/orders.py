"""What the daemon asks a host to do. The shim carries out these orders and no others.

``SendFeedback``, ``SendNudge`` and ``ShowToast`` go through the outbox: they are stored together with the
decision behind them and sent once. The others are calls: each is answered by one result, and none is stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .transcript import Model

NudgeKind = Literal["stuck", "loop", "feedback", "compaction"]
Variant = Literal["info", "success", "warning", "error"]
OutboxStatus = Literal["pending", "sent", "done", "stale", "failed", "expired"]
ResultStatus = Literal["done", "stale", "failed"]


@dataclass(frozen=True, slots=True)
class SendFeedback:
    """Prompt the agent if task and turn are still the same. ``agent``, ``model``: the person's choice."""

    session: str
    task: str
    turn: str
    text: str
    agent: str = ""
    model: Model | None = None


@dataclass(frozen=True, slots=True)
class SendNudge:
    """Prompt an idle agent to go on, without a verdict. ``kind`` says what caused it."""

    session: str
    task: str
    turn: str
    text: str
    kind: NudgeKind
    agent: str = ""
    model: Model | None = None


@dataclass(frozen=True, slots=True)
class ShowToast:
    """Show the person a message. It never prompts the agent."""

    session: str
    message: str
    variant: Variant = "info"


@dataclass(frozen=True, slots=True)
class ReadMessages:
    """Read the session's messages, back to the person's message that opened the task; ``whole``: all."""

    session: str
    whole: bool = False


@dataclass(frozen=True, slots=True)
class RunJudge:
    """Make a judge session without tools: announce it, prompt it, delete it."""

    session: str
    system: str
    text: str
    model: Model | None
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class CancelOrder:
    """Stop a running ``RunJudge``, because the person typed, aborted or switched reflectd off."""

    order: str


@dataclass(frozen=True, slots=True)
class RenewContext:
    """Ask again for what this session is given, because reflectd was switched off or on for it."""

    session: str


@dataclass(frozen=True, slots=True)
class DeleteSessions:
    """Delete judge sessions that a crash left behind (I37)."""

    sessions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReadProviders:
    """Read which models the host's providers offer: ids only, never a key."""


@dataclass(frozen=True, slots=True)
class ReadHistory:
    """Read the typed messages of past sessions: the ``limit`` sessions by last use after ``after``, "" for
    the oldest. ``listed``: only the list of sessions.
    """

    after: str
    limit: int
    listed: bool = False


Prompting = SendFeedback | SendNudge
StoredOrder = Prompting | ShowToast
CallOrder = (
    ReadMessages | RunJudge | CancelOrder | RenewContext | DeleteSessions | ReadProviders | ReadHistory
)
