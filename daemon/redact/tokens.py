"""Finds tokens by their shape: the prefixes that vendors publish, JSON web tokens, hashes of passwords, and
random text as long as a bare cloud key (I46).

Only runs of 16 or more characters are looked at.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from .tables import pattern, rows
from .text import Span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .text import Text

LEAST: Final = 16  # characters of a run
RUN_COST: Final = 2  # see ``Text.affords``


def _shapes() -> list[tuple[str, str, str]]:
    """Prefix, kind and tail of all shapes, the longest prefix first."""
    tails = dict(rows("tokens.tails"))
    found = [
        (prefix, kind, tails[tail]) for kind, tail, *prefixes in rows("tokens.vendors") for prefix in prefixes
    ]
    found += [(prefix, kind, tail) for kind, tail, *prefixes in rows("tokens.others") for prefix in prefixes]
    return sorted(found, key=lambda shape: -len(shape[0]))


def _one_pattern(shapes: list[tuple[str, str, str]]) -> re.Pattern[str]:
    """A pattern for all of them. In JSON text a token may follow the n of an escaped line end."""
    branches: dict[str, list[str]] = defaultdict(list)  # by first letter: `re` skips the others at once
    for prefix, _, tail in shapes:
        branches[re.escape(prefix[0])].append(re.escape(prefix[1:]) + tail)
    joined = "|".join(f"{letter}(?:{'|'.join(rest)})" for letter, rest in branches.items())
    return re.compile(rf"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))(?:{joined})")


_SHAPES: Final = _shapes()
_KINDS: Final = {prefix: kind for prefix, kind, _ in reversed(_SHAPES)}
_SIZES: Final = sorted({len(prefix) for prefix in _KINDS}, reverse=True)
_TOKEN: Final = _one_pattern(_SHAPES)
# kind, a text that the run holds then, the pattern, how many characters of it are kept
_RARE: Final = [
    (kind, hint, pattern(f"tokens.{name}"), int(kept)) for kind, hint, kept, name in rows("tokens.rare")
]
_EXAMPLE: Final = pattern("tokens.example")
_HAS_DIGIT: Final = pattern("tokens.has_digit")
_BARE: Final = pattern("tokens.bare")
_STEP: Final = pattern("tokens.step")


def tokens(text: Text) -> Iterator[Span]:
    """All tokens of known shapes."""
    whole = text.text
    for start, end in text.runs(LEAST):
        if not text.affords(start, RUN_COST + (end - start) // 10):
            continue
        stop = end + 2  # base64 is padded with at most two =
        for found in _TOKEN.finditer(whole, start, stop):
            if not _EXAMPLE.search(found[0]):
                yield Span(*found.span(), _kind(found[0]))
        run = whole[start:end]
        for kind, hint, shape, kept in _RARE:
            if hint in run:
                for found in shape.finditer(whole, start, end + 40 if kind == "twilio" else stop):
                    yield Span(found.start() + kept, found.end(), kind)
        if end - start >= 40:
            for found in _BARE.finditer(whole, start, stop):
                if _noise(found[0]):
                    yield Span(*found.span(), "aws")


def _kind(token: str) -> str:
    return next(_KINDS[prefix] for size in _SIZES if (prefix := token[:size]) in _KINDS)


def _noise(value: str) -> bool:
    """Says whether letters of both cases and digits follow each other as in no word, path or name."""
    return (
        len(_HAS_DIGIT.findall(value)) >= 2
        and not value.islower()
        and not value.isupper()
        and len(_STEP.findall(value)) >= 0.4 * len(value)
    )
