"""Two questions of `/reflect` to a small model: what a person teaches, and what a new rule contradicts.

``read`` has one call for each batch of messages: the reply has type, wording, severity, group and
contradictions of each. ``compare`` has one call for a new rule and the statements that stand. What a reply
leaves out, or what nobody answers in the agreed form, stays unread and contradicts nothing. What is sent is
redacted and cut. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, TypeVar, cast, get_args

from ...core.errors import BadReply, Unavailable
from ...core.llm import Prompt, Reply
from ...core.reply import BadForm, Talk, wanted_object
from ...core.template import divided
from ...redact import redact_head, redact_tail
from .candidates import HEAD, PRIOR
from .journal import MAX_CONTENT, SEVERITIES, Severity

if TYPE_CHECKING:
    from ...core.transcript import Model
    from .candidates import Candidate

T = TypeVar("T")
Kind = Literal["correction", "instruction", "positive", "negative", "none"]
SIGNALS: Final = "signals"
CONTRADICTS: Final = "contradicts"
Purpose = Literal["signals", "contradicts"]
_KINDS: Final = get_args(Kind)
_TEACHES: Final = frozenset({"correction", "instruction"})
BATCH: Final = 20  # messages of one call
STANDS: Final = 100  # statements that they are compared with
STANDS_TEXT: Final = 200  # characters of each
READ_TOKENS: Final = 80  # of an answer, for each message
MOST: Final = 200  # statements that a new rule is compared with
TEXT: Final = 300  # characters of each
COMPARE_TOKENS: Final = 400
_NUMBERS: Final = {"type": "array", "items": {"type": "integer"}}


def _form(**fields: object) -> dict[str, object]:
    more = {"required": list(fields), "additionalProperties": False}
    return {"type": "object", "properties": fields, **more}


_STRING: Final = {"type": "string"}
_SIGNAL: Final = _form(
    n={"type": "integer"},
    type={"type": "string", "enum": list(_KINDS)},
    content=_STRING,
    severity={"type": "string", "enum": list(SEVERITIES)},
    group={"type": "integer"},
    against=_NUMBERS,
)
_SCHEMAS: Final[dict[Purpose, dict[str, object]]] = {
    SIGNALS: _form(nonce=_STRING, signals={"type": "array", "items": _SIGNAL}),
    CONTRADICTS: _form(nonce=_STRING, contradicts=_NUMBERS, same=_NUMBERS),
}


@dataclass(frozen=True, slots=True)
class Stands:
    """A statement that stands. ``rule``: the id of a rule of the person's; "" for what they said before."""

    text: str
    rule: str = ""


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
class Reading:
    """A message as it counts. ``content``: the wording of its group. ``against``: ids of rules."""

    type: Kind
    content: str
    severity: Severity
    against: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Read:
    """What came of a batch. ``readings``: by the message's place in it. ``why``: what failed, "" when nothing
    did. ``cost``: USD, None when unknown.
    """

    readings: Mapping[int, Reading]
    why: str = ""
    cost: float | None = None
    bad: tuple[BadForm, ...] = ()


@dataclass(frozen=True, slots=True)
class Compared:
    """What came of a comparison. ``contradicts`` and ``same``: places of statements. The rest as in
    ``Read``.
    """

    contradicts: tuple[int, ...] = ()
    same: tuple[int, ...] = ()
    why: str = ""
    cost: float | None = None
    bad: tuple[BadForm, ...] = ()


Compare = Callable[[str, Sequence[str]], Compared]
"""The port: a new text and the texts that stand → those that it contradicts or repeats."""


def batches(found: Sequence[T]) -> list[Sequence[T]]:
    """As many as one call takes at a time."""
    return [found[at : at + BATCH] for at in range(0, len(found), BATCH)]


def read_prompt(said: Sequence[Candidate], stands: Sequence[Stands], template: str, nonce: str) -> Prompt:
    """What is asked about a batch. Raises ``UserError`` for a template that lacks a placeholder."""
    known = [{"n": n, "stands": redact_head(s.text, STANDS_TEXT)} for n, s in enumerate(stands[:STANDS], 1)]
    asked = [_shown(n, c) for n, c in enumerate(said, len(known) + 1)]
    return _prompt(SIGNALS, template, nonce, "messages", [*known, *asked], 200 + READ_TOKENS * len(said))


def compare_prompt(rule: str, statements: Sequence[str], template: str, nonce: str) -> Prompt:
    """What is asked about a new rule. Raises as ``read_prompt`` does."""
    lines: list[dict[str, object]] = [{"rule": redact_head(rule, TEXT)}]
    lines += [{"n": n, "statement": redact_head(text, TEXT)} for n, text in enumerate(statements[:MOST], 1)]
    return _prompt(CONTRADICTS, template, nonce, "statements", lines, COMPARE_TOKENS)


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
    prompt = replace(read_prompt(said, stands, template, nonce), session=session, model=model)

    def understood(answer: Mapping[str, object]) -> dict[int, Reading]:
        return _readings(_list(answer.get("signals")), stands[:STANDS], len(said))

    readings, why, cost, bad = yield from _asked(prompt, understood)
    return Read(readings or {}, why, cost, bad)


def compare(
    rule: str,
    statements: Sequence[str],
    template: str,
    nonce: str,
    *,
    session: str = "",
    model: Model | None = None,
) -> Generator[Prompt, Reply, Compared]:
    """Ask which of the statements contradict the rule, and which say the same. The rest as in ``read``."""
    prompt = replace(compare_prompt(rule, statements, template, nonce), session=session, model=model)
    many = min(len(statements), MOST)

    def understood(answer: Mapping[str, object]) -> list[tuple[int, ...]]:
        found = [_list(answer.get(key, [])) for key in ("contradicts", "same")]
        return [tuple(sorted({n - 1 for n in f if type(n) is int and 1 <= n <= many})) for f in found]

    places, why, cost, bad = yield from _asked(prompt, understood)
    contradicts, same = places or [(), ()]
    return Compared(contradicts, same, why, cost, bad)


def _prompt(
    purpose: Purpose, template: str, nonce: str, name: str, lines: Sequence[object], tokens: int
) -> Prompt:
    said = "\n".join(json.dumps(line, ensure_ascii=False) for line in lines)
    system, text = divided(template, {"nonce": nonce, name: said})
    form = _SCHEMAS[purpose]
    return Prompt(purpose, "fast", system, text, nonce=nonce, schema=form, max_tokens=tokens)


def _asked(
    prompt: Prompt, understood: Callable[[Mapping[str, object]], T]
) -> Generator[Prompt, Reply, tuple[T | None, str, float | None, tuple[BadForm, ...]]]:
    """Ask once: the answer as ``understood`` has it (it raises ``BadReply``), or why there is none; cost and
    replies out of form.
    """
    talk = Talk()
    try:
        reply = yield from talk.ask(prompt)
    except Unavailable as e:
        return None, f"no model answered: {e}", None, ()
    if reply is not None:
        try:
            answer = wanted_object(reply, prompt.nonce, prompt.purpose, what=prompt.purpose)
            return understood(answer), "", talk.cost, ()
        except BadReply as e:
            talk.broke(reply, prompt, e)
    return None, talk.why, talk.cost, tuple(talk.bad)


def _list(found: object) -> list[object]:
    if not isinstance(found, list):
        raise BadReply("the answer holds no list")
    return found


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
        text = redact_head(" ".join(content.split()), MAX_CONTENT)
        if kind in _TEACHES and type(group) is int:
            first = readings.get(group - len(stands) - 1)
            if 0 < group <= len(stands):
                text = stands[group - 1].text
            elif first is not None and first.type in _TEACHES:
                text = first.content
        if kind in _TEACHES and not text:
            continue
        numbers, severity = entry.get("against"), entry.get("severity")
        met = [n for n in numbers if type(n) is int] if isinstance(numbers, list) else []
        against = {stands[n - 1].rule for n in met if 0 < n <= len(stands)} - {""}
        severity = severity if severity in SEVERITIES else "medium"
        readings[at] = Reading(cast("Kind", kind), text, cast("Severity", severity), tuple(sorted(against)))
    return readings
