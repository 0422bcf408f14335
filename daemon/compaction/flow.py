"""The look after a compaction, as a flow: ``case -> Generator[Prompt, Reply, Outcome]``.

It makes one call: none when the outcome is certain, and one more when the reply had a wrong form. After a
failure there is no action, and nothing is sent (I30).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..core.errors import BadReply, Unavailable
from ..core.llm import Prompt, Reply
from ..core.reply import BadForm, Talk
from . import prompts
from .parse import Action, Answer, parse

if TYPE_CHECKING:
    from collections.abc import Generator

    from .case import Case

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
    talk, prompt = Talk(), prompts.first(case)
    try:
        for _ in range(TRIES):
            reply = yield from talk.ask(prompt)
            if reply is not None:
                try:
                    return _outcome(talk, parse(reply, case.nonce))
                except BadReply as e:
                    talk.broke(reply, prompt, e)
            prompt = prompts.again(case, f"The reply could not be used: {talk.why[:300]}.")
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
