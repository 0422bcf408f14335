"""A model's reply → the one JSON object it was asked for; and what was asked and answered on the way.

Structured output is taken as it is. From prose, the *last* object with the wanted keys and the call's nonce
counts, found in a bounded scan in linear time: the text that was judged may echo such an object (I27). What
can't be read raises ``BadReply`` with the raw text. Never says what the object means: each flow does.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Generic, TypeVar, cast

from .errors import BadReply, Unavailable
from .llm import Prompt, Reply, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

SCAN_CHARS: Final = 256 * 1024
SCAN_TRIES: Final = 64
REPAIR_CHARS: Final = 4_096
_TRAILING: Final = re.compile(r",\s{0,64}([\]}])")
_ANCHOR: Final = re.compile(r'\{\s{0,64}"')
_DECODER: Final = json.JSONDecoder()
T = TypeVar("T")


def wanted_object(reply: Reply, nonce: str, *keys: str, what: str = "verdict") -> Mapping[str, object]:
    """The object of the agreed form in ``reply``. Raises ``BadReply``; ``what`` is how its message names it.

    ``nonce``: must be echoed by a reply in prose, when given. ``keys``: what the object must have at least.
    """
    data = reply.data if reply.data is not None else _last_object(reply.text, nonce, keys)
    data = data if data is not None else _repaired(reply.text, nonce, keys)
    if data is None:
        raise BadReply(f"the reply holds no {what} object", raw=reply.text)
    return data


def as_quoted(text: str) -> str:
    """A quote, or the text that it is from, without what a model may change in it: case, line breaks, and
    marks at its ends.
    """
    return " ".join(text.strip(" \n\"'“”`.").casefold().split())


def _repaired(text: str, nonce: str, keys: tuple[str, ...]) -> Mapping[str, object] | None:
    """One repair of a short span: commas before a closing bracket, raw line ends in texts."""
    starts = [m.start() for m in _ANCHOR.finditer(text[-REPAIR_CHARS:])]
    if not starts:
        return None
    span = _TRAILING.sub(r"\1", text[-REPAIR_CHARS:][starts[0] :])
    try:
        found, _ = json.JSONDecoder(strict=False).raw_decode(span)
    except (ValueError, RecursionError):
        return None
    return found if _wanted(found, nonce, keys) else None


def _wanted(found: object, nonce: str, keys: tuple[str, ...]) -> bool:
    if not isinstance(found, dict) or any(key not in found for key in keys):
        return False
    return not nonce or found.get("nonce") == nonce


def _last_object(text: str, nonce: str, keys: tuple[str, ...]) -> Mapping[str, object] | None:
    """The last object with ``keys`` and the nonce, at most ``SCAN_TRIES`` places from the end."""
    tail = text[-SCAN_CHARS:]
    starts = [m.start() for m in _ANCHOR.finditer(tail)][-SCAN_TRIES:]
    for start in reversed(starts):
        try:
            found, _ = _DECODER.raw_decode(tail, start)
        except (ValueError, RecursionError):
            continue
        if _wanted(found, nonce, keys):
            return cast("Mapping[str, object]", found)
    return None


@dataclass(frozen=True, slots=True)
class BadForm:
    """A reply that broke the form: kept as a dead letter (I48)."""

    purpose: str
    provider: str
    model: str
    why: str
    raw: str


@dataclass(slots=True)
class Talk:
    """What one flow asked and was answered so far. ``why``: what was wrong with the last bad reply."""

    prompts: list[Prompt] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    bad: list[BadForm] = field(default_factory=list)
    why: str = ""

    def ask(self, prompt: Prompt) -> Generator[Prompt, Reply, Reply | None]:
        """One call; None when its answer was cut off or otherwise useless, with the reason in ``why``."""
        self.prompts.append(prompt)
        try:
            reply = yield prompt
        except BadReply as e:
            self.broke(Reply(e.raw, "", ""), prompt, e)
            return None
        self.replies.append(reply)
        return reply

    def broke(self, reply: Reply, prompt: Prompt, error: BadReply) -> None:
        """Keep a reply that broke the form."""
        self.why = str(error)
        raw = error.raw or reply.text
        self.bad.append(BadForm(prompt.purpose, reply.provider, reply.model, str(error), raw))

    @property
    def by(self) -> tuple[str, str]:
        """(provider, model) of the first reply, empty when nobody answered."""
        return (self.replies[0].provider, self.replies[0].model) if self.replies else ("", "")

    @property
    def cost(self) -> float | None:
        """The sum of all costs where all are known."""
        known = [r.usage.cost for r in self.replies if r.usage.cost is not None]
        return sum(known) if known and len(known) == len(self.replies) else None


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """How one question ended. ``why``: what failed; then nothing was ``found``."""

    found: T | None = None
    why: str = ""
    provider: str = ""
    model: str = ""
    usage: Usage = field(default_factory=Usage)
    bad: tuple[BadForm, ...] = ()


def answered(prompt: Prompt, read: Callable[[Reply], T]) -> Generator[Prompt, Reply, Answer[T]]:
    """One call, and what ``read`` makes of its reply; it raises ``BadReply``. Nothing is asked twice."""
    talk = Talk()
    try:
        reply = yield from talk.ask(prompt)
    except Unavailable as e:
        return Answer(why=f"no model answered: {e}")
    if reply is not None:
        try:
            return Answer(read(reply), "", reply.provider, reply.model, reply.usage)
        except BadReply as e:
            talk.broke(reply, prompt, e)
    return Answer(why=talk.why, bad=tuple(talk.bad))
