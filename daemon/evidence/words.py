"""Cuts texts: to one line, and before what looks like the start of a sentence."""

from __future__ import annotations

import re
from typing import Final

LINE: Final = 160  # characters of a text that is shown in a row
_NEXT_SENTENCE: Final = re.compile(r"(?<=[.!?…])[ \t]+(?=[\"'(*_A-Z0-9`])")  # so that "e.g. this" stays whole


def split_line(line: str) -> list[str]:
    """The sentences of one line."""
    return _NEXT_SENTENCE.split(line)


def last_match(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """The last place in ``text`` where ``pattern`` matches."""
    found = None
    for found in pattern.finditer(text):  # noqa: B007 -- the last one counts
        pass
    return found


def shorten(text: str, limit: int = LINE) -> str:
    """One line of at most ``limit`` characters."""
    text = " ".join(text[: limit * 5].split())
    return text if len(text) <= limit else text[: limit - 1] + "…"
