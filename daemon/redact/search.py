"""Passes over a text with all three searches for secrets (I46)."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from .names import SHORT_STEMS, STEMS
from .places import LABELS, LITERALS, places
from .tables import pattern
from .text import Span, Text, mark, part_of
from .tokens import LEAST, tokens
from .values import named

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    Naming = Callable[[str, str], str]

RATES: Final = (0.16, 0.05, 0.02)
"""Units of work a character in each pass (see ``Text``). Fuzzing needed two passes; the last one sees that
nothing changes.
"""
_UNSEEN: Final = pattern("search.unseen")
"""Invisible text between two characters: colours, spaces without width, a line that goes on. The searches
skip it.
"""
_UNSEEN_MARKS: Final = ("\x1b[", "\\\n", "\\\r", "\u200b", "\u200c", "\u200d", "\u2060", "\ufeff")
_DENSE: Final = "dense"
_MAY_BE: Final = pattern("search.may_be")
"""Possible secrets in a text with too many telling names: assigned values, and words that are not of letters
alone.
"""


def _sought() -> dict[bytes, frozenset[bytes]]:
    """The words that a text of short runs needs to hold a secret, each with those that share letters with it,
    such as "pwd" and "pw": of these only the first is found.
    """
    every = {part_of(word) for word in (*STEMS, *SHORT_STEMS, *LITERALS)}

    def share(word: bytes, other: bytes) -> bool:
        return any(word[i:].startswith(other) or other.startswith(word[i:]) for i in range(len(word)))

    return {word: frozenset(w for w in every if share(word, w)) for word in sorted(every)}


def _any_of(words: Collection[bytes], ends: Collection[bytes], begun: bytes = b"") -> bytes:
    """A pattern for the longest of the words, letter by letter: twice as fast as one alternative for
    each. Behind a word of ``ends`` no letter may follow.
    """
    nexts = dict.fromkeys(word[len(begun) : len(begun) + 1] for word in words if len(word) > len(begun))
    parts = []
    for letter in nexts:
        so_far = begun + letter
        parts.append(re.escape(letter) + _any_of([w for w in words if w.startswith(so_far)], ends, so_far))
    if begun in words:
        parts.append(b"(?![a-z])" if begun in ends else b"")
    return b"(?:" + b"|".join(parts) + b")"


_SOUGHT: Final = _sought()
_ENDS_THERE: Final = {*SHORT_STEMS} - {part_of(word) for word in LITERALS}
_ANY_WORD: Final = re.compile(_any_of(list(_SOUGHT), _ENDS_THERE))


def without_secrets(text: str, name: Naming | None = None) -> str:
    """``text`` with every secret replaced by a mark. Redacting the result again changes nothing. ``name``:
    makes the mark from the kind and the secret.
    """
    changed: list[int] | None = None
    for rate in RATES:
        text, changed = _pass(text, rate, changed, name)
        if not changed:
            break
    return text


def _pass(text: str, rate: float, changed: list[int] | None, name: Naming | None) -> tuple[str, list[int]]:
    """``text`` with the finds of one pass replaced by marks, and the places of these."""
    found = (
        _seen(text, rate, changed) if any(m in text for m in _UNSEEN_MARKS) else _found(text, rate, changed)
    )
    if not found:
        return text, []
    found.sort(key=lambda span: (span.start, -span.end))
    kept: list[str] = []
    marks: list[int] = []
    done = size = 0
    for start, end, kind in found:
        if end <= done:
            continue
        if start >= done:
            said = mark(kind) if name is None or kind == _DENSE else name(kind, text[start:end])
            kept += [text[done:start], said]
            size += start - done
            if kind != _DENSE:  # around these nothing is left
                marks.append(size)
            size += len(said)
        done = end  # a secret that overlaps the one before goes with it
    return "".join([*kept, text[done:]]), marks


def _seen(text: str, rate: float, changed: list[int] | None) -> list[Span]:
    """The finds in the visible text, by their places in the whole text."""
    unseen = [gap.span() for gap in _UNSEEN.finditer(text)]
    starts, ends = [0, *(end for _, end in unseen)], [*(start for start, _ in unseen), len(text)]
    at = list(accumulate((end - start for start, end in zip(starts, ends, strict=True)), initial=0))
    shown = "".join(text[start:end] for start, end in zip(starts, ends, strict=True))
    if changed is not None:
        changed = [at[i] + place - starts[i] for place in changed for i in [bisect_right(starts, place) - 1]]
    found = []
    for start, end, kind in _found(shown, rate, changed):
        first, last = bisect_right(at, start) - 1, bisect_left(at, end) - 1
        found.append(Span(starts[first] + start - at[first], starts[last] + end - at[last], kind))
    return found


def _found(text: str, rate: float, changed: list[int] | None) -> list[Span]:
    """The finds of all searches, in no order."""
    view = Text(text, rate, changed)
    view.present = frozenset().union(*(_SOUGHT[word] for word in set(_ANY_WORD.findall(view.low))))
    if not view.present and not view.has_run(LEAST) and not any(label in text for label in LABELS):
        return []
    found = [*tokens(view), *places(view), *named(view)]
    for start, end in view.dense():
        found += _coarse(text, start, end)
    return found


def _coarse(text: str, start: int, end: int) -> Iterator[Span]:
    """Possible secrets in a dense stretch, with the text beside them that is shorter than a mark."""
    first = last = -1
    for each in _MAY_BE.finditer(text, start, end):
        if first >= 0 and each.start() - last >= len(mark(_DENSE)):
            yield Span(first, last, _DENSE)
            first = -1
        first, last = first if first >= 0 else each.start(), each.end()
    if first >= 0:
        yield Span(first, last, _DENSE)
