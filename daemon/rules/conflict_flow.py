"""The optional look of a small model at a new rule: which statements contradict it that words did not find.

One call, never a second one. Without an answer, or with one out of form, none does. What is sent is redacted
and cut, and at most ``MOST`` statements are sent: those that stand first. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ..core.errors import BadReply, Unavailable
from ..core.llm import Prompt, Reply
from ..core.redact import redact_head
from ..core.reply import BadForm, Talk, wanted_object
from ..core.template import fill

if TYPE_CHECKING:
    from collections.abc import Sequence

PURPOSE: Final = "conflicts"
MOST: Final = 200  # statements of one call
TEXT: Final = 300  # characters of each
TOKENS_OUT: Final = 400
SCHEMA: Final[dict[str, object]] = {
    "type": "object",
    "properties": {
        "nonce": {"type": "string"},
        "contradicts": {"type": "array", "items": {"type": "integer"}},
    },
    "required": ["nonce", "contradicts"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Found:
    """What came of it. ``at``: places of the statements that contradict the rule. ``why``: what failed, ""
    when nothing did.
    """

    at: tuple[int, ...] = ()
    why: str = ""
    cost: float | None = None
    bad: tuple[BadForm, ...] = field(default=())


Flow = Generator[Prompt, Reply, Found]


def prompt_of(rule: str, statements: Sequence[str], template: str, nonce: str) -> Prompt:
    """What is asked. Raises ``UserError`` for a template that lacks a placeholder."""
    lines = [json.dumps({"rule": redact_head(rule, TEXT)}, ensure_ascii=False)]
    lines += [
        json.dumps({"n": n, "statement": redact_head(text, TEXT)}, ensure_ascii=False)
        for n, text in enumerate(statements[:MOST], 1)
    ]
    slots = [at for name in ("nonce", "statements") if (at := template.find(f"{{{name}}}")) >= 0]
    start = template.rfind("\n", 0, min(slots, default=0)) + 1
    return Prompt(
        purpose=PURPOSE,
        tier="fast",
        system=template[:start].strip(),
        text=fill(template[start:], {"nonce": nonce, "statements": "\n".join(lines)}),
        nonce=nonce,
        schema=SCHEMA,
        max_tokens=TOKENS_OUT,
    )


def contradicted(rule: str, statements: Sequence[str], template: str, nonce: str) -> Flow:
    """Ask which of the statements contradict the rule."""
    talk, prompt = Talk(), prompt_of(rule, statements, template, nonce)
    try:
        reply = yield from talk.ask(prompt)
    except Unavailable as e:
        return Found(why=f"no model answered: {e}")
    if reply is not None:
        try:
            numbers = wanted_object(reply, nonce, "contradicts", what="answer").get("contradicts")
            if not isinstance(numbers, list):
                raise BadReply("the numbers are no list")
            many = min(len(statements), MOST)
            named = {n - 1 for n in numbers if type(n) is int and 1 <= n <= many}
            return Found(tuple(sorted(named)), cost=talk.cost)
        except BadReply as e:
            talk.broke(reply, prompt, e)
    return Found(why=talk.why, cost=talk.cost, bad=tuple(talk.bad))
