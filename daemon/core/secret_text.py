"""A text prepared for the search for secrets, and what such a search finds (I46).

``Text`` holds copies of the text in which each character is one byte, so that places are the same in all of
them: in lower case, and with each character replaced by its class. Searching those for a literal is many
times faster than a pattern.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

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


_PARTS: Final = (
    b"pass",
    b"auth",
    b"login",
    b"token",
    b"cred",
    b"key",
    b"secret",
    b"code",
    b"sha}",
    b"hook",
    b" -",
)
_RUNS: Final = _table(w=_ALNUM + b"_-+/", x=b".:~$%@!")
_NAMES: Final = _table(w=_ALNUM + b"_.-")


@lru_cache(maxsize=512)
def part_of(literal: bytes) -> bytes:
    """The part of ``literal`` that is searched for anyway, or itself."""
    return next((part for part in _PARTS if part in literal), literal)


class Span(NamedTuple):
    """The place of a secret."""

    start: int
    end: int
    kind: str


class Text:
    """One text. ``low``: in lower case. ``names``: what a name may be made of is ``w``."""

    __slots__ = ("_known", "_runs", "low", "names", "present", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.low = text.encode("latin-1", "replace").lower()  # of bytes only ASCII letters change
        self.names = self.low.translate(_NAMES)
        self._runs = self.low.translate(_RUNS)
        self.present: frozenset[bytes] | None = None  # the literals that can be there; None: any
        self._known: dict[bytes, list[int]] = {}

    def places(self, literal: bytes) -> list[int]:
        """Where ``literal``, in lower case, stands. What was searched for once is remembered."""
        found = self._known.get(literal)
        if found is None:
            part = part_of(literal)
            if self.present is not None and part not in self.present:
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
        at = low.find(literal)
        while at >= 0:
            found.append(at)
            at = low.find(literal, at + size)
        return found

    def has_run(self, least: int) -> bool:
        """Whether ``runs`` would find one."""
        return RUN * least in self._runs

    def runs(self, least: int) -> Iterator[tuple[int, int]]:
        """Start and end of each stretch of characters as tokens have them, with a run of ``least`` in it."""
        runs, wanted = self._runs, RUN * least
        at = runs.find(wanted)
        while at >= 0:
            end = runs.find(STOP, at)
            end = end if end >= 0 else len(runs)
            yield runs.rfind(STOP, 0, at) + 1, end
            at = runs.find(wanted, end)

    def name_around(self, at: int, most: int) -> tuple[int, int]:
        """Start and end of the name that holds the character ``at``. A longer one than ``most`` before or
        after ``at`` is cut.
        """
        names = self.names
        floor = max(0, at - most)
        start = names.rfind(STOP, floor, at) + 1
        end = names.find(STOP, at, at + most)
        return start or floor, end if end >= 0 else min(len(names), at + most)
