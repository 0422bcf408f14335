"""Shares with the interval that the true share is in, most likely. Pure.

The interval is Wilson's with 95 %, which holds for few cases and for shares near 0 and 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist
from typing import Final

Z: Final = NormalDist().inv_cdf(0.975)  # 95 of 100 such intervals hold the true share


@dataclass(frozen=True, slots=True)
class Share:
    """``hits`` of ``of``, with the interval; ``value`` is None where there is nothing to divide by."""

    hits: int
    of: int
    value: float | None
    low: float = 0.0
    high: float = 1.0


def wilson(hits: int, of: int) -> Share:
    """The share ``hits / of`` with its 95 % interval."""
    if not of:
        return Share(hits, of, None)
    p, n = hits / of, of
    middle = p + Z * Z / (2 * n)
    half = Z * sqrt(p * (1 - p) / n + Z * Z / (4 * n * n))
    scale = 1 + Z * Z / n
    return Share(hits, of, p, max(0.0, (middle - half) / scale), min(1.0, (middle + half) / scale))
