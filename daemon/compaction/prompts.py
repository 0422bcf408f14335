"""The question to a model after a compaction: its text, its data, and the form of the answer.

The system text is the same each time, so that providers can cache it. The call's nonce marks where data
begins and ends (I27).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..core.cuts import head_and_tail
from ..core.llm import Prompt
from ..core.template import fill
from .parse import ACTIONS

if TYPE_CHECKING:
    from .case import Case

PURPOSE: Final = "compaction"
EARLIER_CHARS: Final = 300
MAX_TOKENS: Final = 500
_TEXT: Final = {"type": "string"}
_PROPERTIES: Final = {
    "reason": _TEXT,
    "nonce": _TEXT,
    "action": {"type": "string", "enum": list(ACTIONS)},
    "confidence": {"type": "number"},
    "message": _TEXT,
}
ANSWER: Final[dict[str, object]] = {
    "type": "object",
    "properties": _PROPERTIES,
    "required": list(_PROPERTIES),
    "additionalProperties": False,
}


def first(case: Case) -> Prompt:
    """The question."""
    return _prompt(case, _data(case))


def again(case: Case, why: str) -> Prompt:
    """The same question once more, because the reply had a wrong form; ``why`` says how."""
    values = {"case": _data(case), "nonce": case.nonce, "why": why}
    return _prompt(case, fill(case.templates.again, values))


def _prompt(case: Case, text: str) -> Prompt:
    system = case.templates.system
    return Prompt(
        purpose=PURPOSE,
        tier="fast",
        system=fill(system, {"nonce": case.nonce}) if "{nonce}" in system else system,
        text=text,
        session=case.session,
        model=case.model,
        nonce=case.nonce,
        schema=ANSWER,
        max_tokens=MAX_TOKENS,
    )


def _data(case: Case) -> str:
    earlier = [f"(context, an earlier request) {head_and_tail(text, EARLIER_CHARS)}" for text in case.earlier]
    now = [f"{i}. {text}" for i, text in enumerate(case.requests, 1)]
    judged = [f"the last verdict: {case.phase}"] if case.phase else []
    missing = [f"open item: {item}" for item in case.open_items]
    todos = [f"open todo: {todo}" for todo in case.todos]
    values = {
        "nonce": case.nonce,
        "requests": _lines([*earlier, *now]),
        "open": _lines([*judged, *missing, *todos]),
        "tools": _lines([*((", ".join(case.tools),) if case.tools else ()), *case.recent]),
        "github": _lines(github_lines(case)),
        "reply": case.last_reply or "(none)",
        "summary": case.summary or "(empty)",
    }
    return fill(case.templates.case, values)


def github_lines(case: Case) -> list[str]:
    """The GitHub work, for the model."""
    work = case.github
    lines = [f"commands that ran: {', '.join(work.tools)}"] if work.tools else []
    if work.target:
        lines.append(f"the last command was about: {work.target.name}")
    named = [f"{r.name} ({'a command' if r.source == 'tool' else 'text'})" for r in work.references]
    return lines + ([f"named: {', '.join(named)}"] if named else [])


def _lines(lines: list[str]) -> str:
    return "\n".join(lines) or "(none)"
