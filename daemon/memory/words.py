"""What a text about a task is made of, for comparing it with others: terms, names in code, errors, paths.

Terms are what words mean (``lexicon``), else their beginnings, so that inflections and languages meet. Names
are kept whole besides: who writes ``PaymentService.charge`` means that and nothing like it. Bounded and
linear in the length of the text.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from .lexicon import ACTIONS, BEGINNINGS, EMPTY, LONG, WHOLE

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_READ: Final = 4_000  # characters of a text
STEM: Final = 6  # letters that tell an unknown word from others, whatever its ending
_TOKEN: Final = re.compile(r"[^\W_](?:[\w.:/@#$\\-]*\w)?[#+]{0,2}")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_PART: Final = re.compile(r"[^\W_]+")
_MARKED: Final = re.compile(r"`([^`\n]{2,80})`")
_ERROR: Final = re.compile(
    r"\b(?:\w{1,40}\.){0,6}[A-Z]\w*(?:Error|Exception|Warning|Fault|Timeout|Panic)\b|\bE[A-Z]{4,20}\b|\bE\d{3,4}\b"
    r"|\b(?:TS|CS|SQLSTATE ?|HTTP ?)\d{3,5}\b|\bSIG[A-Z]{3,5}\b"
)
_EXTENSION: Final = re.compile(r"\.[a-z][a-z0-9]{0,4}$")
_APOSTROPHES: Final = str.maketrans({"\N{RIGHT SINGLE QUOTATION MARK}": "'", "`": " "})


@dataclass(frozen=True, slots=True)
class Read:
    """A text, read. ``terms``: each once, in order. ``actions``: those that say what is to be done.
    ``names``: identifiers, files and errors as they are written, folded. ``errors``: the errors of these.
    """

    terms: tuple[str, ...]
    actions: frozenset[str]
    names: frozenset[str]
    errors: frozenset[str]


@lru_cache(maxsize=4_096)
def read(text: str) -> Read:
    """Read a text; only its beginning when it is very long."""
    text = text[:MAX_READ].translate(_APOSTROPHES)
    tokens = [_token(token) for token in _TOKEN.findall(text)]
    terms = dict.fromkeys(term for of, _ in tokens for term in of)
    names = frozenset(name for _, of in tokens for name in of)
    errors = frozenset(e.casefold().replace(" ", "") for e in _ERROR.findall(text))
    return Read(tuple(terms), frozenset(terms) & ACTIONS, names | errors, errors)


@lru_cache(maxsize=16_384)
def _token(token: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The terms and the names of a token. Remembered: the same words come again in every text."""
    return tuple(_terms(token)), tuple(_names(token))


def _terms(token: str) -> Iterator[str]:
    for piece in _PART.findall(_CAMEL.sub(" ", token)):
        word = folded(piece)
        if word not in EMPTY:
            yield from _meanings(word)


@lru_cache(maxsize=16_384)
def _meanings(word: str) -> tuple[str, ...]:
    """The concepts of a word, of both halves of a compound, else its beginning."""
    if word in WHOLE:
        return (WHOLE[word],)
    for end in range(len(word), LONG - 1, -1):
        concept = BEGINNINGS.get(word[:end])
        if concept is not None:
            rest = word[end:]
            tails = (rest, rest[1:], rest[2:]) if len(rest) >= 4 else ()  # linking letters
            found = (m for tail in tails if (m := WHOLE.get(tail) or _begins(tail)))
            second = next(found, None)
            return (concept,) if second is None or second == concept else (concept, second)
    return (word[:STEM],)


def _begins(word: str) -> str | None:
    ends = range(len(word), LONG - 1, -1)
    return next((BEGINNINGS[word[:end]] for end in ends if word[:end] in BEGINNINGS), None)


def _names(token: str) -> Iterator[str]:
    bare = token.strip(".:")
    if is_name(bare):
        yield bare.casefold()
        yield bare.replace("\\", "/").rsplit("/", 1)[-1].casefold()


def is_name(token: str) -> bool:
    """Whether a word is a name in code: of a file, a function, a constant."""
    if len(token) < 3 or not any(c.isalpha() for c in token):
        return False
    inner = token[1:]
    return (
        "_" in token
        or "::" in token
        or ("/" in token and not token.endswith("/"))
        or bool(_EXTENSION.search(token))
        or (any(c.isupper() for c in inner) and any(c.islower() for c in token))
        or (any(c.isdigit() for c in inner) and token[0].isalpha())
    )


def folded(text: str) -> str:
    """Without the difference of case and accents."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", text.casefold())
    return "".join(c for c in plain if not unicodedata.combining(c))
