"""Passes over a text with all three searches for secrets (I46)."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from .secret_names import SHORT_STEMS, STEMS, mark
from .secret_places import LABELS, LITERALS, places
from .secret_text import Span, Text, part_of
from .secret_tokens import LEAST, tokens
from .secret_values import named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Naming = Callable[[str, str], str]

RATES: Final = (0.16, 0.05, 0.02)
"""Units of work a character in each pass (see ``Text``). Two passes were enough for all that fuzzing found; the
last one sees that nothing changes.
"""
_UNSEEN: Final = re.compile(
    r"\x1b\[[0-9;]{0,20}[A-Za-z]|[\u200b-\u200d\u2060\ufeff]|(?<![\\\n])\\\r?\n[ \t]{0,40}(?=\S)"
)
"""What a person does not see between two characters: colours, spaces without width, a line that goes on. The
searches read the text without it.
"""
_DENSE: Final = "dense"
_ENDS: Final = r"\s\"'`=:,;|&<>()\[\]{}\\"
_MAY_BE: Final = re.compile(
    rf"(?<![^{_ENDS}])(?:(?:(?<=[=:])|(?<=[=:][ \"'])|(?<=[=:][ ][\"']))(?<!\[redacted:)(?<!::)(?!//)[^{_ENDS}]{{3,}}+"
    rf"|(?=[^{_ENDS}A-Za-z]{{0,200}}[A-Za-z])(?=[A-Za-z_./-]{{0,200}}[^{_ENDS}A-Za-z_./-])[^{_ENDS}]{{6,}}+)"
)
"""All that may be a secret, for text with more telling names than can be looked at: what is assigned, and words
that are not of letters alone.
"""
SHORT: Final = 1_500  # characters of a text that is worth a look for any of these words first
_WORDS: Final = sorted(
    {part_of(word) for word in (*STEMS, *SHORT_STEMS, *LITERALS)}, key=lambda word: (-len(word), word)
)
_ANY_WORD: Final = re.compile(b"|".join(map(re.escape, _WORDS)))
# of words that share letters, such as "pwd" and "pw", only the first is found
_BESIDE: Final = {
    word: frozenset(
        w for w in _WORDS if any(word[i:].startswith(w) or w.startswith(word[i:]) for i in range(len(word)))
    )
    for word in _WORDS
}


def without_secrets(text: str, name: Naming | None = None) -> str:
    """``text`` with every secret replaced by a mark. Redacting again what this returns changes nothing.
    ``name``: makes the mark from the kind and the secret.
    """
    changed: list[int] | None = None
    for rate in RATES:
        text, changed = _pass(text, rate, changed, name)
        if not changed:
            break
    return text


def _pass(
    text: str, rate: float, changed: list[int] | None, name: Naming | None = None
) -> tuple[str, list[int]]:
    """``text`` with what one pass finds replaced by marks, and where those stand in it."""
    unseen = [gap.span() for gap in _UNSEEN.finditer(text)]
    if not unseen:
        found = _found(text, rate, changed)
    else:
        starts, ends = [0, *(end for _, end in unseen)], [*(start for start, _ in unseen), len(text)]
        at = list(accumulate((end - start for start, end in zip(starts, ends, strict=True)), initial=0))
        shown = "".join(text[start:end] for start, end in zip(starts, ends, strict=True))
        if changed is not None:
            changed = [
                at[i] + place - starts[i] for place in changed for i in [bisect_right(starts, place) - 1]
            ]
        found = []
        for start, end, kind in _found(shown, rate, changed):
            first, last = bisect_right(at, start) - 1, bisect_left(at, end) - 1
            found.append(Span(starts[first] + start - at[first], starts[last] + end - at[last], kind))
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
            size += len(kept[-1])
        done = end  # a secret that overlaps the one before goes with it
    return "".join([*kept, text[done:]]), marks


def _found(text: str, rate: float, changed: list[int] | None) -> list[Span]:
    """What all searches find, in no order."""
    view = Text(text, rate, changed)
    if len(text) < SHORT:
        view.present = frozenset().union(*(_BESIDE[word] for word in set(_ANY_WORD.findall(view.low))))
        if not view.present and not view.has_run(LEAST) and not any(label in text for label in LABELS):
            return []
    found = [*tokens(view), *places(view), *named(view)]
    for start, end in view.dense():
        found += _coarse(text, start, end)
    return found


def _coarse(text: str, start: int, end: int) -> Iterator[Span]:
    """What may be a secret in a dense stretch. What a mark would be longer than goes with it."""
    first = last = -1
    for each in _MAY_BE.finditer(text, start, end):
        if first >= 0 and each.start() - last >= len(mark(_DENSE)):
            yield Span(first, last, _DENSE)
            first = -1
        first, last = first if first >= 0 else each.start(), each.end()
    if first >= 0:
        yield Span(first, last, _DENSE)
