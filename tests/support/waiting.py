"""Waiting for something to become true, with a message that says what was seen instead."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def wait_until(
    predicate: Callable[[], T],
    timeout: float = 15.0,
    what: str = "the condition",
    seen: Callable[[], object] | None = None,
    every: float = 0.03,
) -> T:
    """Poll until ``predicate`` is truthy and return its value.

    An ``AssertionError`` names ``what``, the time, and what ``seen`` (or the predicate) last gave.
    """
    end = time.monotonic() + timeout
    while True:
        value = predicate()
        if value:
            return value
        if time.monotonic() > end:
            last = seen() if seen is not None else value
            raise AssertionError(f"no {what} within {timeout:g} s; last seen:\n{last}")
        time.sleep(every)


def stays(predicate: Callable[[], object], seconds: float, what: str) -> None:
    """``predicate`` holds now and for ``seconds``: for the few things that must *not* happen."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert predicate(), f"{what} stopped being true"
        time.sleep(0.05)
