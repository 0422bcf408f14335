"""How often, how long and whom to ask, one row per purpose (DESIGN §6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from daemon.core.errors import Fault

Purpose = Literal["judge", "judge.again", "judge.second", "stuck", "compaction"]
PASSING: Final[frozenset[Fault]] = frozenset({"connection", "rate_limit", "overloaded", "server"})


@dataclass(frozen=True, slots=True)
class Policy:
    """``order``: whom to ask, best first. ``attempts``: calls to each. ``first_delay_s`` doubles from try to
    try, up to ``max_delay_s``, with jitter; what a server asks for counts up to the same bound.
    ``retry``: the faults that pass.
    """

    order: tuple[str, ...]
    attempts: int = 3
    first_delay_s: float = 1.0
    max_delay_s: float = 20.0
    retry: frozenset[Fault] = PASSING


MODELS: Final = ("host", "anthropic", "openai", "claude-cli")
POLICIES: Final[dict[str, Policy]] = {
    "judge": Policy((*MODELS, "offline")),
    # rules have no second opinion: without a model these go unanswered, and nothing is sent
    "judge.again": Policy(MODELS),
    "judge.second": Policy(MODELS),
    # a failed evaluation never nudges (I30), so nothing stands in for a model here either
    "stuck": Policy(MODELS, attempts=2),
    "compaction": Policy(MODELS, attempts=2),
}
