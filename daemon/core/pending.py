"""What is to happen to a session later, if nothing else happens first (DESIGN §3, timers).

One pending action per session. What ranks lower never takes the place of what ranks higher; feedback needs no
timer, and a new one of it takes the place of every nudge.
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
    """``due``: epoch ms; ``length``: how long it was set for, ms; ``tries``: how often it was put off.

    `compaction` looks at a session after its context was summarised, `nudge` at one that got feedback, `idle`
    at one whose turn could not be judged. ``turn``: the answer that it was set after.
    """

    session: str
    kind: PendingKind
    task: str
    turn: str
    due: int
    length: int
    tries: int = 0

    def overdue(self, now_ms: int) -> bool:
        """Late by more than its length: the machine slept, or we were not there. It is dropped."""
        return now_ms - self.due > self.length

    def outranks(self, other: Pending | None) -> bool:
        """May this one take the other's place?"""
        return other is None or RANK[self.kind] <= RANK[other.kind]


def put_off(p: Pending, now_ms: int) -> Pending | None:
    """The next try of a compaction whose session is busy: every 15 s, five times, then after 60 s (I32)."""
    if p.tries > TRIES:
        return None
    length = AGAIN_MS if p.tries < TRIES else LAST_MS
    return replace(p, due=now_ms + length, length=length, tries=p.tries + 1)
