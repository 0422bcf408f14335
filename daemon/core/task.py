"""Says when a task is over. A task begins with a message that a person typed; the next such message ends it
at the latest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from .session import FINAL_FOR_TASK

if TYPE_CHECKING:
    from .session import Session

Why = Literal["complete", "stopped", "next_task", "deleted"]


@dataclass(frozen=True, slots=True)
class ClosedTask:
    """A task that is over. Each task is closed once.

    ``why``: judged complete, stopped (by a guard or the person), the person began another task, or the
    session was deleted. ``attempts``: rounds of feedback. ``reward``: the lowest of its verdicts, None when
    none has one. ``at``: epoch ms.
    """

    session: str
    task: str
    directory: str
    host: str
    why: Why
    attempts: int
    at: int
    reward: float | None = None


def closed(before: Session | None, after: Session, at: int) -> ClosedTask | None:
    """The task that a session's change from ``before`` to ``after`` ends, or None."""
    if before is None or not before.task or before.judge or before.parent:
        return None
    if before.phase in FINAL_FOR_TASK or before.deleted:
        return None  # it was over before
    why: Why
    if after.task != before.task:
        why = "next_task"
    elif after.deleted:
        why = "deleted"
    elif after.phase == "complete":
        why = "complete"
    elif after.phase == "stopped":
        why = "stopped"
    else:
        return None
    attempts = max(before.attempts, after.attempts if after.task == before.task else 0)
    return ClosedTask(before.id, before.task, before.directory, before.host, why, attempts, at)
