"""Cuts the middle out of long texts, in the same way as the opencode shim does.

It cuts at a line end where one is near, else between two words, because half of a secret could slip past
the redaction. Of a tool's output the lines that tell of failures stay, wherever they stand.
"""

from __future__ import annotations

import re
from typing import Any, Final, cast

from ..core.cuts import cut_texts

TEXT: Final = (2_048, 14_336)  # characters of head and tail that are kept
OUTPUT: Final = (1_024, 2_048)
KEPT_LINES: Final = 24  # of what is cut from an output
KEPT_CHARS: Final = 2_048
_LONGEST: Final = 300  # characters of a line that is kept; half a line could hold half a secret
_SCANNED: Final = 5_000  # lines from each end of what is cut
_TELLS: Final = re.compile(
    r"\b(?:FAIL(?:ED|URES?|S)?|ERRORS?|FATAL|PANIC|panicked|Traceback|AssertionError|REJECTED)\b"
    r"|\b(?:[Ee]rror|fatal|panic|[A-Za-z]+Error|[A-Za-z]*Exception)(?::|\[)|^\s*not ok\b|[✗✘✖✕❌●]"
    r"|\b[1-9]\d* (?:failed|failures?|errors?)\b|\bcreate mode \d|\berror (?:TS|CS)\d"
    r"|\[(?:remote )?rejected\]"
)
_WORDS: Final = (
    *("fail", "error", "fatal", "panic", "traceback", "reject", "exception", "not ok", "create mode"),
    *"✗✘✖✕❌●",
)
"""Each match of ``_TELLS`` has one of these in lower case: they are found ten times faster."""
_SLACK: Final = 200  # how far from the wanted place a line end is looked for
_WORD: Final = 4_096  # and how far the end of a word
_BORDER: Final = re.compile("[\\s\"'`,;&<>]")


def cut(value: str, limit: tuple[int, int]) -> tuple[str, int]:
    """(the head and the tail of ``value``, how many characters between them are missing)."""
    if len(value) <= sum(limit):
        return value, 0
    head, tail = _edges(value, limit)
    return f"{value[:head]}\n[... {tail - head} characters cut ...]\n{value[tail:]}", tail - head


def cut_output(value: str) -> tuple[str, int]:
    """As ``cut`` for a tool's output; between head and tail stand the lines that tell of failures."""
    if len(value) <= sum(OUTPUT):
        return value, 0
    head, tail = _edges(value, OUTPUT)
    lines = value[head:tail].split("\n")
    kept = telling_lines(lines[value[head - 1] != "\n" : -1])  # no part of a line
    left = tail - head - sum(len(line) for line in kept)
    mark = f"[... {left} characters cut{', not these lines' if kept else ''} ...]"
    end = ["[... end of these lines ...]"] if kept else []
    return "\n".join([value[:head], mark, *kept, *end, value[tail:]]), left


def _edges(value: str, limit: tuple[int, int]) -> tuple[int, int]:
    """Where the head ends and the tail begins: at a line end where one is near, else where a word ends. A
    word that is longer than ``_WORD`` is cut.
    """
    head, tail = limit[0], len(value) - limit[1]
    before = value.rfind("\n", 0, head + 1)
    if before > head - _SLACK:
        head = before + 1
    else:
        word = _BORDER.search(value[max(0, head - _WORD) : head][::-1])
        head -= word.start() if word else 0
    after = value.find("\n", tail, tail + _SLACK)
    if after >= 0:
        return head, after + 1
    word = _BORDER.search(value, tail, tail + _WORD)
    return head, word.start() if word else tail


def telling_lines(lines: list[str]) -> list[str]:
    """The lines that tell of failures, or of files that a commit made: the first ones and the last ones."""
    lines = lines if len(lines) <= 2 * _SCANNED else [*lines[:_SCANNED], *lines[-_SCANNED:]]
    whole = "\n".join(lines).lower()
    words = [word for word in _WORDS if word in whole]
    lower = whole.split("\n") if words else []
    tell = sorted({n for word in words for n, line in enumerate(lower) if word in line})
    found = [lines[n] for n in tell if len(lines[n]) <= _LONGEST and _TELLS.search(lines[n])]
    if len(found) > KEPT_LINES:
        found = [*found[: KEPT_LINES // 2], *found[-KEPT_LINES // 2 :]]
    while sum(len(line) for line in found) > KEPT_CHARS:
        del found[len(found) // 2]
    return found


def cut_deep(given: dict[str, Any], limit: tuple[int, int] = TEXT) -> dict[str, object]:
    """A call's arguments with every long string in them cut, and None for all that is nested too deeply."""
    return cast("dict[str, object]", cut_texts(given, lambda text: cut(text, limit)[0]))


def size_of(value: object) -> int:
    """Characters of all strings in a JSON value."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, list):
        return sum(size_of(item) for item in value)
    if isinstance(value, dict):
        return sum(len(k) + size_of(v) for k, v in value.items())
    return 1
