"""The judge as a flow: ``case -> Generator[Prompt, Reply, Opinion]`` (DESIGN §3).

A reply that cannot be parsed is asked for once more; then the turn is unscored (I18). Failures of the
provider are thrown in by the driver and end the flow unscored, never as a verdict.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from daemon.core.errors import BadReply, Unavailable
from daemon.core.llm import Prompt, Reply
from daemon.core.template import fill
from daemon.core.verdict import Judgement
from daemon.judge.case import FINAL_CHARS
from daemon.judge.parse import parse

if TYPE_CHECKING:
    from collections.abc import Generator

    from daemon.judge.case import Case

ASKS = 2


@dataclass(frozen=True, slots=True)
class Opinion:
    """How the flow ended. ``judgement`` is None when the turn is unscored; ``why`` says why.

    ``prompts`` and ``replies`` keep what was asked and answered, for the case file.
    """

    judgement: Judgement | None
    why: str = ""
    provider: str = ""
    model: str = ""
    cost: float | None = None
    prompts: tuple[Prompt, ...] = ()
    replies: tuple[Reply, ...] = ()


def judge(case: Case) -> Generator[Prompt, Reply, Opinion]:
    """Judge one turn. Yields prompts, returns the opinion."""
    prompt = make_prompt(case)
    prompts: list[Prompt] = []
    replies: list[Reply] = []
    why = ""
    for _ in range(ASKS):
        prompts.append(prompt)
        try:
            reply = yield prompt
        except Unavailable as e:
            return Opinion(None, f"no judge answered: {e}", prompts=tuple(prompts), replies=tuple(replies))
        replies.append(reply)
        try:
            found = parse(reply, case.nonce)
        except BadReply as e:
            why = str(e)
            if reply.data is not None:  # a rule's answer does not change by asking again
                break
            continue
        return _opinion(found, "", prompts, replies)
    return _opinion(None, why, prompts, replies)


def make_prompt(case: Case) -> Prompt:
    """The one call: stable rules first (cache-friendly), then the fenced data of this case."""
    earlier = [f"(context, an earlier request) {text[:500]}" for text in case.earlier]
    now = [f"{i}. {text}" for i, text in enumerate(case.requests, 1)]
    rows = [f"{r.id} [{r.kind}{' ' + r.outcome if r.outcome else ''}] {r.text}" for r in case.evidence.rows]
    return Prompt(
        purpose="judge",
        tier="judge",
        system=fill(case.templates.system, {"nonce": case.nonce}),
        text=fill(
            case.templates.case,
            {
                "nonce": case.nonce,
                "requests": "\n".join([*earlier, *now]),
                "evidence": "\n".join(rows) or "(none)",
                "earlier": "\n".join(case.open_items) or "(none)",
                "final": case.final[-FINAL_CHARS:] or "(empty)",
            },
        ),
        session=case.session,
        model=case.model,
        nonce=case.nonce,
        evidence=case.evidence,
    )


def _opinion(found: Judgement | None, why: str, prompts: list[Prompt], replies: list[Reply]) -> Opinion:
    last = replies[-1]
    known = [r.usage.cost for r in replies if r.usage.cost is not None]
    return Opinion(
        judgement=found,
        why=why,
        provider=last.provider,
        model=last.model,
        cost=sum(known) if len(known) == len(replies) else None,
        prompts=tuple(prompts),
        replies=tuple(replies),
    )
