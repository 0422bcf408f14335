"""A person's consent inside a host: the form of our questions, of their answers, and of typed commands.

A question counts only if it is, byte for byte, the one that reflectd made: its text, its heading, each option
and nothing else. So both sides compare digests, and nobody keeps the text of anybody's questions. Pure.
Payloads of another form give nothing, and nothing here raises.
"""

from __future__ import annotations

import json
import re
from hashlib import sha256
from typing import Any, Final, NamedTuple

from msgspec import Struct

MARK: Final = re.compile(r"\(reflectd ([0-9a-f]{12})\)\Z")
"""The end of each question of ours: its token."""
COMMAND_MARK: Final = "<!-- reflectd:reflect -->"
"""The beginning of our command's text, which identifies it under any name."""
MAX_QUESTIONS: Final = 4  # in one dialog, by Claude Code's tool
MAX_CHARS: Final = 4_000  # of one text
MAX_TYPED: Final = 20_000
VERBS: Final = ("learn", "unlearn")
"""The actions of `/reflect` that change something and take words."""
TYPED: Final = "typed"
FLAGS: Final = ("--soft", "--delete")
_QUOTES: Final = {'"': '"', "'": "'", "“": "”", "«": "»", "„": "“"}
_WORD: Final = re.compile(r"\S+")


class Question(Struct, frozen=True):
    """A question of ours. ``options``: each label with what it means."""

    text: str
    header: str
    options: tuple[tuple[str, str], ...]

    @property
    def digest(self) -> str:
        return _digest([self.text, self.header, [list(option) for option in self.options]])

    def form(self, several: str) -> dict[str, Any]:
        """The form for a host's question tool. ``several``: its key for multiple choice; "" leaves it out."""
        options = [{"label": label, "description": about} for label, about in self.options]
        asked = {"question": self.text, "header": self.header, "options": options}
        return {**asked, several: False} if several else asked


class Shown(NamedTuple):
    """A question as a host showed it: its digest, and the labels that could be chosen."""

    digest: str
    labels: tuple[str, ...]


class Chosen(NamedTuple):
    """A person's answer to the question with this digest. ``label``: the option, "" for words of their own;
    ``TYPED`` for a command that they typed, with the digest of its wish.
    """

    digest: str
    label: str


def shown(questions: object) -> tuple[Shown, ...]:
    """The questions of a dialog if all are ours; a foreign one beside them could mislead."""
    if not isinstance(questions, list) or not 0 < len(questions) <= MAX_QUESTIONS:
        return ()
    found = [_shown(question) for question in questions]
    return tuple(f for f in found if f is not None) if None not in found else ()


def chosen(questions: tuple[Shown, ...], answers: object) -> tuple[Chosen, ...]:
    """The labels chosen for these questions, in their order; () when one is missing."""
    if not isinstance(answers, list) or len(answers) != len(questions):
        return ()
    found: list[Chosen] = []
    for question, labels in zip(questions, answers, strict=True):
        if not isinstance(labels, list) or len(labels) != 1 or not isinstance(labels[0], str):
            return ()
        found.append(Chosen(question.digest, labels[0] if labels[0] in question.labels else ""))
    return tuple(found)


def chosen_by_text(questions: object, answers: object) -> tuple[Chosen, ...]:
    """The same where the answers are an object with the questions' texts as keys."""
    known = shown(questions)
    if not known or not isinstance(questions, list) or not isinstance(answers, dict):
        return ()
    if len(answers) != len(known):
        return ()
    return chosen(known, [[answers.get(question["question"])] for question in questions])


def _shown(question: object) -> Shown | None:
    match question:
        case {"question": str(text), "header": str(header), "options": [_, _, *_] as options, **more}:
            pairs = [_pair(option) for option in options]
            several = {key: value for key, value in more.items() if value is not None}
            ours = len(text) <= MAX_CHARS and MARK.search(text) is not None
            if not ours or None in pairs or len(pairs) > MAX_QUESTIONS:
                return None
            if several not in ({}, {"multiSelect": False}, {"multiple": False}):
                return None
            return Shown(_digest([text, header, pairs]), tuple(pair[0] for pair in pairs if pair))
    return None


def _pair(option: object) -> list[str] | None:
    match option:
        case {"label": str(label), "description": str(about), **more} if not more:
            return [label, about] if max(len(label), len(about)) <= MAX_CHARS else None
    return None


class Wish(Struct, frozen=True):
    """A person's wish in their own words: an action with its words and flags."""

    verb: str
    words: str
    flags: frozenset[str] = frozenset()

    @property
    def digest(self) -> str:
        return _digest(["typed", self.verb, self.words, sorted(self.flags)])


def wish(verb: str, words: str, *flags: str) -> Wish:
    """The normal form of the words: single blanks, no quotes around the whole."""
    said = " ".join(words.split())
    for begin, end in _QUOTES.items():
        inside = said[len(begin) : -len(end)]
        if len(said) > 2 and said.startswith(begin) and said.endswith(end) and not {begin, end} & set(inside):
            said = inside.strip()
            break
    return Wish(verb, said, frozenset(flags))


def typed(arguments: str) -> Wish | None:
    """The wish that a person typed behind `/reflect`, flags at both ends; None when it changes nothing."""
    verb, _, rest = arguments[:MAX_TYPED].strip().partition(" ")
    words = [m.span() for m in _WORD.finditer(rest)]
    flags: set[str] = set()
    while words and rest[slice(*words[0])] in FLAGS:
        flags.add(rest[slice(*words.pop(0))])
    while words and rest[slice(*words[-1])] in FLAGS:
        flags.add(rest[slice(*words.pop())])
    text = rest[words[0][0] : words[-1][1]] if words else ""
    if verb not in VERBS or not text:
        return None
    return wish(verb, text, *flags)


def _digest(value: object) -> str:
    said = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return sha256(said.encode("utf-8", "surrogatepass")).hexdigest()
