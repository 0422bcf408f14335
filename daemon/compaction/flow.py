"""The look after a compaction, as a flow: ``case -> Generator[Prompt, Reply, Outcome]``.

It makes one call: none when the outcome is certain, and one more when the reply had a wrong form. After a
failure there is no action, and nothing is sent (I30).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..core.cuts import head_and_tail
from ..core.errors import BadReply, Unavailable
from ..core.llm import Prompt, Reply
from ..core.reply import BadForm, Talk
from ..core.template import fill
from .parse import ACTIONS, Action, Answer, parse

if TYPE_CHECKING:
    from collections.abc import Generator

    from .case import Case

# The question to a model after a compaction: its text, its data, and the form of the answer.
#
# The system text is the same each time, so that providers can cache it. The call's nonce marks where data
# begins and ends (I27).

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


TRIES: Final = 2
RULES: Final = "rules"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the flow ended. ``action`` is None when nothing was decided.

    ``why``: the model's reason, or the failure. ``message``: the model's words for the agent, not cleaned.
    ``prompts`` and ``replies``: what was asked and answered. ``bad``: replies that could not be read.
    """

    action: Action | None
    why: str = ""
    confidence: float = 0.0
    message: str = ""
    provider: str = ""
    model: str = ""
    cost: float | None = None
    prompts: tuple[Prompt, ...] = ()
    replies: tuple[Reply, ...] = ()
    bad: tuple[BadForm, ...] = ()


def certain(case: Case) -> Outcome | None:
    """The outcome when no call is needed, else None."""
    if not case.task:
        return Outcome(None, "nobody asked for anything", provider=RULES, cost=0.0)
    if case.phase == "complete":
        return Outcome("task_complete", "the task was judged complete", 1.0, provider=RULES, cost=0.0)
    return None


def evaluate(case: Case) -> Generator[Prompt, Reply, Outcome]:
    """What the agent needs after the compaction. Yields prompts, returns the outcome."""
    if (sure := certain(case)) is not None:
        return sure
    talk, prompt = Talk(), first(case)
    try:
        for _ in range(TRIES):
            reply = yield from talk.ask(prompt)
            if reply is not None:
                try:
                    return _outcome(talk, parse(reply, case.nonce))
                except BadReply as e:
                    talk.broke(reply, prompt, e)
            prompt = again(case, f"The reply could not be used: {talk.why[:300]}.")
    except Unavailable as e:
        return _outcome(talk, None, f"no model answered: {e}")
    return _outcome(talk, None, talk.why)


def _outcome(talk: Talk, found: Answer | None, why: str = "") -> Outcome:
    provider, model = talk.by
    return Outcome(
        action=found.action if found else None,
        why=found.reason if found else why,
        confidence=found.confidence if found else 0.0,
        message=found.message if found else "",
        provider=provider,
        model=model,
        cost=talk.cost,
        prompts=tuple(talk.prompts),
        replies=tuple(talk.replies),
        bad=tuple(talk.bad),
    )
