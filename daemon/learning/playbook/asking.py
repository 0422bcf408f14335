"""One question to a model about a playbook: the prompt, its one answer, and what could be read of it.

A flow is ``Generator[Prompt, Reply, Outcome]`` with one call. A reply that can't be used, or a model that
does not answer, ends with an empty output and the reason; nothing is asked twice, because learning must stay
cheap. What is of another form is left out, and what is missing is empty: a part of an answer is worth
something here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ...core.errors import BadReply, Unavailable
from ...core.llm import Prompt, Reply, Tier
from ...core.reply import BadForm, Talk, wanted_object
from ...core.template import divided
from ...core.transcript import Model

if TYPE_CHECKING:
    from collections.abc import Iterator

Json = dict[str, Any]
Flow = Generator[Prompt, Reply, "Outcome"]
MAX_TOKENS: Final = 3_000  # of an answer
NONE: Final = "(none)"
TEXT: Final[dict[str, object]] = {"type": "string"}
_TOKEN: Final = re.compile(r'\\.|["{}]', re.DOTALL)
_FENCE: Final = "```"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What each question has. ``nonce`` fences its untrusted text. ``points``: the playbook as text.
    ``strict``: the reply must echo the nonce, as in the daemon. ``asked``: a person asked for it, which says
    what it is paid from. What is given here is redacted already.
    """

    session: str = ""
    nonce: str
    points: str
    template: str
    model: Model | None = None
    tier: Tier = "fast"
    strict: bool = True
    asked: bool = False


@dataclass(frozen=True, slots=True)
class Confirmed:
    """A text that waited and is shown to be true by a row, a line of the log, or the person's words."""

    name: str
    cites: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a flow ended. ``output``: the plain dict of its form, empty when ``why`` says what failed.

    ``confirmed``: reflector only.
    """

    output: Json
    why: str = ""
    confirmed: tuple[Confirmed, ...] = ()
    replies: tuple[Reply, ...] = ()
    bad: tuple[BadForm, ...] = field(default=())

    @property
    def failed(self) -> bool:
        """Whether there is no answer."""
        return bool(self.why)


def prompt_of(
    question: Question, purpose: str, values: Mapping[str, str], schema: dict[str, object]
) -> Prompt:
    """First the rules, the same at each call, then the data."""
    system, text = divided(question.template, values)
    return Prompt(
        purpose=f"asked.{purpose}" if question.asked else purpose,
        tier=question.tier,
        system=system,
        text=text,
        session=question.session,
        model=question.model,
        nonce=question.nonce,
        schema=schema,
        max_tokens=MAX_TOKENS,
    )


Read = Callable[[Mapping[str, Any]], tuple[Json, tuple[Confirmed, ...]]]


def ask(prompt: Prompt, question: Question, keys: tuple[str, ...], read: Read) -> Flow:
    """One call and its answer. ``read``: the object of the reply → the output and what it confirms."""
    talk, nothing = Talk(), read({})[0]
    try:
        reply = yield from talk.ask(prompt)
    except Unavailable as e:
        return Outcome(nothing, f"no model answered: {e}")
    if reply is not None:
        try:
            output, confirmed = read(answer(reply, question.nonce, *keys, strict=question.strict))
        except BadReply as e:
            talk.broke(reply, prompt, e)
        else:
            return Outcome(output, "", confirmed, tuple(talk.replies))
    return Outcome(nothing, talk.why, (), tuple(talk.replies), tuple(talk.bad))


def answer(reply: Reply, nonce: str, *keys: str, strict: bool) -> Mapping[str, Any]:
    """The object in the reply. ``strict``: a reply in prose must echo the nonce and have all ``keys``.
    Raises ``BadReply``.
    """
    if strict:
        return wanted_object(reply, nonce, *keys, what="playbook")
    found = reply.data if reply.data is not None else extract_json(reply.text)
    if not isinstance(found, dict):
        raise BadReply("the reply holds no JSON object", raw=reply.text)
    return found


def text_in(data: Mapping[str, Any], name: str) -> str:
    """The field as a text, another value as JSON."""
    value = data.get(name, "")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) if value else ""


def dicts_in(data: Mapping[str, Any], name: str) -> list[Json]:
    """The objects in a field that is a list."""
    value = data.get(name)
    return [dict(v) for v in value if isinstance(v, Mapping)] if isinstance(value, list) else []


def closed(**properties: object) -> dict[str, object]:
    """The schema of a closed object whose fields are all required: what strict structured output wants."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def listed(item: object) -> dict[str, object]:
    """The schema of a list."""
    return {"type": "array", "items": item}


# --- JSON in prose, for the library: in the daemon a reply must echo its nonce, because prose may hold an ---
# --- object that was only quoted ----------------------------------------------------------------------------


def extract_json(text: str) -> Any:  # noqa: ANN401 - any JSON value
    """The first JSON value that one of these finds, in this order and in linear time; None when none does
    (REQ-REFL-008).

    1. a fence with the tag ``json``; 2. a fence without a tag; 3. from a ``{`` to the ``}`` that closes it;
    4. the whole text.
    """
    for candidates in (_fenced(text, "json"), _fenced(text, ""), _balanced(text), iter((text,))):
        for candidate in candidates:
            try:
                found = json.loads(candidate.strip())
            except (ValueError, RecursionError):
                continue
            if found is not None:
                return found
    return None


def _fenced(text: str, tag: str) -> Iterator[str]:
    """What stands between fences that open with ``tag``, one after the other."""
    at = text.find(_FENCE)
    while at >= 0:
        start = at + len(_FENCE)
        end = text.find(_FENCE, start)
        if end < 0:
            return
        head = text[start : start + len("json")]
        if tag and head.lower() == tag:
            yield text[start + len(tag) : end]
        elif not tag and head.lower() != "json":
            yield text[start:end]
        at = text.find(_FENCE, end + len(_FENCE))


def _balanced(text: str) -> Iterator[str]:
    """Each outermost part in braces. Braces in quoted texts don't count."""
    depth, start, quoted = 0, 0, False
    for token in _TOKEN.finditer(text):
        kind = token[0]
        if depth and kind == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif kind == "{":
            if not depth:
                start = token.start()
            depth += 1
        elif kind == "}" and depth:
            depth -= 1
            if not depth:
                yield text[start : token.end()]
