"""What may be deleted for its age: at most a day's worth in a day, and none while the clock can't be believed
(I52). Every table that forgets by time asks here.

The mark says when rows may be deleted next: a day after the last time. A clock that is more than a week
behind it, or more than a day before it, has jumped, or no daemon ran for long: then nothing is too old for a
day.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .db import Statement
    from .readonly import Reads

DAY_MS: Final = 86_400_000
WEEK_MS: Final = 7 * DAY_MS
NOTHING: Final = 0
"""The time at which nothing is too old."""


def old(table: str, column: str = "at") -> str:
    """SQL: whether a row is older than its one parameter, and among the first day's worth of the table."""
    return f"{column} < min(?, (SELECT min({column}) FROM {table}) + {DAY_MS})"


def next_time(db: Reads, what: str, now: int) -> tuple[bool, int, int]:
    """Whether rows may be deleted now, when they may be next, and by how much the clock is off the mark, if
    it may have jumped.
    """
    ((mark,),) = db.read("SELECT max(at) FROM told_once WHERE what = ?", (f"deleted {what}",))
    if mark is None:
        return False, now + DAY_MS, 0
    if now - mark > WEEK_MS or mark - now > DAY_MS:
        return False, now + DAY_MS, now - mark
    if now < mark:
        return False, mark, 0
    return True, mark + DAY_MS if now < mark + DAY_MS else now + DAY_MS, 0


def set_next(what: str, at: int) -> Statement:
    """Set the mark."""
    return ("INSERT OR REPLACE INTO told_once (what, at) VALUES (?, ?)", [(f"deleted {what}", at)])
