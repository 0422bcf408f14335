"""The prompts of reflexion and evaluation (AC-2.6.1). The texts are files: ``prompts/reflexion.txt`` is the
one that the requirements name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..core.llm import Prompt
from ..core.template import fill
from .case import NO_ANSWER, NO_CONTEXT

if TYPE_CHECKING:
    from .case import Case

REFLEXION: Final = "haiku_reflexion"
EVALUATION: Final = "haiku_eval"
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


def reflexion(case: Case) -> Prompt:
    """Why was the answer poor, and what is to be done next time?"""
    values = {
        "reward_score": f"{case.reward:.2f}",
        "evaluation_reasoning": case.reasoning,
        **_said(case),
    }
    return _prompt(case, REFLEXION, values, case.rules)


def evaluation(case: Case) -> Prompt:
    """How good is the answer?"""
    return _prompt(case, EVALUATION, {"nonce": case.nonce, **_said(case)}, "", _SCHEMA)


def _said(case: Case) -> dict[str, str]:
    context = "\n".join(f"  {i}. {text}" for i, text in enumerate(case.context, 1))
    return {
        "query": case.query,
        "context": f"\n{context}" if context else NO_CONTEXT,
        "answer": case.answer or NO_ANSWER,
    }


def _prompt(
    case: Case, purpose: str, values: dict[str, str], rules: str, schema: dict[str, object] | None = None
) -> Prompt:
    wanted = case.settings
    return Prompt(
        purpose=purpose,
        tier="fast",
        system=rules,
        text=fill(case.template, values),
        session=case.session,
        model=case.own,
        nonce=case.nonce,
        schema=schema,
        max_tokens=wanted.max_tokens,
        temperature=wanted.temperature,
        wanted=wanted.model,
    )
