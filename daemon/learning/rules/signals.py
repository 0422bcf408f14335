"""A question to a small model: what does this person teach, in which words, and what says the same?

One call for each batch. A batch is numbered statements that stand already, then the candidates. The reply has
type, wording, severity, group and contradictions of each candidate. Candidates that a reply leaves out, and
all of them when nobody answers or the reply breaks the form, stay unread. What is sent is redacted and cut.
Pure.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal, TypeVar, cast, get_args

from ...core.errors import BadReply, Unavailable
from ...core.llm import Prompt, Reply
from ...core.redact import redact_head, redact_tail
from ...core.reply import BadForm, Talk, wanted_object
from ...core.template import divided
from .candidates import HEAD, PRIOR
from .journal import MAX_CONTENT, SEVERITIES, Severity

if TYPE_CHECKING:
    from ...core.transcript import Model
    from .candidates import Candidate

T = TypeVar("T")
Kind = Literal["correction", "instruction", "positive", "negative", "none"]
PURPOSE: Final = "signals"
_KINDS: Final = get_args(Kind)
BATCH: Final = 20  # candidates of one call
STANDS: Final = 100  # statements that they are compared with
STANDS_TEXT: Final = 200  # characters of each
TOKENS_OUT: Final = 80  # for each candidate
_NUMBERS: Final = {"type": "array", "items": {"type": "integer"}}
SCHEMA: Final[dict[str, object]] = {
    "type": "object",
    "properties": {
        "nonce": {"type": "string"},
        "signals": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "n": {"type": "integer"},
                    "type": {"type": "string", "enum": list(_KINDS)},
                    "content": {"type": "string"},
                    "severity": {"type": "string", "enum": list(SEVERITIES)},
                    "group": {"type": "integer"},
                    "against": _NUMBERS,
                },
                "required": ["n", "type", "content", "severity", "group", "against"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["nonce", "signals"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Stands:
    """A statement that stands. ``rule``: the id of a rule of the person's; "" for what they said before."""

    text: str
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """A candidate as it counts. ``content``: the wording of its group. ``against``: ids of rules."""

    type: Kind
    content: str
    severity: Severity
    against: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Read:
    """What came of a batch. ``readings``: by the candidate's place in it. ``why``: what failed, "" when
    nothing did. ``cost``: USD, None when unknown.
    """

    readings: Mapping[int, Reading]
    why: str = ""
    cost: float | None = None
    bad: tuple[BadForm, ...] = field(default=())


def batches(found: Sequence[T]) -> list[Sequence[T]]:
    """As many as one call takes at a time."""
    return [found[at : at + BATCH] for at in range(0, len(found), BATCH)]


def prompt_of(said: Sequence[Candidate], stands: Sequence[Stands], template: str, nonce: str) -> Prompt:
    """What is asked about a batch. Raises ``UserError`` for a template that lacks a placeholder."""
    known = [{"n": n, "stands": redact_head(s.text, STANDS_TEXT)} for n, s in enumerate(stands[:STANDS], 1)]
    asked = [_shown(n, c) for n, c in enumerate(said, len(known) + 1)]
    lines = "\n".join(json.dumps(line, ensure_ascii=False) for line in (*known, *asked))
    system, text = divided(template, {"nonce": nonce, "messages": lines})
    return Prompt(
        purpose=PURPOSE,
        tier="fast",
        system=system,
        text=text,
        nonce=nonce,
        schema=SCHEMA,
        max_tokens=200 + TOKENS_OUT * len(said),
    )


def read(
    said: Sequence[Candidate],
    stands: Sequence[Stands],
    template: str,
    nonce: str,
    *,
    session: str = "",
    model: Model | None = None,
) -> Generator[Prompt, Reply, Read]:
    """Ask about a batch. ``session`` and ``model``: of the host whose models may answer."""
    talk = Talk()
    prompt = replace(prompt_of(said, stands, template, nonce), session=session, model=model)
    try:
        reply = yield from talk.ask(prompt)
    except Unavailable as e:
        return Read({}, f"no model answered: {e}")
    if reply is not None:
        try:
            found = wanted_object(reply, nonce, "signals", what="signals").get("signals")
            if not isinstance(found, list):
                raise BadReply("the signals are no list", raw=reply.text)
            return Read(_readings(found, stands[:STANDS], len(said)), "", talk.cost)
        except BadReply as e:
            talk.broke(reply, prompt, e)
    return Read({}, talk.why, talk.cost, tuple(talk.bad))


def _shown(n: int, said: Candidate) -> dict[str, object]:
    before = redact_tail(said.prior, PRIOR)
    return {"n": n, **({"agent": before} if before else {}), "person": redact_head(said.text.strip(), HEAD)}


def _readings(found: list[object], stands: Sequence[Stands], many: int) -> dict[int, Reading]:
    """The readings of a reply, by place. ``group`` is the number of the statement or earlier message that
    asks for the same; its wording counts then. An entry of another form, or without an instruction, is left
    out.
    """
    entries = {n: e for e in found if isinstance(e, dict) and type(n := e.get("n")) is int}
    readings: dict[int, Reading] = {}
    for at in range(many):
        entry = entries.get(len(stands) + at + 1, {})
        kind, content, group = entry.get("type"), entry.get("content"), entry.get("group")
        if kind not in _KINDS or not isinstance(content, str):
            continue
        teaches = kind in {"correction", "instruction"}
        text = redact_head(" ".join(content.split()), MAX_CONTENT)
        if teaches and type(group) is int:
            first = readings.get(group - len(stands) - 1)
            if 0 < group <= len(stands):
                text = stands[group - 1].text
            elif first is not None and first.type in {"correction", "instruction"}:
                text = first.content
        if teaches and not text:
            continue
        numbers = entry.get("against")
        met = [n for n in numbers if type(n) is int] if isinstance(numbers, list) else []
        against = {stands[n - 1].rule for n in met if 0 < n <= len(stands)} - {""}
        severity = entry.get("severity")
        readings[at] = Reading(
            cast("Kind", kind),
            text,
            cast("Severity", severity if severity in SEVERITIES else "medium"),
            tuple(sorted(against)),
        )
    return readings
