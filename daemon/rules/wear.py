"""How rules wear: contradicted by what the person said since, or not confirmed for long.

A model said which rules a signal contradicts when it read it (``signals``); here that is only counted, for a
person to look at. Nothing is archived by it. A signal that a person dismissed says nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Final

from .journal import against, same

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from .rows import Standing

CONTRADICTED: Final = 2
"""How often a person must have contradicted a rule before unlearning it is suggested (FR8)."""
STALE_DAYS: Final = 90


@dataclass(frozen=True, slots=True)
class Wear:
    """``contradicted``: how often, with ``by``, the signals. ``confirmed``: the last day on which the person
    said it, "" when unknown. ``days``: since then.
    """

    contradicted: int = 0
    by: tuple[str, ...] = ()
    confirmed: str = ""
    days: int = 0

    @property
    def worn(self) -> bool:
        """Whether unlearning it is suggested."""
        return self.contradicted >= CONTRADICTED

    @property
    def stale(self) -> bool:
        """Whether nobody said it for long."""
        return self.days > STALE_DAYS


def wear(row: Standing, signals: Iterable[Mapping[str, Any]], today: str) -> Wear:
    """How an active rule wore until today."""
    times, by, said = 0, list[str](), row.learned
    for signal in signals:
        first, last = signal["first_seen"], signal["last_seen"]
        if signal["status"] == "dismissed" or signal["type"] == "feedback":
            continue
        if signal["id"] in row.sources or same(row.text, signal["content"]):
            said = max(said, last)
        elif last > row.learned and row.id in against(signal):
            times += signal["occurrences"] if first > row.learned else 1
            by.append(signal["id"])
    return Wear(times, tuple(by), said, _days(said, today))


def _days(since: str, today: str) -> int:
    try:
        return max(0, (date.fromisoformat(today) - date.fromisoformat(since)).days)
    except ValueError:
        return 0
