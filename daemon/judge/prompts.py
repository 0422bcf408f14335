"""The prompts of the judge: what is asked, with which data, and which form the answer has.

Stable text comes first and holds nothing of the call, so that providers can cache it; the call's nonce fences
the data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from daemon.core.llm import Prompt
from daemon.core.template import fill
from daemon.judge.case import FINAL_CHARS

if TYPE_CHECKING:
    from daemon.core.evidence import Row
    from daemon.core.verdict import Judgement
    from daemon.judge.case import Case

EARLIER_CHARS: Final = 300
REQUEST_CHARS: Final = 6_000
ROW_CHARS: Final = 400
ASKED_CHARS: Final = 120
ROWS_CHARS: Final = 12_000
_TEXT: Final = {"type": "string"}
_TEXTS: Final = {"type": "array", "items": _TEXT}


def _object(**properties: object) -> dict[str, object]:
    """A closed object whose fields are all required: what strict structured output wants."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


VERDICT: Final = _object(
    requirements=_TEXTS,
    reasons=_TEXT,
    nonce=_TEXT,
    complete={"type": "boolean"},
    severity={"type": "string", "enum": ["NONE", "LOW", "MEDIUM", "HIGH", "BLOCKER"]},
    missing={"type": "array", "items": _object(item=_TEXT, cites=_TEXT)},
    next_actions=_TEXTS,
    requires_human_action={"type": "boolean"},
    feedback=_TEXT,
)
DEFENCE: Final = _object(reasons=_TEXT, nonce=_TEXT, defended={"type": "boolean"})


def first(case: Case) -> Prompt:
    """The one call that every judged turn costs."""
    return _prompt(case, "judge", case.templates.system, _data(case), VERDICT)


def again(case: Case, why: str) -> Prompt:
    """The same question once more: the reply broke the form, or said what a row rules out."""
    values = {"case": _data(case), "nonce": case.nonce, "why": why}
    return _prompt(case, "judge.again", case.templates.system, fill(case.templates.again, values), VERDICT)


def second(case: Case, found: Judgement) -> Prompt:
    """The second look: can the stop be defended against this judgement?"""
    items = [f"{i}. {m.text} (cites: {m.cites})" for i, m in enumerate(found.missing, 1)] or [found.feedback]
    values = {"case": _data(case), "nonce": case.nonce, "missing": "\n".join(items)}
    return _prompt(
        case, "judge.second", case.templates.second, fill(case.templates.second_case, values), DEFENCE, 600
    )


def _prompt(
    case: Case, purpose: str, system: str, text: str, schema: dict[str, object], max_tokens: int = 1_500
) -> Prompt:
    return Prompt(
        purpose=purpose,
        tier="judge",
        system=fill(system, {"nonce": case.nonce}) if "{nonce}" in system else system,
        text=text,
        session=case.session,
        model=case.model,
        nonce=case.nonce,
        evidence=case.evidence,
        schema=schema,
        max_tokens=max_tokens,
    )


def _data(case: Case) -> str:
    earlier = [f"(context, an earlier request) {_cut(text, EARLIER_CHARS)}" for text in case.earlier]
    now = [f"{i}. {_cut(text, REQUEST_CHARS)}" for i, text in enumerate(case.requests, 1)]
    values = {
        "nonce": case.nonce,
        "requests": "\n".join([*earlier, *now]),
        "project": case.project or "(none)",
        "evidence": _rows(case.evidence.rows),
        "earlier": "\n".join(case.open_items) or "(none)",
        "final": case.final[-FINAL_CHARS:] or "(empty)",
    }
    return fill(case.templates.case, values)


def _rows(rows: tuple[Row, ...]) -> str:
    """The rows up to a bound; what does not fit is counted."""
    lines: list[str] = []
    left = ROWS_CHARS
    rows = tuple(r for r in rows if r.kind != "gate")  # the project's rules stand above
    for i, r in enumerate(rows):
        limit = ASKED_CHARS if r.kind == "requirement" else ROW_CHARS  # the requests stand above in full
        line = f"{r.id} [{r.kind}{' ' + r.outcome if r.outcome else ''}] {_cut(r.text, limit)}"
        left -= len(line)
        if left < 0:
            lines.append(f"({len(rows) - i} more rows)")
            break
        lines.append(line)
    return "\n".join(lines) or "(none)"


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit // 2]} […] {text[-limit // 2 :]}"
