"""What the numbers say of a playbook, and no more: shares with their intervals, and whether two differ."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Final

Z: Final = 1.96  # 95 of 100 such intervals hold the true share
LEAST: Final = 10  # tasks on each side, below which nothing is said


@dataclass(frozen=True, slots=True)
class Share:
    """``complete`` of ``tasks`` were complete at their first verdict. ``low`` and ``high``: the interval that
    the true share is in, most likely.
    """

    tasks: int
    complete: int
    low: float
    high: float


def share(complete: int, tasks: int) -> Share:
    """The share with Wilson's interval, which is honest for few tasks too; from 0 to 1 without any."""
    if not tasks:
        return Share(0, 0, 0.0, 1.0)
    p, z = complete / tasks, Z
    middle = (p + z * z / (2 * tasks)) / (1 + z * z / tasks)
    half = z / (1 + z * z / tasks) * sqrt(p * (1 - p) / tasks + z * z / (4 * tasks * tasks))
    return Share(tasks, complete, max(0.0, middle - half), min(1.0, middle + half))


def compared(given: Share, held_out: Share) -> str:
    """What can be said of sessions with points against those without, in words for a person."""
    if not held_out.tasks:
        return "no session was held out (playbook.holdout_percent), so nothing can be compared"
    if min(given.tasks, held_out.tasks) < LEAST:
        return f"fewer than {LEAST} tasks on one side: too few to compare"
    if given.low > held_out.high:
        return "sessions with points were complete at their first verdict more often"
    if given.high < held_out.low:
        return "sessions with points were complete at their first verdict less often"
    return "the intervals overlap: these numbers show no difference"
