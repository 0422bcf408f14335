"""The words of episodes as both stores compare them: one way to take texts apart, one weight for a word.

A word is compared without case and accents and by its first letters, which does for several languages what a
stemmer does for one. An identifier also counts as its parts. Scripts without spaces are compared by pairs of
characters. A word that very many episodes have says nothing about one of them and is not searched for.
"""

from __future__ import annotations

import math
import re
import unicodedata
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..core.episodes import Episode

STEM: Final = 6  # first letters by which words are compared
LONGEST: Final = 40  # of one word; a digest or a token says nothing
MOST: Final = 400  # words of one episode
ASKED: Final = 40  # different words that one search looks for
COMMON: Final = 0.02  # a word is left out of a search when more episodes have it …
FEW: Final = 500  # … but not as long as they are so few
LOOKED_AT: Final = 5_000  # episodes of one search: after so many the more frequent words are left out
K1: Final = 1.2  # of Okapi BM25, by which SQLite scores; PostgreSQL is given the formula
B: Final = 0.75
_WORD: Final = re.compile(r"[^\W_]+(?:_+[^\W_]+)*")
_JOINT: Final = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_PART: Final = re.compile(r"[^\W\d_]+|\d+")
_NO_SPACES: Final = re.compile("[\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")


def of_episode(episode: Episode) -> list[str]:
    """The words by which an episode is found: the task's, the lesson's, and what it hung on."""
    named = [trigger.text for trigger in episode.triggers]
    return terms(" ".join((episode.query, episode.problem, episode.lesson, *named, *episode.files)))[:MOST]


def terms(text: str) -> list[str]:
    """The words of a text in order, as they are compared."""
    return [term for word in _WORD.findall(_plain(text)) for term in _terms(word)]


def asked(text: str) -> list[str]:
    """The different words of a search, the first ``ASKED`` of them."""
    return list(dict.fromkeys(terms(text)))[:ASKED]


def telling(counts: Mapping[str, int], total: int) -> list[str]:
    """Of the words that episodes have, those that say something, the rarest first. ``counts``: word → how
    many episodes have it.
    """
    found: list[str] = []
    left, most = LOOKED_AT, tells_up_to(total)
    for word in sorted((word for word, count in counts.items() if count), key=lambda word: counts[word]):
        left -= counts[word]
        if counts[word] <= most and (left >= 0 or not found):
            found.append(word)
    return found


def tells_up_to(total: int) -> int:
    """How many of ``total`` episodes may have a word that says something."""
    return max(FEW, int(COMMON * total))


def idf(count: int, total: int) -> float:
    """What a word weighs that ``count`` of ``total`` documents have; never less than nothing."""
    return max(math.log((total - count + 0.5) / (count + 0.5)), 1e-6) if total >= count else 1e-6


def _plain(text: str) -> str:
    """Without accents, each character in its plainest form. Case tells an identifier's parts apart, so it
    stays.
    """
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))


def _terms(word: str) -> Iterable[str]:
    if _NO_SPACES.search(word):
        return _pairs(word)
    whole = word.casefold().replace("_", "")
    parts = [part.casefold() for part in _PART.findall(_JOINT.sub("_", word))]
    if len(whole) > LONGEST:
        return ()
    if len(parts) < 2:
        return [whole[:STEM] if whole.isalpha() else whole]
    return [whole, *(part[:STEM] for part in parts if len(part) > 1)]


def _pairs(word: str) -> list[str]:
    found = []
    for run in _NO_SPACES.findall(word):
        found += [run[i : i + 2] for i in range(len(run) - 1)] or [run]
    rest = _NO_SPACES.sub(" ", word)
    return found + [term for other in rest.split() for term in _terms(other)]
