"""Which statements a new rule contradicts (FR7), by words alone and in English.

Two statements contradict each other when they choose different things of one kind ("npm", "bun"), when one
forbids what the other asks for ("always", "never", "don't"; "add", "remove"), when they say the same with
another number, or in the other order ("before", "after"). It finds candidates for a person to decide on, who
can keep both: so it prefers one too many to one too few, but not for texts that merely share a topic. Pure. A
model can be asked for what words can't tell: it is passed in as a function.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from .alternatives import named
from .patterns import stem

if TYPE_CHECKING:
    from collections.abc import Iterator

Contradicts = Callable[[str, Sequence[str]], Iterable[int]]
"""The port: a new text and the texts that are there → the indices of those that it contradicts."""
_Order = tuple[frozenset[str], frozenset[str], bool]

MAX_CHARS: Final = 400  # of a statement; a longer one is a story
COVERED: Final = 0.75  # of the words of the shorter statement, those that the other one has
SHARED: Final = 0.5  # the same, of the longer one
_APOSTROPHE: Final = re.compile("['\N{RIGHT SINGLE QUOTATION MARK}\N{MODIFIER LETTER APOSTROPHE}]")
_CLAUSE: Final = re.compile(
    r"[;:!?()\u2013\u2014]+|,\s|\.(?:\s|$)|\s-\s|\bbut\b|\band (?=(?:never|not|dont|no|avoid|stop|without)\b)"
)
_FORBIDDEN: Final = re.compile(
    r"\b(?:is|are) (?:never|not) (?:allowed|permitted|ok|okay|acceptable|wanted|an option)\b"
    r"|\b(?:is|are) (?:forbidden|banned|prohibited|deprecated|disallowed|off[- ]limits)\b|\bmust not be\b"
)
_WORD: Final = re.compile(r"instead of|rather than|in place of|not only|[\w+#]+(?:[./+-][\w+#]+)*")
_FLIPS: Final = frozenset({
    "not", "no", "never", "dont", "doesnt", "cant", "cannot", "shouldnt", "mustnt", "nor", "without",
    "except", "avoid", "avoids", "avoiding", "stop", "refrain", "skip", "skipping", "omit", "exclude",
    "remove", "removing", "delete", "deleting", "drop", "disable", "forbid", "ban", "hide", "forget",
    "fail", "hesitate", "neglect", "instead of", "rather than", "in place of",
})  # fmt: skip
_CHOOSES: Final = frozenset({"prefer", "favor", "favour", "choose", "pick", "use", "like"})
_VERBS: Final = frozenset({
    "use", "using", "prefer", "favor", "favour", "choose", "pick", "write", "writing", "add", "adding",
    "create", "include", "including", "keep", "put", "make", "making", "have", "having", "leave",
    "insert", "enable", "allow", "show", "apply", "adopt", "go", "set", "stick", "insist", "like",
    "want", "try",
})  # fmt: skip
_EMPTY: Final = frozenset({
    "a", "an", "the", "this", "that", "these", "those", "it", "its", "them", "there", "here", "please",
    "just", "always", "ever", "really", "actually", "simply", "only", "also", "again", "instead", "so",
    "then", "now", "i", "you", "we", "us", "our", "my", "your", "me", "is", "are", "be", "am", "was",
    "were", "been", "do", "does", "did", "will", "would", "should", "must", "shall", "can", "could",
    "has", "had", "to", "of", "for", "in", "on", "at", "by", "as", "with", "from", "into", "and", "or",
    "if", "any", "some", "all", "every", "each", "more", "project", "repo", "repository", "codebase",
    "sure", "remember", "need", "longer", "not only", "over", "when", "than", "least", "most", "about",
    "up", "out", "new", "own", "other", "everything", "anything",
})  # fmt: skip
_FORBIDS: Final = "one forbids what the other asks for"
_SAID_SO: Final = "a model says that they contradict each other"
_NUMBER: Final = re.compile(r"(\d+(?:[.,]\d+)*)-?(.*)", re.DOTALL)
_WITHIN: Final = re.compile(r"\b(?:in|inside|within|for|on|from|(?<!instead )(?<!place )of) $")
_ORDER: Final = frozenset({"before", "after"})


@dataclass(frozen=True, slots=True)
class Statement:
    """Something that stands already. ``id``: of a learned rule. ``where``: the file and the line, such as
    ``CLAUDE.md:12``. ``own``: a person wrote it by hand, so it is never rewritten.
    """

    text: str
    id: str = ""
    where: str = ""
    own: bool = False


@dataclass(frozen=True, slots=True)
class Conflict:
    """A statement that a new rule contradicts, and why, in words for a person."""

    statement: Statement
    why: str


@dataclass(frozen=True, slots=True)
class _Stance:
    """What a text asks for. ``words``: word → whether it is wanted. ``choices``: (kind, which) → the same.
    ``numbers``: those in it. ``order``: what comes first, what after it, and whether that was said by
    forbidding the opposite.
    """

    words: Mapping[str, bool]
    choices: Mapping[tuple[str, int], bool]
    numbers: frozenset[str]
    order: _Order | None


def find(text: str, statements: Sequence[Statement], also: Contradicts | None = None) -> list[Conflict]:
    """The statements that ``text`` contradicts, in their order. ``also``: a model, where there is one."""
    found = {i: why for i, s in enumerate(statements) if (why := contradiction(text, s.text))}
    if also is not None:
        left = [i for i in range(len(statements)) if i not in found]
        named_too = set(also(text, [statements[i].text for i in left]))
        found |= {i: _SAID_SO for at, i in enumerate(left) if at in named_too}
    return [Conflict(statements[i], found[i]) for i in sorted(found)]


def contradiction(a: str, b: str) -> str:
    """Why two statements contradict each other; empty when they do not."""
    if max(len(a), len(b)) > MAX_CHARS:
        return ""
    one, two = _stance(a), _stance(b)
    return _choice(one, two) or _opposite(one, two) or _order(one, two) or _number(one, two)


def _choice(one: _Stance, two: _Stance) -> str:
    for kind in dict.fromkeys(kind for kind, _ in one.choices):
        yes, no = _chosen(one, kind)
        theirs, not_theirs = _chosen(two, kind)
        if yes & not_theirs or no & theirs:
            return _FORBIDS
        if yes and theirs and not yes & theirs:
            return f"they choose different {kind}"
    return ""


def _chosen(stance: _Stance, kind: str) -> tuple[set[int], set[int]]:
    """Which of this kind is wanted, and which is not. What a text wants as well as not counts for neither."""
    of = [(which, yes) for (k, which), yes in stance.choices.items() if k == kind]
    return {which for which, yes in of if yes}, {which for which, yes in of if not yes}


def _opposite(one: _Stance, two: _Stance) -> str:
    shared = one.words.keys() & two.words.keys()
    few, many = sorted((len(one.words), len(two.words)))
    if not shared or len(shared) < COVERED * few or len(shared) < SHARED * many:
        return ""
    if any(one.words[w] == two.words[w] for w in shared):
        return ""
    return _FORBIDS


def _order(one: _Stance, two: _Stance) -> str:
    if one.order is None or two.order is None:
        return ""
    (first, then, forbids), (their_first, their_then, they_forbid) = one.order, two.order
    if (first, then) != (their_then, their_first):
        return ""
    return "they ask for another order" if forbids == they_forbid else _FORBIDS


def _number(one: _Stance, two: _Stance) -> str:
    """Only where nothing else differs."""
    differ = one.numbers and two.numbers and not one.numbers & two.numbers
    return "they name another number" if differ and one.words and one.words == two.words else ""


@lru_cache(maxsize=8_192)
def _stance(text: str) -> _Stance:
    words: dict[str, bool] = {}
    choices: dict[tuple[str, int], bool] = {}
    numbers: set[str] = set()
    order, last = None, True
    for clause in _clauses(text):
        signed = _signed(clause, last)
        order = order or _split(signed)
        if order is not None:  # "never push before testing" says the same as "test before pushing"
            signed = [(at, word, True) for at, word, _ in signed]
        for at, kind, which in named(clause):
            yes = next((yes for start, _, yes in reversed(signed) if start <= at), True)
            if yes or not _WITHIN.search(clause[:at]):
                choices[kind, which] = yes
        for at, word, yes in signed:
            if not yes and _WITHIN.search(clause[:at]):
                continue  # "no `any` in TypeScript" is not against TypeScript
            number = _NUMBER.match(word)
            numbers |= {number[1]} if number else set()
            if rest := _plain(number[2] if number else word):
                words[rest] = yes
        last = signed[-1][2] if signed else last
    return _Stance(words, choices, frozenset(numbers), order)


def _clauses(text: str) -> Iterator[str]:
    plain = _APOSTROPHE.sub("", text.casefold().replace("`", " "))
    return (clause for clause in _CLAUSE.split(plain) if clause and clause.strip())


def _signed(clause: str, last: bool) -> list[tuple[int, str, bool]]:
    """(place, word, wanted) of each word. A clause without a verb and a negation goes on with the one before
    it ("never npm, yarn or pnpm"), whose ``last`` word was wanted or not.
    """
    forbidden = _FORBIDDEN.search(clause)
    if forbidden:
        clause = f"{clause[: forbidden.start()]}{' ' * len(forbidden[0])}{clause[forbidden.end() :]}"
    found = [(m.start(), m[0]) for m in _WORD.finditer(clause)]
    own = forbidden is not None or any(word in _VERBS or word in _FLIPS for _, word in found)
    yes, chooses = (forbidden is None if own else last), False
    signed = []
    for at, word in found:
        chooses = chooses or word in _CHOOSES
        if word in _FLIPS or (word == "over" and chooses):
            yes = not yes
        else:
            signed.append((at, word, yes))
    return signed


def _plain(word: str) -> str:
    """A word as it is compared; empty for one that carries nothing."""
    return "" if word in _EMPTY or word in _VERBS or word in _ORDER else stem(word)


def _split(signed: list[tuple[int, str, bool]]) -> _Order | None:
    """What comes first and what after it, where a clause says so."""
    at = next((i for i, (_, word, _) in enumerate(signed) if word in _ORDER), None)
    if at is None:
        return None
    left, right = (
        frozenset(plain for _, word, _ in part if (plain := _plain(word)))
        for part in (signed[:at], signed[at + 1 :])
    )
    if not left or not right:
        return None
    wanted = signed[at][2]
    ordered = (left, right) if (signed[at][1] == "before") == wanted else (right, left)
    return (*ordered, not wanted)
