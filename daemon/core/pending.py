"""What is to happen to a session later, unless something else happens first.

A session has at most one pending action of each kind. When several are due, the one that ranks highest goes
first and the others wait for it. Feedback needs no timer: it takes the place of every nudge.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

PendingKind = Literal["compaction", "nudge", "idle"]
RANK: Final[dict[PendingKind, int]] = {"compaction": 0, "nudge": 1, "idle": 2}
AGAIN_MS: Final = 15_000
TRIES: Final = 5
LAST_MS: Final = 60_000


@dataclass(frozen=True, slots=True)
class Pending:
    """A timer of one session. ``due``: epoch ms. ``length``: how long it was set for, in ms. ``tries``: how
    often it was put off. ``turn``: the answer after which it was set.

    The kind `compaction` looks at a session after its context was summarised, `nudge` at a session that got
    feedback, `idle` at a session whose turn could not be judged yet.
    """

    session: str
    kind: PendingKind
    task: str
    turn: str
    due: int
    length: int
    tries: int = 0

    @property
    def key(self) -> tuple[str, PendingKind]:
        """A new action takes the place of an earlier one with the same key."""
        return self.session, self.kind

    def overdue(self, now_ms: int) -> bool:
        """Whether it is late by more than its length: the machine slept, or no daemon ran. Then drop it."""
        return now_ms - self.due > self.length

    def outranks(self, other: Pending) -> bool:
        """Whether ``other`` must wait for this one."""
        return RANK[self.kind] < RANK[other.kind]


def put_off(pending: Pending, now_ms: int) -> Pending | None:
    """The next try of a compaction whose session is busy: five after 15 s each, the last after 60 s (I32)."""
    if pending.tries > TRIES:
        return None
    length = AGAIN_MS if pending.tries < TRIES else LAST_MS
    return replace(pending, due=now_ms + length, length=length, tries=pending.tries + 1)
