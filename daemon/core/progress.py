"""Where a task stands between two rounds of feedback, so that rounds without progress can be counted (I8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Progress:
    """``files``: a digest of the task's net change. ``checks``: of what its checks, commits and runs said
    last. ``items``: what each open item cites, sorted, so that a new wording is the same item.
    """

    files: str = ""
    checks: str = ""
    items: tuple[str, ...] = ()


NOWHERE: Final = Progress()
"""Before the first feedback of a task."""


def moved(before: Progress, now: Progress) -> bool:
    """Whether the files or the checks' results changed, or an open item is gone and none has come."""
    gone = set(now.items) < set(before.items)
    return gone or (before.files, before.checks) != (now.files, now.checks)
