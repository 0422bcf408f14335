"""Orders for a host. The shim carries out these orders and no others.

``SendFeedback``, ``SendNudge`` and ``ShowToast`` go through the outbox: they are stored together with the
decision behind them and sent once. The others are calls: each is answered by one result, and none is stored.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from .transcript import Model

NudgeKind = Literal["stuck", "loop", "feedback", "compaction"]
Variant = Literal["info", "success", "warning", "error"]
OutboxStatus = Literal["pending", "sent", "done", "stale", "failed", "expired"]
ResultStatus = Literal["done", "stale", "failed"]


class SendFeedback(Struct, frozen=True):
    """Prompt the agent if task and turn are still the same. ``agent``, ``model``: the person's choice."""

    session: str
    task: str
    turn: str
    text: str
    agent: str = ""
    model: Model | None = None


class SendNudge(Struct, frozen=True):
    """Prompt an idle agent to go on, without a verdict. ``kind`` says what caused it."""

    session: str
    task: str
    turn: str
    text: str
    kind: NudgeKind
    agent: str = ""
    model: Model | None = None


class ShowToast(Struct, frozen=True):
    """Show the person a message. It never prompts the agent."""

    session: str
    message: str
    variant: Variant = "info"


class ReadMessages(Struct, frozen=True):
    """Read the session's messages, back to the person's message that opened the task; ``whole``: all."""

    session: str
    whole: bool = False


class RunJudge(Struct, frozen=True):
    """Make a judge session without tools: announce it, prompt it, delete it."""

    session: str
    system: str
    text: str
    model: Model | None
    timeout_ms: int


class CancelOrder(Struct, frozen=True):
    """Stop a running ``RunJudge``, because the person typed, aborted or switched reflectd off."""

    order: str


class RenewContext(Struct, frozen=True):
    """Ask again for what this session is given, because reflectd was switched off or on for it."""

    session: str


class DeleteSessions(Struct, frozen=True):
    """Delete judge sessions that a crash left behind (I37)."""

    sessions: tuple[str, ...]


class ReadProviders(Struct, frozen=True):
    """Read which models the host's providers offer: ids only, never a key."""


class ReadHistory(Struct, frozen=True):
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
