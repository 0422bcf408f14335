"""What a message is to those who learn: a correction, an instruction, praise, blame, or none of them.

A message is read as a reaction to the agent's words before it. People react first, so only the first
sentences can be a reaction; an instruction for good may stand anywhere. In doubt it is none: a wrong rule
costs more than one that comes up again in another session. English by rules; a message in another language is
a candidate for a model (``flow``). Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from . import objections as obj
from .feedback import blame, is_polite, praise
from .grammar import (
    adds,
    asks,
    bare,
    begins_task,
    directs,
    dismisses,
    insists,
    is_about_self,
    is_candidate,
    is_soft,
    requests,
    shared,
)
from .journal import Severity
from .own import sentences, spoken
from .standing import standing
from .wording import instruction

if TYPE_CHECKING:
    from ..core.transcript import Said

Kind = Literal["correction", "instruction", "positive", "negative", "none"]
SURE: Final = 0.5  # from this confidence on it counts
_WHY_YOU: Final = re.compile(r"why (?:did|are|were|do|would|have) you\b")
_CLAUSES: Final = re.compile(r"[,:] | and | but ")
_STATES: Final = re.compile(r"(?:it|that|this|the|we|i|they|there)\b")
_USES: Final = re.compile(r"(?:use|never|always|don't|do not|keep)\b")
_ACTUALLY: Final = re.compile(r"(?:\w{2,10},? )?actually,? ")
_BUT: Final = re.compile(r"(?:but|however|though|except)\b")
_POINTS: Final = re.compile(r"\b(?:it|this|that|these|those|them|the|yet|now|above|below)\b")
DULL: Final = 0.95  # that a message is nothing when no rule speaks
MILD: Final = 0.65  # an instruction whose wording would also suit a requirement
REACTION: Final = 3  # sentences in which somebody reacts
FEW: Final = 3  # sentences of a message that says one thing
MANY_WORDS: Final = 120  # of a message that is a task, whatever else it says
PRIOR: Final = 6_000  # characters of the agent's words that are compared


@dataclass(frozen=True, slots=True)
class Reading:
    """What a message is. ``content``: the instruction in it, normalised; of praise and blame their own words;
    empty for none. ``confidence``: that it is of this type, 0 to 1.
    """

    type: Kind
    content: str = ""
    severity: Severity = "low"
    confidence: float = 0.0


class _Found(NamedTuple):
    """How sure something is, and the sentence in which it stands, by number."""

    confidence: float = 0.0
    at: int = 0


class _Facts:
    """A message and the agent's words before it, as the rules look at them."""

    def __init__(self, said: Said) -> None:
        self.said = said
        self.written = sentences(said.text)
        self.spoken = [spoken(s) for s in self.written]
        self.prior = said.prior[-PRIOR:].strip()

    @property
    def short(self) -> bool:
        """Whether it says about one thing."""
        return len(self.spoken) <= FEW

    @cached_property
    def answers(self) -> bool:
        """Whether the agent had asked something."""
        tail = self.prior.rstrip("*_) \n")
        return tail.endswith("?") or bool(re.search(r"\?[^.!?]{0,160}$", tail[-300:]))

    def overlap(self, text: str) -> int:
        """How many content words a text shares with what the agent said."""
        return shared(text, self.prior)


def read(said: Said) -> Reading:
    """What the message is."""
    facts = _Facts(said)
    if not facts.spoken or said.text.lstrip().startswith("/"):
        return Reading("none", confidence=1.0)
    if sum(len(s.split()) for s in facts.spoken) > MANY_WORDS:
        return Reading("none", confidence=0.6)
    corrected, ruled = _correction(facts), _instruction(facts)
    blamed, praised = _blame(facts), _praise(facts)
    best: tuple[Kind, _Found] = ("none", _Found())
    # an instruction for good is one also when it corrects, unless the reaction is plain
    readings: tuple[tuple[Kind, _Found], ...] = (
        ("correction", corrected),
        ("instruction", ruled),
        ("negative", blamed),
        ("positive", praised),
    )
    for of in readings:
        if of[1].confidence >= SURE and of[1].confidence > best[1].confidence:
            best = of
    kind, found = best
    if kind == "none":
        doubt = max(f.confidence for f in (corrected, ruled, blamed, praised))
        return Reading("none", confidence=round(min(DULL, 1 - doubt), 2))
    content = _content(facts, kind, found)
    if not content:
        return Reading("none", confidence=0.5)
    return Reading(kind, content, _severity(facts, kind, found), round(found.confidence, 2))


def is_doubtful(said: Said, reading: Reading) -> bool:
    """Whether a model should look at a message that the rules say nothing about."""
    if reading.type != "none" or reading.confidence >= 1.0:
        return False
    return is_candidate(said.text) or reading.confidence < 0.8 or bool(said.prior and not said.text.isascii())


def _correction(f: _Facts) -> _Found:
    best = _Found()
    for at, text in enumerate(f.spoken[:REACTION]):
        best = max(best, _Found(_corrects(f, text, at), at), key=lambda found: found.confidence)
        if requests(text) or (asks(text) and not _WHY_YOU.match(bare(text))):
            break  # what follows a question or a request belongs to it
    if best.confidence and not f.prior and not f.said.refusal:
        best = _Found(best.confidence - 0.25, best.at)
    if f.said.refusal and not asks(f.spoken[0]) and not dismisses(f.spoken[0]):
        best = max(best, _Found(0.8, 0))
    return best


def _corrects(f: _Facts, text: str, at: int) -> float:
    """How sure it is that the sentence objects to what the agent did or wants to do."""
    after = f.spoken[at + 1 : at + 3]
    if at < 2 and (rest := obj.refusal_of(text)) is not None:
        return _refuses(f, rest or (after[0] if after else ""))
    if requests(text):
        return _requests(f, text)
    if asks(text):
        wants = after and directs(after[0]) and not asks(after[0]) and not begins_task(after[0])
        return 0.7 if wants and _WHY_YOU.match(bare(text)) else 0.0
    if obj.said_before(text):
        return 0.85
    if obj.complains(text):
        return 0.8
    if obj.calls_wrong(text):
        return 0.8 if _says_how([*_CLAUSES.split(text)[1:], *after]) else 0.4
    if at < 2 and obj.undoes(text):
        return 0.65
    limits = at == 1 and begins_task(f.spoken[0])  # what to leave alone meanwhile
    if at < 2 and (obj.forbids(text) or obj.is_not_wanted(text)) and not (f.answers or limits):
        return _forbids(f, text)
    if not f.short:
        return 0.0
    if obj.is_too_much(text):
        more = [*_CLAUSES.split(text)[1:], *after[:1]]
        return 0.65 if any(directs(c) or obj.is_norm(c) for c in more if not asks(c)) else 0.35
    return 0.0 if f.answers or at > 1 else _replaces(f, text, at)


def _refuses(f: _Facts, rest: str) -> float:
    """After a "no": does it say what is wanted?"""
    if not rest:
        return 0.35
    if asks(rest) or dismisses(rest):
        return 0.2
    if blame(rest) >= SURE:
        return 0.0
    normative = obj.is_norm(rest) or obj.said_before(rest) or obj.rejected_in(rest) or obj.wants_other(rest)
    if is_about_self(rest) and not normative:
        return 0.4  # what they did or know
    if f.answers:
        return 0.75 if normative or _USES.match(bare(rest)) else 0.4
    return 0.85 if normative or directs(rest) or obj.complains(rest) else 0.6


def _requests(f: _Facts, text: str) -> float:
    """A polite "can you …": does it ask for something else than what the agent did?"""
    if not f.prior or f.answers or begins_task(text.partition(" you ")[2]):
        return 0.0
    if obj.forbids(text):
        return _forbids(f, text)
    return 0.6 if obj.wants_other(text) or obj.rejected_in(text) else 0.0


def _forbids(f: _Facts, text: str) -> float:
    """What not to do: something that the agent did or is about to do, or only a limit of the task?"""
    stops = text.startswith(("wait", "no", "stop", "hold"))
    if obj.is_for_now(text) and not stops:
        return 0.3
    return 0.75 if stops or f.overlap(text) else 0.5 if f.short else 0.3


def _says_how(clauses: list[str]) -> bool:
    """Whether one of these says what is right."""
    return any(
        directs(c) or obj.is_norm(c) or obj.wants_other(c) or _STATES.match(c) for c in clauses if not asks(c)
    )


def _replaces(f: _Facts, text: str, at: int) -> float:
    """What is to stand in the place of what the agent did or proposed."""
    if obj.wishes(text):
        return 0.7 if f.overlap(text) else 0.6
    if rejected := obj.rejected_in(text):
        if begins_task(text) or is_about_self(text):
            return 0.3
        return 0.8 if f.overlap(rejected) else 0.6 if f.overlap(text) or obj.is_norm(text) else 0.35
    if adds(text):
        return 0.0
    if obj.wants_other(text):
        return 0.4 if begins_task(text) else 0.7
    if obj.says_how_it_should_be(text):
        return 0.65 if f.prior else 0.0
    if obj.says_how_a_thing_should_be(text):
        return 0.55 if f.overlap(text) else 0.0
    if obj.wants_none(text):
        return 0.55 if f.prior else 0.0
    if at == 0 and (found := _ACTUALLY.match(text)) is not None:
        rest = text[found.end() :]
        wants = (
            directs(rest) or obj.is_norm(rest) or _STATES.match(rest) or rest.startswith(("let's", "i want"))
        )
        return 0.65 if wants and not dismisses(rest) and not asks(rest) else 0.3
    return 0.6 if f.said.interrupted and (directs(text) or obj.is_norm(text)) else 0.0


def _instruction(f: _Facts) -> _Found:
    alone = len(f.spoken) <= 2
    best = max(_Found(standing(text, alone=alone), at) for at, text in enumerate(f.spoken))
    first = f.spoken[0]
    if (
        not f.prior
        and len(f.spoken) == 1
        and best.confidence < SURE
        and obj.forbids(first)
        and not _POINTS.search(first)
    ):
        best = _Found(0.6)  # before any work was done, it is about all of it
    if (f.answers and len(f.spoken) == 1) or (f.prior and best.confidence <= MILD):
        return _Found(best.confidence - 0.15, best.at)  # what was asked, or what the work at hand still needs
    return best


def _blame(f: _Facts) -> _Found:
    if not f.prior or f.answers:
        return _Found()
    first = [(at, text) for at, text in enumerate(f.spoken[:2]) if not asks(text)]
    clauses = [(at, part) for at, text in first for part in _CLAUSES.split(text)]
    return max((_Found(blame(part), at) for at, part in (*first, *clauses)), default=_Found())


def _praise(f: _Facts) -> _Found:
    if not f.prior or any(_BUT.match(s) for s in f.spoken[1:3]):
        return _Found()
    alone = len(f.spoken) == 1 or all(praise(s, alone=True) for s in f.spoken[:3])
    at = 1 if len(f.spoken) > 1 and is_polite(f.spoken[0]) else 0
    return _Found(praise(f.spoken[at], alone=alone), at)


def _content(f: _Facts, kind: Kind, found: _Found) -> str:
    if kind in {"positive", "negative"}:
        return " ".join(f.written[found.at].split())[:300]
    return instruction(f.written, found.at)


def _severity(f: _Facts, kind: Kind, found: _Found) -> Severity:
    """How much a person means it, by their words and by what came before (FR3)."""
    text = " ".join(f.spoken[: found.at + 2])
    if kind == "positive":
        return "medium" if "remember" in text else "low"
    if kind == "negative":
        return "medium"
    if insists(text) or _shouts(f.written[found.at]):
        return "high"
    return "low" if is_soft(text) or found.confidence < 0.6 else "medium"


def _shouts(sentence: str) -> bool:
    loud = re.findall(r"\b[A-Z]{3,}\b", sentence)
    return len(loud) >= 3 or sentence.endswith("!!")
