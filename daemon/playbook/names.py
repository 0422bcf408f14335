"""The names of points: ``pat-001``, counted per section, and ``kpt_001`` for those of the old flat form."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

LEGACY: Final = "kpt"
_DIGITS: Final = 18
_NAME: Final = re.compile(rf"(pat|mis|pref|ctx|oth)-([0-9]{{1,{_DIGITS}}})|(kpt)_([0-9]{{1,{_DIGITS}}})")


def is_name(name: object) -> bool:
    """Tells whether a point may be called that. Anything else would be read as more than a name where points
    are printed or given to agents.
    """
    return isinstance(name, str) and parts(name) is not None


def parts(name: str) -> tuple[str, int] | None:
    """How a name begins and its number; None for a name of another form."""
    found = _NAME.fullmatch(name)
    return (found[1] or found[3], int(found[2] or found[4])) if found else None


def slug_of(name: str) -> str:
    """How the name begins, "" for a name of another form."""
    found = parts(name)
    return found[0] if found else ""


def form(slug: str, number: int) -> str:
    """The name with this number."""
    return f"{slug}{'_' if slug == LEGACY else '-'}{number:03d}"


def highest(names: Iterable[str]) -> dict[str, int]:
    """The highest number of each slug."""
    found: dict[str, int] = {}
    for name in names:
        if (known := parts(name)) is not None:
            slug, number = known
            found[slug] = max(number, found.get(slug, 0))
    return found


class Names:
    """Gives names: each time the lowest one that nobody has, above ``marks`` (slug → number). Above the
    highest possible number they begin at 1 again, where one is free.
    """

    def __init__(self, taken: Iterable[str], marks: Mapping[str, int]) -> None:
        self._taken = set(taken)
        self._last = dict(marks)

    def take(self, slug: str) -> str:
        """A new name, which nobody gets a second time."""
        number = self._last.get(slug, 0) + 1
        if number >= 10**_DIGITS:  # a file brought the highest name that there is
            number = 1
        while form(slug, number) in self._taken:
            number += 1
        self._last[slug] = number
        name = form(slug, number)
        self._taken.add(name)
        return name

    def keep(self, name: str) -> str:
        """``name`` itself, when nobody has or had it; else a new one that begins like it."""
        known = parts(name)
        if known is None:
            raise ValueError(f"{name!r} is no name of ours")
        slug, number = known
        if name in self._taken or number <= self._last.get(slug, 0) or form(slug, number) != name:
            return self.take(slug)
        self._taken.add(name)
        return name


def next_name(entries: Iterable[Any], slug: str) -> str:
    """The name after the highest one of these points (dicts with ``name``) that begins with ``slug``."""
    taken = [e["name"] for e in entries if isinstance(e, dict) and isinstance(e.get("name"), str)]
    return Names(taken, highest(taken)).take(slug)
