"""A question to a small model: which of the statements that stand does a new rule contradict, or repeat?

One call. Without an answer, or with one out of form, none does: equal texts are found by code
(``core.given.folded``). What is sent is redacted and cut, at most ``MOST`` statements, those that stand
first. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from ...core.errors import BadReply, Unavailable
from ...core.llm import Prompt, Reply
from ...core.redact import redact_head
from ...core.reply import BadForm, Talk, wanted_object
from ...core.template import divided

if TYPE_CHECKING:
    from ...core.transcript import Model

PURPOSE: Final = "contradicts"
MOST: Final = 200  # statements of one call
TEXT: Final = 300  # characters of each
TOKENS_OUT: Final = 400
_NUMBERS: Final = {"type": "array", "items": {"type": "integer"}}
SCHEMA: Final[dict[str, object]] = {
    "type": "object",
    "properties": {"nonce": {"type": "string"}, "contradicts": _NUMBERS, "same": _NUMBERS},
    "required": ["nonce", "contradicts", "same"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Statement:
    """Something that stands already. ``where``: a file with a line, for a person. ``id``: of a rule; "" for a
    line that somebody wrote by hand. ``own``: reflectd does not change it: it is the person's, or another's.
    """

    text: str
    id: str = ""
    where: str = ""
    own: bool = False


@dataclass(frozen=True, slots=True)
class Compared:
    """What came of it. ``contradicts`` and ``same``: places of statements. ``why``: what failed, "" when
    nothing did.
    """

    contradicts: tuple[int, ...] = ()
    same: tuple[int, ...] = ()
    why: str = ""
    cost: float | None = None
    bad: tuple[BadForm, ...] = field(default=())


Compare = Callable[[str, Sequence[str]], Compared]
"""The port: a new text and the texts that stand → those that it contradicts or repeats."""


def prompt_of(rule: str, statements: Sequence[str], template: str, nonce: str) -> Prompt:
    """What is asked. Raises ``UserError`` for a template that lacks a placeholder."""
    lines = [json.dumps({"rule": redact_head(rule, TEXT)}, ensure_ascii=False)]
    lines += [
        json.dumps({"n": n, "statement": redact_head(text, TEXT)}, ensure_ascii=False)
        for n, text in enumerate(statements[:MOST], 1)
    ]
    system, text = divided(template, {"nonce": nonce, "statements": "\n".join(lines)})
    return Prompt(
        purpose=PURPOSE,
        tier="fast",
        system=system,
        text=text,
        nonce=nonce,
        schema=SCHEMA,
        max_tokens=TOKENS_OUT,
    )


def compare(
    rule: str,
    statements: Sequence[str],
    template: str,
    nonce: str,
    *,
    session: str = "",
    model: Model | None = None,
) -> Generator[Prompt, Reply, Compared]:
    """Ask which of the statements contradict the rule, and which say the same. ``session`` and ``model``: of
    the host whose models may answer.
    """
    talk = Talk()
    prompt = replace(prompt_of(rule, statements, template, nonce), session=session, model=model)
    try:
        reply = yield from talk.ask(prompt)
    except Unavailable as e:
        return Compared(why=f"no model answered: {e}")
    if reply is not None:
        try:
            answer = wanted_object(reply, nonce, "contradicts", what="answer")
            many = min(len(statements), MOST)
            contradicts, same = (_places(answer.get(key, []), many) for key in ("contradicts", "same"))
            return Compared(contradicts, same, cost=talk.cost)
        except BadReply as e:
            talk.broke(reply, prompt, e)
    return Compared(why=talk.why, cost=talk.cost, bad=tuple(talk.bad))


def _places(found: object, many: int) -> tuple[int, ...]:
    """The places of these numbers; one that stands for no statement is left out. Raises ``BadReply``."""
    if not isinstance(found, list):
        raise BadReply("the numbers are no list")
    return tuple(sorted({n - 1 for n in found if type(n) is int and 1 <= n <= many}))
