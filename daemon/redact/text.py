"""A text prepared for the search for secrets, and what such a search finds (I46).

``Text`` holds copies of the text in which each character is one byte, so that places are the same in all of
them: in lower case, and with each character replaced by its class. Searching those for a literal is many
times faster than a pattern.

It also counts the work: each look costs units, and each block of the text has a budget of them. Where a look
was refused, the text is ``dense``: all of it that could be a secret goes. So no text takes more than a fixed
time a character.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

BLOCK: Final = 32_768
"""Characters that share a budget."""
LEAST_BUDGET: Final = 6_000
"""Units of a short text, such as a page of settings in which each line is a secret."""
REST_BUDGET: Final = 2_000
"""Units that the last, short block of a longer text has at least."""
BEHIND: Final = 400
"""Characters behind a telling word in which a secret may stand."""
NEAR: Final = 512
"""A later pass looks only so many characters before a change, and twice as many behind it."""
_ALNUM = b"abcdefghijklmnopqrstuvwxyz0123456789"
STOP: Final = b" "  # ends a run
RUN: Final = b"w"  # a letter, a digit, or one of _-+/


def _table(**classes: bytes) -> bytes:
    """For ``bytes.translate``: the class of each byte, ``STOP`` where none has it."""
    table = bytearray(STOP * 256)
    for name, members in classes.items():
        for byte in members:
            table[byte] = ord(name)
    return bytes(table)


_PARTS: Final = (*b"pass auth login token cred key secret code sha} hook".split(), b" -")
_RUNS: Final = _table(w=_ALNUM + b"_-+/", x=b".:~$%@!")
_NAMES: Final = _table(w=_ALNUM + b"_.-")


@lru_cache(maxsize=512)
def part_of(literal: bytes) -> bytes:
    """The part of ``literal`` that is searched for anyway, or itself."""
    return next((part for part in _PARTS if part in literal), literal)


def mark(kind: str) -> str:
    """The text that replaces a secret. No kind holds a word such as "key", so no mark is taken for a name."""
    return f"[redacted:{kind}]"


class Span(NamedTuple):
    """The place of a secret."""

    start: int
    end: int
    kind: str


class Text:
    """One text. ``low``: in lower case. ``present``: the literals that can be there.

    ``rate``: units of work a character; one takes about a microsecond. ``changed``: the changes of the pass
    before; None: anywhere.
    """

    __slots__ = ("_known", "_left", "_names", "_ranges", "_refused", "_runs", "low", "present", "text")

    def __init__(self, text: str, rate: float, changed: Iterable[int] | None = None) -> None:
        self.text = text
        least = LEAST_BUDGET if len(text) <= BLOCK else REST_BUDGET
        self._left = [int(BLOCK * rate)] * (len(text) // BLOCK) + [max(least, int(len(text) % BLOCK * rate))]
        self._refused: dict[int, list[int]] = {}  # of a block the first and the last
        self._ranges = [(0, len(text))] if changed is None else list(_around(changed, len(text)))
        self.low = text.encode("latin-1", "replace").lower()  # of bytes only ASCII letters change
        self._runs = self.low.translate(_RUNS)
        self._names = b""  # what a name may be made of is ``w``
        self.present: frozenset[bytes] = frozenset()
        self._known: dict[bytes, list[int]] = {}

    def affords(self, at: int, units: int) -> bool:
        """Says whether a look at this place is made: it costs ``units`` of its block's budget."""
        block = at // BLOCK
        if self._left[block] > 0:
            self._left[block] -= units
            return True
        known = self._refused.get(block)
        if known is None:
            self._refused[block] = [at, at]
        elif at > known[1]:
            known[1] = at
        elif at < known[0]:
            known[0] = at
        return False

    def dense(self) -> Iterator[tuple[int, int]]:
        """Start and end of each stretch in which a look was refused."""
        for first, last in self._refused.values():
            yield first, min(last + BEHIND, len(self.text))

    def places(self, literal: bytes) -> list[int]:
        """The places of ``literal``, in lower case. Results of a search are remembered."""
        found = self._known.get(literal)
        if found is None:
            part = part_of(literal)
            if part not in self.present:
                return []
            if part == literal:
                found = self._search(literal)
            else:  # rather look around the few places of a part of it than through the whole text
                before = literal.find(part)
                low, starts = self.low, [at - before for at in self.places(part)]
                found = [at for at in starts if at >= 0 and low.startswith(literal, at)]
            self._known[literal] = found
        return found

    def _search(self, literal: bytes) -> list[int]:
        low, size, found = self.low, len(literal), []
        for start, end in self._ranges:
            at = low.find(literal, start, end)
            while at >= 0:
                found.append(at)
                at = low.find(literal, at + size, end)
        return found

    def has_run(self, least: int) -> bool:
        """Says whether ``runs`` would find one."""
        return RUN * least in self._runs

    def runs(self, least: int) -> Iterator[tuple[int, int]]:
        """Start and end of each stretch of characters as tokens have them, with a run of ``least`` in it."""
        runs, wanted = self._runs, RUN * least
        end = 0
        for first, last in self._ranges:
            at = runs.find(wanted, max(first, end), last)
            while at >= 0:
                end = runs.find(STOP, at)
                end = end if end >= 0 else len(runs)
                yield runs.rfind(STOP, 0, at) + 1, end
                at = runs.find(wanted, end, last)

    def name_around(self, at: int, most: int) -> tuple[int, int]:
        """Start and end of the name that holds the character ``at``. A longer one than ``most`` before or
        after ``at`` is cut.
        """
        names = self._names = self._names or self.low.translate(_NAMES)
        floor = max(0, at - most)
        start = names.rfind(STOP, floor, at) + 1
        end = names.find(STOP, at, at + most)
        return start or floor, end if end >= 0 else min(len(names), at + most)


def _around(changed: Iterable[int], size: int) -> Iterator[tuple[int, int]]:
    """Start and end of each stretch that is near a change."""
    first = last = 0
    for at in changed:
        if at - NEAR > last:
            if last:
                yield first, last
            first = at - NEAR
        last = min(size, at + 2 * NEAR)
    if last:
        yield first, last
