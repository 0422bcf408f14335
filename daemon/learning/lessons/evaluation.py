"""The question how good an answer is, from -1 to 1."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ...core.errors import BadReply
from ...core.reply import answered, wanted_object
from .reflexion import prompt_of

if TYPE_CHECKING:
    from collections.abc import Generator

    from ...core.llm import Prompt, Reply
    from ...core.reply import Answer
    from .reflexion import Case

EVALUATION: Final = "haiku_eval"
TEMPERATURE: Final = 0.0
MAX_REASONING: Final = 4_000
_SCHEMA: Final[dict[str, object]] = {
    "type": "object",
    "properties": {
        "nonce": {"type": "string"},
        "reasoning": {"type": "string"},
        "reward": {"type": "number"},
    },
    "required": ["nonce", "reasoning", "reward"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Evaluation:
    """``reward``: -1 to 1."""

    reward: float
    reasoning: str


def evaluate(case: Case) -> Generator[Prompt, Reply, Answer[Evaluation]]:
    """How good is the answer, from -1 to 1?"""
    prompt = prompt_of(case, EVALUATION, {"nonce": case.nonce}, _SCHEMA)
    return answered(prompt, lambda reply: evaluation(reply, case.nonce))


def evaluation(reply: Reply, nonce: str) -> Evaluation:
    """The reward, brought into -1 to 1, and its reasons. Raises ``BadReply``."""
    found = wanted_object(reply, nonce, "reward", "reasoning", what="evaluation")
    reward, reasoning = found["reward"], found["reasoning"]
    if isinstance(reward, bool) or not isinstance(reward, int | float) or not math.isfinite(reward):
        raise BadReply("the reward is no number", raw=reply.text)
    if not isinstance(reasoning, str):
        raise BadReply("the reasoning is no text", raw=reply.text)
    return Evaluation(max(-1.0, min(1.0, float(reward))), reasoning.strip()[:MAX_REASONING])
