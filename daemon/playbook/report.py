"""What the numbers say of a playbook, and no more: shares with their intervals, and whether two differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..core.shares import wilson

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
    """The share with its interval, which is from 0 to 1 without any task."""
    found = wilson(complete, tasks)
    return Share(tasks, complete, found.low, found.high)


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
