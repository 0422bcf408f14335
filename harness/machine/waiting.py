"""Waiting for something to become true, with a message that says what was seen instead.

Patience is one number for everything that is expected. It costs nothing when all is well.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

PATIENCE_S: Final = 120.0
"""How long anything expected may take: more than ten times what the slowest of it takes at rest."""

_FIRST_S, _LONGEST_S = 0.02, 0.1


def wait_until(
    predicate: Callable[[], T],
    what: str = "the condition",
    seen: Callable[[], object] | None = None,
    *,
    within: float = PATIENCE_S,
) -> T:
    """Ask until ``predicate`` is truthy and return its value; ever more rarely, down to ten times a second.

    An ``AssertionError`` names ``what``, the time, and what ``seen`` (or the predicate) last gave.
    """
    end, pause = time.monotonic() + within, _FIRST_S
    while True:
        value = predicate()
        if value:
            return value
        if time.monotonic() > end:
            last = seen() if seen is not None else value
            raise AssertionError(f"no {what} within {within:g} s; last seen:\n{last}")
        time.sleep(pause)
        pause = min(_LONGEST_S, pause * 1.2)
