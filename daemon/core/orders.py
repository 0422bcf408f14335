"""What we ask of a host, as imperatives. The shim carries them out by an allow-list (DESIGN §8).

``SendFeedback``, ``SendNudge`` and ``ShowToast`` go through the outbox: stored with the decision, sent once.
The others are calls: transient, answered by one result, lost with the daemon.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from daemon.core.transcript import Model

NudgeKind = Literal["stuck", "loop", "feedback", "compaction"]
Variant = Literal["info", "success", "warning", "error"]
OutboxStatus = Literal["pending", "sent", "done", "stale", "failed", "expired"]
ResultStatus = Literal["done", "stale", "failed"]


@dataclass(frozen=True, slots=True)
class SendFeedback:
    """Prompt the agent, as the person's agent and model, only if task and turn are still the same."""

    session: str
    task: str
    turn: str
    text: str
    agent: str = ""
    model: Model | None = None


@dataclass(frozen=True, slots=True)
class SendNudge:
    """Prompt an idle agent to go on; not feedback: no verdict is behind it. ``kind`` is what caused it."""

    session: str
    task: str
    turn: str
    text: str
    kind: NudgeKind
    agent: str = ""
    model: Model | None = None


@dataclass(frozen=True, slots=True)
class ShowToast:
    """Tell the person; never prompts."""

    session: str
    message: str
    variant: Variant = "info"


@dataclass(frozen=True, slots=True)
class ReadMessages:
    """Read the session back to its task's human message."""

    session: str


@dataclass(frozen=True, slots=True)
class RunJudge:
    """Run one tool-less judge session: announce it, prompt it, delete it."""

    session: str
    system: str
    text: str
    model: Model | None
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class CancelOrder:
    """Stop a running ``RunJudge`` (the person typed, aborted or switched us off)."""

    order: str


@dataclass(frozen=True, slots=True)
class DeleteSessions:
    """Remove judge sessions that a crash left behind (I37)."""

    sessions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReadProviders:
    """Read which models the host's providers offer: ids only, never a key."""


Prompting = SendFeedback | SendNudge
StoredOrder = Prompting | ShowToast
CallOrder = ReadMessages | RunJudge | CancelOrder | DeleteSessions | ReadProviders
Order = StoredOrder | CallOrder
