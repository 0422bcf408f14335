"""One question to a model: its prompt, the form of its answer, and how a reply is read.

A pipeline names its question and gets a struct back. Nonce, second try, budget, ledger and dead letters are
handled here and in the engine::

    class Said(Struct, kw_only=True):   # the fields in the order in which the model shall write them
        reasons: str = ""
        nonce: str = ""                 # the marker that a reply in prose must repeat
        stuck: bool                     # without a default: a reply that lacks it has not the form
    question = Question("stuck", {"request": ..., "reply": ...}, Said, model=case.model, max_tokens=500)
    answer = await asking.ask(question, session, 60.0)   # engine.asking and api.asking: ``ask``
    answer.reply    # Said, or None; then answer.why says what failed. answer.cost, .model, .bad ...

A flow of several questions is a generator: ``answer = yield from ask(question, texts)`` each time, and
``asking.run(flow, session, 60.0)``. Tests drive it by hand with ``Reply`` values.

Templates: of ``NAME`` and ``NAME_case`` the first is the system prompt; of ``NAME`` alone, the lines before
its first slot. With ``NAME_again`` a reply of a wrong form is asked for once more. Of the objects in a reply
in prose the *last* one with the marker counts, found in linear time: the data may echo such an object (I27).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Mapping
from typing import Any, Final, Generic, TypeVar, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from .errors import BadReply, Unavailable
from .evidence import Evidence
from .guards import Skip
from .llm import Prompt, Reply, Tier, Usage
from .policy import POLICIES
from .transcript import Model

R = TypeVar("R")
Texts = Mapping[str, str]
"""The prompts in force, by name."""
TRIES: Final = 2
PARTS: Final = 500  # items of one list
WHY_CHARS: Final = 300
SCAN_CHARS: Final = 256 * 1024
SCAN_TRIES: Final = 64
REPAIR_CHARS: Final = 4_096
_TRAILING: Final = re.compile(r",\s{0,64}([\]}])")
_ANCHOR: Final = re.compile(r'\{\s{0,64}"')
_ITEM: Final = re.compile(r"`\$\.(\w{1,60})\[(\d{1,6})\]")  # where msgspec says that a value is wrong
_DECODER: Final = json.JSONDecoder()


class Question(Struct, Generic[R], frozen=True):
    """One question. ``template``: the prompt's name. ``slots``: the data; a slot that the template lacks is
    left out, and the nonce need not be among them. ``form``: a struct, or ``str`` for the reply's whole text.

    ``purpose``: says who answers and what it is paid from (``core.policy``); the template's name where none
    is given. ``rules``: the template that is the system prompt, where the name alone does not say it.
    ``check``: why a reply can't be used, "" where it can. ``parts``: whether list items of another form are
    left out, of the first ``PARTS``; else they break the form of the whole. ``find``: how the object is found
    in prose, where no marker is asked for. ``again``: why this question is put once more; then there is no
    second try. ``model``, ``wanted``, ``evidence``, ``temperature``: see ``Prompt``.
    """

    template: str
    slots: Mapping[str, str]
    form: type[R]
    purpose: str = ""
    max_tokens: int = 1_500
    tier: Tier = "fast"
    nonce: str = ""
    session: str = ""
    model: Model | None = None
    rules: str = ""
    check: Callable[[R], str] = lambda _: ""
    parts: bool = False
    find: Callable[[str], object] | None = None
    again: str = ""
    temperature: float | None = 0.0
    wanted: str = ""
    evidence: Evidence | None = None

    def prompt(self, texts: Texts, again: str = "") -> Prompt:
        """The prompt. ``again``: why it is asked once more."""
        purpose, values, name = (
            self.purpose or self.template,
            {"nonce": self.nonce, **self.slots},
            self.template,
        )
        if f"{name}_case" in texts:
            system, text = texts[name], fill(texts[f"{name}_case"], values)
        elif self.rules:
            system, text = texts[self.rules], fill(texts[name], values)
        else:
            system, text = divided(texts[name], values)
        if again:
            text = fill(texts[f"{name}_again"], {"case": text, "nonce": self.nonce, "why": again})
            purpose = f"{purpose}.again" if f"{purpose}.again" in POLICIES else purpose
        return Prompt(
            purpose=purpose,
            tier=self.tier,
            system=fill(system, {"nonce": self.nonce}),
            text=text,
            session=self.session,
            model=self.model,
            nonce=self.nonce,
            evidence=self.evidence,
            schema=schema_of(self.form) if self.form is not str else None,
            max_tokens=self.max_tokens,
            temperature=self.temperature,
            wanted=self.wanted,
        )

    def read(self, reply: Reply) -> R:
        """The answer in ``reply``. Raises ``BadReply``."""
        if self.form is str:
            found = cast("R", reply.text.strip())
        else:
            found = self._converted(self._object(reply), reply)
        if why := self.check(found):
            raise BadReply(why, raw=reply.text)
        return found

    def _object(self, reply: Reply) -> Mapping[str, Any]:
        data: object = reply.data
        if data is None and self.find is not None:
            data = self.find(reply.text)
        elif data is None:
            data = object_in(reply.text, self.nonce, keys_of(self.form))
        if not isinstance(data, dict):
            raise BadReply(f"the reply holds no {self.template} object", raw=reply.text)
        return data

    def _converted(self, data: Mapping[str, Any], reply: Reply) -> R:
        most = PARTS if self.parts else None  # each item that is left out takes a look at the whole
        left = {k: v[:most] if isinstance(v, list) else v for k, v in data.items()}
        while True:
            try:
                return msgspec.convert(left, self.form)
            except msgspec.ValidationError as e:
                item = _ITEM.search(str(e)) if self.parts else None
                if item is None:
                    why = f"the {self.template} object is not of the agreed form: {e}"
                    raise BadReply(why, raw=reply.text or str(data)) from None
                del left[item[1]][int(item[2])]


class BadForm(Struct, frozen=True):
    """A reply that broke the form: kept as a dead letter (I48)."""

    purpose: str
    provider: str
    model: str
    why: str
    raw: str


class Answer(Struct, Generic[R], frozen=True):
    """The end of a question. ``why``: the failure, then there is no ``reply``. ``prompts``, ``replies``: the
    exchange. ``bad``: unreadable replies. ``limit``: the cap on spending that forbade it.
    """

    reply: R | None = None
    why: str = ""
    nonce: str = ""
    prompts: tuple[Prompt, ...] = ()
    replies: tuple[Reply, ...] = ()
    bad: tuple[BadForm, ...] = ()
    limit: Skip | None = None

    @property
    def provider(self) -> str:
        return self.replies[-1].provider if self.replies else ""

    @property
    def model(self) -> str:
        return self.replies[-1].model if self.replies else ""

    @property
    def usage(self) -> Usage:
        return self.replies[-1].usage if self.replies else Usage()

    @property
    def cost(self) -> float | None:
        """The sum of all costs where all are known (I41: unknown is never zero)."""
        return cost_of(self.replies)


def cost_of(replies: tuple[Reply, ...]) -> float | None:
    """The sum of the costs, None where one is unknown or nobody answered."""
    known = [r.usage.cost for r in replies if r.usage.cost is not None]
    return sum(known) if known and len(known) == len(replies) else None


def ask(question: Question[R], texts: Texts) -> Generator[Prompt, Reply, Answer[R]]:
    """Ask, and once more where the form was broken and the template has a second try. Never raises for what
    a model does. The fixed rules answer ``{"unscored": why}`` where nothing is proven: that ends it.
    """
    prompts: list[Prompt] = []
    replies: list[Reply] = []
    bad: list[BadForm] = []

    def ended(found: R | None, why: str = "") -> Answer[R]:
        return Answer(found, why, question.nonce, tuple(prompts), tuple(replies), tuple(bad))

    tries = TRIES if f"{question.template}_again" in texts and not question.again else 1
    why, again = "", question.again
    for _ in range(tries):
        prompts.append(prompt := question.prompt(texts, again))
        reply = Reply("", "")
        try:
            reply = yield prompt
            replies.append(reply)
            if reply.data is not None and "unscored" in reply.data:
                return ended(None, str(reply.data["unscored"])[:WHY_CHARS])
            return ended(question.read(reply))
        except Unavailable as e:
            return replace(ended(None, f"no model answered: {e}"), limit=e.limit)
        except BadReply as e:
            why = str(e)
            again = f"The reply could not be used: {why[:WHY_CHARS]}."
            bad.append(BadForm(prompt.purpose, reply.provider, reply.model, why, e.raw or reply.text))
    return ended(None, why)


# Templates


def fill(template: str, values: Mapping[str, str]) -> str:
    """``template`` with each ``{name}`` of ``values`` replaced, in one pass: braces in the data and in JSON
    stay. ``files.prompts`` refuses a template that lacks a slot.
    """
    pattern = re.compile("|".join(re.escape("{" + name + "}") for name in values) or r"(?!)")
    return pattern.sub(lambda m: values[m.group()[1:-1]], template)


def divided(template: str, values: Mapping[str, str]) -> tuple[str, str]:
    """(system prompt, data): the lines before the first placeholder, for a cache; the rest, filled in."""
    slots = [at for name in values if (at := template.find("{" + name + "}")) >= 0]
    start = template.rfind("\n", 0, min(slots, default=0)) + 1
    return template[:start].strip(), fill(template[start:], values)


# Forms


def keys_of(form: type) -> tuple[str, ...]:
    """The fields of a struct that a reply must have."""
    return tuple(f.encode_name for f in msgspec.structs.fields(form) if f.required)


def schema_of(form: type) -> dict[str, object]:
    """The JSON Schema for strict structured output: objects are closed, all fields required."""
    (schema,), parts = msgspec.json.schema_components([form])
    return _closed(schema, parts)


def _closed(schema: Mapping[str, Any], parts: Mapping[str, Any]) -> dict[str, object]:
    if "anyOf" in schema and "enum" not in schema:  # of a field's own menu the order stays
        schema = next((s for s in schema["anyOf"] if "$ref" in s), schema["anyOf"][0])
    if "$ref" in schema:
        schema = parts[schema["$ref"].rpartition("/")[2]]
    if "enum" in schema:
        return {"type": "string", "enum": schema["enum"]}
    if "items" in schema:
        return {"type": "array", "items": _closed(schema["items"], parts)}
    if "properties" not in schema:
        return {"type": schema["type"]}
    fields = {name: _closed(each, parts) for name, each in schema["properties"].items()}
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


# The object in a reply in prose


def object_in(text: str, nonce: str, keys: tuple[str, ...]) -> dict[str, Any] | None:
    """The last object with ``keys`` and the nonce, of ``SCAN_TRIES`` from the end; else a repaired one."""
    tail = text[-SCAN_CHARS:]
    starts = [m.start() for m in _ANCHOR.finditer(tail)][-SCAN_TRIES:]
    for start in reversed(starts):
        if (found := _decoded(_DECODER, tail, start, nonce, keys)) is not None:
            return found
    return _repaired(text[-REPAIR_CHARS:], nonce, keys)


def _repaired(tail: str, nonce: str, keys: tuple[str, ...]) -> dict[str, Any] | None:
    """One repair of a short span: commas before a closing bracket, raw line ends in texts."""
    first = _ANCHOR.search(tail)
    if first is None:
        return None
    span = _TRAILING.sub(r"\1", tail[first.start() :])
    return _decoded(json.JSONDecoder(strict=False), span, 0, nonce, keys)


def _decoded(
    decoder: json.JSONDecoder, text: str, at: int, nonce: str, keys: tuple[str, ...]
) -> dict[str, Any] | None:
    try:
        found, _ = decoder.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or any(key not in found for key in keys):
        return None
    return found if not nonce or found.get("nonce") == nonce else None


def as_quoted(text: str) -> str:
    """A quote, or its source, for comparison: without case, line breaks and outer marks."""
    return " ".join(text.strip(" \n\"'“”`.").casefold().split())
