"""The optional look of a small model at messages: it decides the doubtful ones and words the instructions.

One call for each batch, never a second one. Messages that a reply leaves out, and all of them when nobody
answers or the reply breaks the form, stay undecided: then the rules' word counts. What is sent is redacted
and cut. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, get_args

from ..core.errors import BadReply, Unavailable
from ..core.llm import Prompt, Reply
from ..core.redact import redact_head, redact_tail
from ..core.reply import BadForm, Talk, wanted_object
from ..core.template import fill
from .journal import MAX_CONTENT, SEVERITIES, Severity
from .signals import Kind, Reading

if TYPE_CHECKING:
    from ..core.transcript import Said

T = TypeVar("T")
PURPOSE: Final = "signals"
BATCH: Final = 20  # messages of one call
TEXT: Final = 600  # characters of a message
PRIOR: Final = 300  # of the agent's last words before it
TOKENS_OUT: Final = 60  # for each message
CONFIDENCE: Final = 0.9  # of what a model decided
_KINDS: Final = get_args(Kind)
_FIELD: Final = {"type": "string"}
SCHEMA: Final[dict[str, object]] = {
    "type": "object",
    "properties": {
        "nonce": _FIELD,
        "signals": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "n": {"type": "integer"},
                    "type": {"type": "string", "enum": list(_KINDS)},
                    "content": _FIELD,
                    "severity": {"type": "string", "enum": list(SEVERITIES)},
                },
                "required": ["n", "type", "content", "severity"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["nonce", "signals"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Decided:
    """What came of a batch. ``readings``: by the message's place in it. ``why``: what failed, "" when nothing
    did. ``cost``: USD, None when unknown.
    """

    readings: Mapping[int, Reading]
    why: str = ""
    cost: float | None = None
    bad: tuple[BadForm, ...] = field(default=())


Flow = Generator[Prompt, Reply, Decided]


def batches(messages: Sequence[T]) -> list[Sequence[T]]:
    """The messages, as many as one call takes at a time."""
    return [messages[at : at + BATCH] for at in range(0, len(messages), BATCH)]


def prompt_of(said: Sequence[Said], template: str, nonce: str) -> Prompt:
    """What is asked about a batch. Raises ``UserError`` for a template that lacks a placeholder."""
    lines = (json.dumps(_shown(n, s), ensure_ascii=False) for n, s in enumerate(said, 1))
    first = min(
        (at for name in ("nonce", "messages") if (at := template.find(f"{{{name}}}")) >= 0), default=0
    )
    start = template.rfind("\n", 0, first) + 1
    values = {"nonce": nonce, "messages": "\n".join(lines)}
    return Prompt(
        purpose=PURPOSE,
        tier="fast",
        system=template[:start].strip(),
        text=fill(template[start:], values),
        nonce=nonce,
        schema=SCHEMA,
        max_tokens=200 + TOKENS_OUT * len(said),
    )


def decide(said: Sequence[Said], template: str, nonce: str) -> Flow:
    """Ask about a batch."""
    talk, prompt = Talk(), prompt_of(said, template, nonce)
    try:
        reply = yield from talk.ask(prompt)
    except Unavailable as e:
        return Decided({}, f"no model answered: {e}")
    if reply is not None:
        try:
            found = wanted_object(reply, nonce, "signals", what="signals")
            return Decided(_readings(found, len(said)), "", talk.cost)
        except BadReply as e:
            talk.broke(reply, prompt, e)
    return Decided({}, talk.why, talk.cost, tuple(talk.bad))


def _shown(n: int, said: Said) -> dict[str, Any]:
    before = redact_tail(said.prior, PRIOR)
    return {"n": n, **({"agent": before} if before else {}), "person": redact_head(said.text.strip(), TEXT)}


def _readings(found: Mapping[str, object], many: int) -> dict[int, Reading]:
    """The readings of a reply. An entry of another form, or without an instruction, is left out."""
    entries = found.get("signals")
    if not isinstance(entries, list):
        raise BadReply("the signals are no list")
    readings: dict[int, Reading] = {}
    for entry in entries:
        if not isinstance(entry, dict):
            continue
        n, kind, content = entry.get("n"), entry.get("type"), entry.get("content")
        if type(n) is not int or not 1 <= n <= many or kind not in _KINDS or not isinstance(content, str):
            continue
        text = redact_head(" ".join(content.split()), MAX_CONTENT)
        if kind in {"correction", "instruction"} and not text:
            continue
        severity = entry.get("severity")
        readings[n - 1] = Reading(
            cast("Kind", kind),
            text,
            cast("Severity", severity if severity in SEVERITIES else "medium"),
            CONFIDENCE,
        )
    return readings
