"""Digests of calls and outcomes, without what differs from run to run: times, durations, process ids.

Owns what counts as "the same". In doubt two outcomes are different, because a false "the same" would be a
false alarm. Never raises. Takes linear time.
"""

from __future__ import annotations

import json
import re
from hashlib import blake2b
from typing import TYPE_CHECKING, Final
from zlib import crc32

from ..core.cuts import head_and_tail

if TYPE_CHECKING:
    from collections.abc import Mapping

WHOLE: Final = 16_000  # longer outputs are cleaned only in their head and tail
HEAD: Final = 4_000
TAIL: Final = 8_000
SKETCHED: Final = 4_000
MAX_WORDS: Final = 200
FAULT_LINES: Final = 3

_UNIT: Final = r"(?:ns|µs|us|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|h)"
_NUMBERS: Final = re.compile(
    r"(?<![\w.])(?:"
    r"\d{4}-\d\d-\d\d(?:[T _]\d\d[:_.]\d\d(?:[:_.]\d\d(?:[.,_]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?"
    r"|\d{1,2}:\d\d:\d\d(?:[.,]\d{1,9})?"
    rf"|(?:\d{{1,9}}(?:\.\d{{1,9}})?{_UNIT}){{1,4}}\b"
    r"|\d{1,9}(?:\.\d{1,9})? (?:ns|µs|us|ms|seconds?|secs?|s|minutes?|mins?|hours?)\b"
    r"|1\d{9}(?:\d{3})?(?!\d)"
    r")"
)
_NAMED: Final = (  # (a text that must occur, the pattern that is then removed)
    ("\x1b", re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]")),
    ("id", re.compile(r"\b[Pp][IiGg]{1,2}[Dd]['\"]?[ =:#]{1,3}\d{1,10}")),
    ("process ", re.compile(r"\bprocess \d{1,10}")),
    ("seed", re.compile(r"\bseed['\"]?[ =:]{1,3}\d{1,20}")),
    ("tmp", re.compile(r"\btmp[._-]?[A-Za-z0-9_]{6,12}\b")),
    ("pytest-", re.compile(r"\bpytest-\d{1,6}\b")),
    ("0x", re.compile(r"\b0x[0-9a-fA-F]{4,16}\b")),
    ("-", re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b")),
    ("_", re.compile(r"\b(?:ses|msg|prt|call|toolu|req)_[A-Za-z0-9]{8,64}\b")),
    ("#", re.compile(r"^#\d{1,4} \d{1,6}\.\d{1,4} ", re.MULTILINE)),
    ("(cached)", re.compile(r"\(cached\)")),
    ("127.0.0.1:", re.compile(r"\b127\.0\.0\.1:\d{5}\b")),
)
_WEEKDAY: Final = re.compile(
    r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? (?:\d{1,2} )?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
    r"(?: {1,2}\d{1,2})?"
)
_ERROR: Final = re.compile(
    r"error|fail|denied|not found|no such|could not|couldn't|cannot|can't|fatal|refused|rejected|exception"
    r"|invalid|unable|required|abort|multiple matches|has not been|timed? ?out|not logged|please run",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"[^\W\d_]{1,40}")
_DIGITS: Final = re.compile(r"\d{1,20}")


def digest(*parts: str) -> str:
    """16 hex digits for ``parts``; the same in every process."""
    return blake2b("\x00".join(parts).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def steady(text: str) -> str:
    """``text`` without what differs from run to run. Other numbers, names and places in files stay."""
    for mark, noise in _NAMED:
        if mark in text:
            text = noise.sub("", text)
    text = _NUMBERS.sub("~", text)
    if "~" in text:
        text = _WEEKDAY.sub("", text)
    return " ".join(text.split())


def of_output(text: str) -> str:
    """The digest of an output. The middle of a very long one is not cleaned."""
    if len(text) <= WHOLE:
        return digest(steady(text))
    return digest(steady(text[:HEAD]), text[HEAD:-TAIL], steady(text[-TAIL:]))


def of_input(given: Mapping[str, object], without: frozenset[str] = frozenset()) -> str:
    """The digest of a call's arguments in any order. ``without``: names of arguments that don't count."""
    kept = {k: v for k, v in given.items() if k not in without}
    try:
        return digest(json.dumps(kept, sort_keys=True, default=str, ensure_ascii=True))
    except (TypeError, ValueError, RecursionError):  # mixed keys, a circle, nested too deeply
        return digest(*sorted(f"{k}={v}" for k, v in kept.items() if isinstance(v, str | int)), "odd")


def fault_of(text: str) -> str:
    """The digest of an error's text, without what differs from run to run; empty when it says too little."""
    kept: list[str] = []
    first = ""
    for raw in text[:HEAD].splitlines():
        line = raw.replace("<tool_use_error>", "").replace("</tool_use_error>", "").strip()
        first = first or line
        if line and _ERROR.search(line[:400]):
            kept.append(line[:400])
            if len(kept) == FAULT_LINES:
                break
    said = steady("\n".join(kept) or first[:400])
    return digest(said) if len(said) >= 8 else ""


def sketch(text: str) -> frozenset[int]:
    """The words of a text as numbers, to compare texts by. Of a long text head and tail count."""
    words = _WORD.findall(head_and_tail(text, SKETCHED).casefold())
    return frozenset(crc32(w.encode("utf-8", "surrogatepass")) for w in words[:MAX_WORDS])


def figures(text: str) -> str:
    """The digest of a text's numbers. Two texts with different numbers don't say the same."""
    found = _DIGITS.findall(text[:SKETCHED])
    return digest(*found[:MAX_WORDS]) if found else ""


def alike(a: frozenset[int], b: frozenset[int], share: float) -> bool:
    """Whether two sketches have at least ``share`` of their words in common, or are equal."""
    if a == b:
        return True
    both = len(a & b)
    return both > 0 and both >= share * (len(a) + len(b) - both)
