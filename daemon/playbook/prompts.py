"""The prompts of reflector, curator and extraction: first the rules, the same at each call, then the data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..core.llm import Prompt
from ..core.template import divided
from .case import NONE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .case import Case, Curation

MAX_TOKENS: Final = 3_000  # of an answer
_TEXT: Final[dict[str, object]] = {"type": "string"}


def _object(**properties: object) -> dict[str, object]:
    """A closed object whose fields are all required: what strict structured output wants."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(item: object) -> dict[str, object]:
    return {"type": "array", "items": item}


_TAG: Final[dict[str, object]] = {"type": "string", "enum": ["helpful", "harmful", "neutral"]}
REFLECTION: Final = _object(
    nonce=_TEXT,
    analysis=_TEXT,
    bullet_tags=_list(_object(name=_TEXT, tag=_TAG, rationale=_TEXT)),
    confirmed=_list(_object(name=_TEXT, cites=_TEXT)),
)
OPERATIONS: Final = _object(
    nonce=_TEXT,
    reasoning=_TEXT,
    operations=_list(
        _object(
            type={"type": "string", "enum": ["ADD", "UPDATE", "MERGE", "DELETE"]},
            section=_TEXT,
            text=_TEXT,
            target_id=_TEXT,
            source_ids=_list(_TEXT),
            merged_text=_TEXT,
            reason=_TEXT,
        )
    ),
)
EXTRACTION: Final = _object(
    nonce=_TEXT,
    new_key_points=_list(_TEXT),
    evaluations=_list(_object(name=_TEXT, rating=_TAG)),
)


def reflector(case: Case) -> Prompt:
    """What was the playbook worth in this session?"""
    values = {
        "nonce": case.nonce,
        "transcript": case.transcript,
        "playbook": case.points,
        "cited_ids": ", ".join(f"[{name}]" for name in case.cited) or NONE,
    }
    if "{quarantined}" in case.template:
        values["quarantined"] = "\n".join(case.quarantined) or NONE
    return _prompt(case, "reflect", values, REFLECTION)


def curator(case: Curation) -> Prompt:
    """What is to be changed in the playbook?"""
    values = {"nonce": case.nonce, "playbook": case.points, "reflector_output": case.reflection}
    return _prompt(case, "curate", values, OPERATIONS)


def keypoints(case: Case) -> Prompt:
    """New points and ratings in one call, without a curator."""
    values = {"nonce": case.nonce, "transcript": case.transcript, "playbook": case.points}
    return _prompt(case, "keypoints", values, EXTRACTION)


def _prompt(
    case: Case | Curation, purpose: str, values: Mapping[str, str], schema: dict[str, object]
) -> Prompt:
    system, text = divided(case.template, values)
    return Prompt(
        purpose=f"asked.{purpose}" if case.asked else purpose,
        tier=case.tier,
        system=system,
        text=text,
        session=case.session,
        model=case.model,
        nonce=case.nonce,
        schema=schema,
        max_tokens=MAX_TOKENS,
    )
