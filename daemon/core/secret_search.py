"""One pass over a text with all three searches for secrets (I46)."""

from __future__ import annotations

import re
from typing import Final

from .secret_names import SHORT_STEMS, STEMS, mark
from .secret_places import LITERALS, places
from .secret_text import Text, part_of
from .secret_tokens import LEAST, tokens
from .secret_values import named

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


def without_secrets(text: str) -> str:
    """``text`` with what one pass finds replaced by marks."""
    view = Text(text)
    if len(text) < SHORT:
        view.present = frozenset().union(*(_BESIDE[word] for word in set(_ANY_WORD.findall(view.low))))
        if not view.present and not view.has_run(LEAST):
            return text
    found = [*tokens(view), *named(view), *places(view)]
    if not found:
        return text
    found.sort(key=lambda span: (span.start, -span.end))
    kept: list[str] = []
    done = 0
    for start, end, kind in found:
        if end <= done:
            continue
        if start >= done:
            kept += [text[done:start], mark(kind)]
        done = end  # a secret that overlaps the one before goes with it
    return "".join([*kept, text[done:]])
