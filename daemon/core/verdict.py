"""A judge's answer, the verdict that is made of it, and the verdict's reward (``design/judge.md``)."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from msgspec import Struct

from .proof import Proof


class Severity(StrEnum):
    """How bad the open items are; BLOCKER forces incomplete (I20)."""

    NONE = "NONE"
    LOW = "LOW"
    MEDIUM = "MEDIUM"
    HIGH = "HIGH"
    BLOCKER = "BLOCKER"


NO_PROOF = "no_proof"
"""The beginning of ``reason`` when no model judged and nothing is proven: unscored, nobody's fault."""
OVER_LIMIT = "over a limit of `spend`"
"""How that reason goes on where such a limit kept a model from being asked."""

FinalState = Literal["complete", "incomplete", "awaiting_user", "stopped", "unscored", "error", "skipped"]
State = Literal[
    "judging", "stuck", "complete", "incomplete", "awaiting_user", "stopped", "unscored", "error", "skipped"
]


class Missing(Struct, frozen=True):
    """One open item. ``cites``: the id of an evidence row (``E3``) or a verbatim quote of the request."""

    text: str
    cites: str = ""


class Judgement(Struct, frozen=True):
    """A judge's answer after parsing, before ``decide`` has checked it. ``excused``: failed checks that the
    person wanted or excluded, or that are older than the work: the row, and what shows it.
    """

    complete: bool
    severity: Severity = Severity.NONE
    feedback: str = ""
    missing: tuple[Missing, ...] = ()
    next_actions: tuple[str, ...] = ()
    requires_human_action: bool = False
    excused: tuple[Missing, ...] = ()


class JudgedBy(Struct, frozen=True):
    """The judge. ``cost`` is in USD, None when unknown."""

    provider: str = "rules"
    model: str = ""
    ms: int = 0
    cost: float | None = None


class Verdict(Struct, frozen=True):
    """The final result for one turn. ``at`` is epoch ms. ``reason`` is a stable slug (``guard:abort`` …)."""

    session: str
    task: str
    turn: str
    state: FinalState
    at: int
    severity: Severity = Severity.NONE
    feedback: str = ""
    missing: tuple[Missing, ...] = ()
    next_actions: tuple[str, ...] = ()
    requires_human_action: bool = False
    reason: str = ""
    judge: JudgedBy = JudgedBy()
    attempt: int = 0
    will_prompt: bool = False  # feedback follows this verdict
    work_usd: float | None = None  # cost of the agent's own work for this task so far; None: unknown
    work_tokens: int = 0
    proof: Proof | None = None

    @property
    def complete(self) -> bool:
        return self.state == "complete"

    @property
    def reward(self) -> float | None:
        return reward(self.state, self.severity, has_missing=bool(self.missing))


_COMPLETE = {Severity.NONE: 1.0, Severity.LOW: 0.6, Severity.MEDIUM: 0.3, Severity.HIGH: 0.0}
_INCOMPLETE = {Severity.LOW: 0.2, Severity.MEDIUM: -0.2, Severity.HIGH: -0.6, Severity.BLOCKER: -1.0}


def reward(state: State, severity: Severity, *, has_missing: bool) -> float | None:
    """The turn's quality, from -1 to 1; None where nothing was judged."""
    if state == "complete":
        return _COMPLETE.get(severity, -1.0)
    if state == "incomplete":
        if severity is Severity.NONE:
            return 0.2 if has_missing else None
        return _INCOMPLETE[severity]
    return None
