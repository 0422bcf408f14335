"""Groups what says the same, by words alone, and says which groups are worth a rule.

Two texts are alike when the words of one are among those of the other, in the same order, and nearly all of
them. So a word that stands in the place of another one ("tabs", "spaces") keeps them apart, and so do a
negation, another order, and what a text speaks against ("not npm"). Words that carry nothing and the endings
of words do not count. Pure; a group is found without comparing all of them.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

THRESHOLDS: Final = {"high": 1, "medium": 2, "low": 3}
"""In how many sessions a signal of this severity must have come up before a rule is suggested."""
QUOTES: Final = 3
ALIKE: Final = 0.6  # of the longer text's words, those that the shorter one has
SHORT: Final = 2  # words, of which none may differ
MAX_WORDS: Final = 60
_WORD: Final = re.compile(r"[^\W_][\w./@#+-]*[\w#+]|[^\W_]|`[^`]{1,80}`")
_APOSTROPHE: Final = re.compile("['\N{RIGHT SINGLE QUOTATION MARK}\N{MODIFIER LETTER APOSTROPHE}]")
_AGAINST: Final = re.compile(
    r"\b(?:instead of|rather than|in place of|(?:and|but) not|over(?= \w+$))\b|,\s{0,9}(?:not|never|no)\b"
)
NEGATIVE: Final = frozenset({
    "not", "no", "never", "dont", "doesnt", "avoid", "stop", "without", "cant", "cannot",
    "shouldnt", "mustnt", "nor", "refrain",
})  # fmt: skip
EMPTY: Final = frozenset({
    "use", "using", "a", "an", "the", "this", "that", "these", "those", "it", "its", "them", "there", "here",
    "please", "just", "always", "ever", "really", "actually", "simply", "only", "also", "again",
    "instead", "so", "then", "now", "i", "you", "we", "us", "our", "my", "your", "me", "is", "are",
    "be", "am", "was", "were", "been", "do", "does", "did", "will", "would", "should", "must",
    "shall", "can", "could", "have", "has", "had", "to", "of", "for", "in", "on", "at", "by", "as",
    "with", "from", "into", "and", "or", "but", "if", "any", "some", "all", "every", "each",
    "project", "repo", "repository", "codebase", "make", "sure", "remember", "want", "need", "like",
    "prefer", "rather", "future", "forward", "going", "time", "very",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Shape:
    """What counts when texts are compared: the words that carry something, each once, in order; what the
    text speaks against; whether it forbids.
    """

    words: tuple[str, ...]
    against: frozenset[str] = frozenset()
    negative: bool = False


@lru_cache(maxsize=8_192)
def shape_of(text: str) -> Shape:
    """The shape of an instruction. A text of words that carry nothing keeps them all."""
    plain = _APOSTROPHE.sub("", unicodedata.normalize("NFKC", text[:2_000]).casefold())
    found = _AGAINST.search(plain)
    positive, negated = (plain[: found.start()], plain[found.end() :]) if found else (plain, "")
    every = [w.strip("`") for w in _WORD.findall(positive)][:MAX_WORDS]
    kept = dict.fromkeys(stem(w) for w in every if w not in EMPTY and w not in NEGATIVE)
    words = tuple(kept)
    if not words:
        return Shape(tuple(every) or (plain.strip(),), frozenset(), negative=False)
    against = frozenset(stem(w.strip("`")) for w in _WORD.findall(negated)[:MAX_WORDS] if w not in EMPTY)
    return Shape(words, against, any(w in NEGATIVE for w in every))


def stem(word: str) -> str:
    """A word without its ending, so that "commit", "commits" and "committing" meet. Names stay as they
    are.
    """
    if not word.isalpha() or len(word) < 4:
        return word
    for ending in ("ing", "ed", "es", "s"):
        rest = word.removesuffix(ending)
        if rest != word and len(rest) >= 3 and not (ending == "s" and rest.endswith(("s", "u", "i"))):
            word = rest[:-1] if ending != "s" and rest[-1] == rest[-2] and rest[-1] not in "ls" else rest
            break
    return word[:-1] + "i" if word.endswith("y") else word.removesuffix("e") if len(word) > 3 else word


def alike(a: Shape, b: Shape) -> bool:
    """Whether two texts ask for the same."""
    if a == b:
        return True
    few, many = (a, b) if len(a.words) <= len(b.words) else (b, a)
    if a.negative != b.negative or (a.against and b.against and not a.against & b.against):
        return False
    if len(few.words) < len(many.words) and (
        len(few.words) <= SHORT or len(few.words) < ALIKE * len(many.words)
    ):
        return False
    rest = iter(many.words)
    return all(word in rest for word in few.words)


class Groups:
    """Texts by name, of which one that is alike to a given text is found without looking at all."""

    def __init__(self) -> None:
        self._shapes: dict[str, Shape] = {}
        self._order: dict[str, int] = {}
        self._same: defaultdict[tuple[str, ...], dict[str, None]] = defaultdict(dict)
        self._with: defaultdict[str, set[str]] = defaultdict(set)
        self._pairs: defaultdict[tuple[str, ...], dict[str, None]] = defaultdict(dict)
        self._pair: dict[str, tuple[str, ...]] = {}

    def put(self, name: str, text: str) -> None:
        """Add a text, or give ``name`` another one."""
        self.drop(name)
        shape = self._shapes[name] = shape_of(text)
        self._order.setdefault(name, len(self._order))
        self._same[shape.words][name] = None
        if len(shape.words) > SHORT:
            seldom = sorted(shape.words, key=lambda word: len(self._with[word]))[:2]
            pair = self._pair[name] = tuple(word for word in shape.words if word in seldom)
            self._pairs[pair][name] = None
            for word in shape.words:
                self._with[word].add(name)

    def drop(self, name: str) -> None:
        """Forget this text; nothing when it is not there."""
        shape = self._shapes.pop(name, None)
        if shape is None:
            return
        self._same[shape.words].pop(name, None)
        self._pairs[self._pair.pop(name, ())].pop(name, None)
        for word in shape.words:
            self._with[word].discard(name)

    def find(self, text: str) -> str:
        """The name of the text that was put first among those that are alike; "" when none is."""
        shape = shape_of(text)
        near = dict.fromkeys(self._same.get(shape.words, ()))
        if len(shape.words) > SHORT:
            near |= dict.fromkeys(self._longer(shape))
            # a shorter one has its words in this order, so its two seldom ones are two of these
            for pair in combinations(shape.words, 2):
                near |= self._pairs.get(pair, {})
        found = (name for name in near if alike(shape, self._shapes[name]))
        return min(found, key=self._order.__getitem__, default="")

    def _longer(self, shape: Shape) -> set[str]:
        """The names of texts that have all of these words."""
        nothing = set[str]()
        sets = sorted((self._with.get(word, nothing) for word in shape.words), key=len)
        return sets[0].intersection(*sets[1:])


def is_due(signal: Mapping[str, object]) -> bool:
    """Whether a signal of the journal came up in enough sessions to be suggested as a rule (FR3)."""
    if signal.get("status") != "pending" or signal.get("type") == "feedback":
        return False
    seen = signal.get("occurrences")
    return isinstance(seen, int) and seen >= THRESHOLDS[str(signal.get("severity"))]


def ranked(signals: Sequence[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """What is suggested first: severe before mild, often before seldom, new before old."""
    order = list(THRESHOLDS)
    new_first = sorted(signals, key=lambda s: str(s.get("last_seen")), reverse=True)
    return sorted(new_first, key=lambda s: (order.index(str(s["severity"])), -int(str(s["occurrences"]))))
