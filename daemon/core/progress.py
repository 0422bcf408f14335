"""Where a task stands between two rounds of feedback, so that rounds without progress can be counted (I8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Progress:
    """``files``: a digest of the task's net change. ``checks``: of what its checks, commits and runs said
    last. ``items``: what each open item cites, sorted, so that a new wording is the same item. ``cited``: a
    digest of the change of those files that an open item names or cites.
    """

    files: str = ""
    checks: str = ""
    items: tuple[str, ...] = ()
    cited: str = ""


NOWHERE: Final = Progress()
"""Before the first feedback of a task."""


def moved(before: Progress, now: Progress) -> bool:
    """Whether a check says something else, or an open item is gone and none has come, or files changed. While
    every item is still open, only the files that one of them cites count.
    """
    if set(now.items) < set(before.items) or before.checks != now.checks:
        return True
    if set(before.items) <= set(now.items):
        return before.cited != now.cited
    return before.files != now.files
