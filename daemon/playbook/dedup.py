"""Points that say the same become one: the first stays, with the sum of the counters.

Three comparisons, from sure to bold:

* ``same_words``, always: the same words in the same order, whatever the case, the punctuation, the endings
  of plurals, and words that carry nothing ("the", "please"). A negation or a number more is another text.
* ``words_alike``, where a threshold is asked for: as many words in common as the threshold says. Texts that
  differ in a negation or a number are never alike.
* ``by_meaning``, with a port that compares meanings (embeddings), which the caller passes in.

What is alike is so transitively: of A ~ B and B ~ C all three become A.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from .points import each, keep_only

if TYPE_CHECKING:
    from .points import Playbook, Point

Similar = Callable[[Sequence[str], float], Iterable[tuple[int, int]]]
"""The port: texts and a threshold (0 to 1) → pairs of indices of texts that are alike."""

THRESHOLD: Final = 0.85  # of the cosine of two meanings
_SAME_WORDS: Final = (
    0.5  # the share of words in common from which on meanings are not asked, because the others decide
)
_WORD: Final = re.compile(r"[^\W_]+")
_APOSTROPHE: Final = re.compile("['\N{RIGHT SINGLE QUOTATION MARK}]")
_EMPTY: Final = frozenset({"a", "an", "the", "please", "that", "always"})
_NEGATIONS: Final = frozenset({
    "not", "no", "never", "none", "without", "avoid", "dont", "doesnt", "cant", "cannot", "wont", "shouldnt",
    "mustnt", "isnt", "arent", "nor", "instead", "except", "unless", "only", "before", "after",
})  # fmt: skip
_ROUNDING: Final = 1e-9  # of a product with a threshold
_LEAST: Final = 4  # letters of a word whose plural ending counts for nothing


def folded(text: str) -> str:
    """The text without the difference of case, spaces and forms of one character."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def words(text: str) -> tuple[str, ...]:
    """The words that carry something, without plural endings. A text of other words only keeps them all."""
    found = _WORD.findall(_APOSTROPHE.sub("", folded(text)))
    return tuple(_singular(w) for w in found if w not in _EMPTY) or tuple(found) or (folded(text),)


def _singular(word: str) -> str:
    plural = len(word) > _LEAST and word.endswith("s") and not word.endswith(("ss", "us", "is"))
    return word[:-1] if plural else word


def same_words(texts: Sequence[str], threshold: float = 1.0) -> Iterator[tuple[int, int]]:
    """Texts of the same words in the same order (``Similar``)."""
    del threshold
    first: dict[tuple[str, ...], int] = {}
    for i, text in enumerate(texts):
        known = first.setdefault(words(text), i)
        if known != i:
            yield known, i


def words_alike(texts: Sequence[str], threshold: float) -> Iterator[tuple[int, int]]:
    """Texts whose words in common are at least the share ``threshold`` of all their words (``Similar``).

    Texts with other negations or numbers are never alike. Only texts that share one of their seldom words are
    compared, which loses no pair: that many words in common leave no room for others.
    """
    sets = [frozenset(words(text)) for text in texts]
    often = Counter(word for found in sets for word in found)
    decides = [_decisive(found) for found in sets]
    with_word: defaultdict[str, list[int]] = defaultdict(list)
    for i, found in enumerate(sets):
        seldom = sorted(found, key=lambda w: (often[w], w))
        prefix = seldom[: len(seldom) - math.ceil(threshold * len(seldom) - _ROUNDING) + 1]
        for j in {j for word in prefix for j in with_word[word]}:
            if min(len(found), len(sets[j])) + _ROUNDING < threshold * max(len(found), len(sets[j])):
                continue
            common = len(found & sets[j])
            if decides[i] == decides[j] and common + _ROUNDING >= threshold * (
                len(found) + len(sets[j]) - common
            ):
                yield j, i
        for word in prefix:
            with_word[word].append(i)


def by_meaning(similar: Similar) -> Similar:
    """``similar``, without the pairs on which meanings must not be asked (``Similar``).

    To a model for embeddings "run the tests before the build" and "run the build before the tests" are the
    same: it sees the words, hardly their order, and not which of them decides. So texts with half of their
    words in common never become one by their meaning, nor do texts that differ in a negation or a
    number, and a third text that is alike to both does not bring them together.
    """

    def careful(texts: Sequence[str], threshold: float) -> Iterator[tuple[int, int]]:
        sets = [frozenset(words(text)) for text in texts]

        def may(i: int, j: int) -> bool:
            if _decisive(sets[i]) != _decisive(sets[j]):
                return False
            return len(sets[i] & sets[j]) < _SAME_WORDS * len(sets[i] | sets[j])

        group = {i: [i] for i in range(len(texts))}
        for a, b in sorted(similar(texts, threshold)):
            if group[a] is group[b] or not all(may(i, j) for i in group[a] for j in group[b]):
                continue
            group[a] += group[b]
            for i in group[b]:
                group[i] = group[a]
            yield a, b

    return careful


def may_be_one(*texts: str) -> bool:
    """Whether no negation and no number tells these texts apart."""
    return len({_decisive(words(text)) for text in texts}) == 1


def together(*similar: Similar) -> Similar:
    """What any of these finds (``Similar``)."""
    return lambda texts, threshold: (pair for each_of in similar for pair in each_of(texts, threshold))


def _decisive(found: Iterable[str]) -> frozenset[str]:
    """Negations, numbers and what else is no plain word."""
    return frozenset(w for w in found if w in _NEGATIONS or not w.isalpha())


def deduplicate(
    playbook: Playbook, similar: Similar | None = None, threshold: float = THRESHOLD
) -> list[tuple[Point, tuple[Point, ...]]]:
    """Make points that say the same one point, in place. Returns each point that stayed, with those that are
    gone.

    ``similar`` compares what ``same_words`` leaves. Raises ``ValueError`` for a threshold that is not above 0
    and at most 1, and whatever ``similar`` raises; the playbook is unchanged then.
    """
    if not 0 < threshold <= 1:
        raise ValueError(f"a threshold is above 0 and at most 1, not {threshold}")
    points = [point for _, point in each(playbook)]
    texts = [point["text"] for point in points]
    joined = _Joined(len(points))
    for a, b in same_words(texts):
        joined.join(a, b)
    if similar is not None:
        left = [i for i in range(len(points)) if joined.first(i) == i]
        for a, b in list(similar([texts[i] for i in left], threshold)):
            joined.join(left[a], left[b])
    groups: dict[int, list[Point]] = {}
    for i, point in enumerate(points):
        if joined.first(i) != i:
            groups.setdefault(joined.first(i), []).append(point)
    for first, others in groups.items():
        for counter in ("helpful", "harmful"):
            points[first][counter] = sum(p.get(counter, 0) for p in (points[first], *others))
    if groups:
        keep_only(playbook, {id(p) for others in groups.values() for p in others})
    return [(points[first], tuple(others)) for first, others in groups.items()]


class _Joined:
    """Numbers in groups; each group is known by its first number."""

    def __init__(self, size: int) -> None:
        self._up = list(range(size))

    def first(self, i: int) -> int:
        while self._up[i] != i:
            self._up[i] = i = self._up[self._up[i]]
        return i

    def join(self, a: int, b: int) -> None:
        low, high = sorted((self.first(a), self.first(b)))
        self._up[high] = low
