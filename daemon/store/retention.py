"""Deletion by age: at most a day's worth in a day, and none while the clock can't be believed (I52). Every
table that forgets by time asks here.

The mark says when rows may be deleted next: a day after the last time. A clock that is more than a week ahead
of it, or more than a day behind it, has jumped, or no daemon ran for long: then nothing is too old for a day,
or until a person says that the clock is right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from .db import Statement

if TYPE_CHECKING:
    from .readonly import Reads

DAY_MS: Final = 86_400_000
WEEK_MS: Final = 7 * DAY_MS
NOTHING: Final = 0
"""The time at which nothing is too old."""
KINDS: Final = ("rows", "lessons")
"""Each has marks of its own."""
_NEXT: Final = "deleted"
"""When rows may be deleted next."""
_JUMPED: Final = "jumped"
"""While it stands still: the mark that the newest jump missed."""
_BEFORE: Final = "before"
"""While it stands still: the mark before the first jump."""


def old(table: str, column: str = "at") -> str:
    """SQL: whether a row is older than its one parameter, and among the first day's worth of the table."""
    return f"{column} < min(?, (SELECT min({column}) FROM {table}) + {DAY_MS})"


class Look(Struct, frozen=True):
    """``may``: rows may be deleted now. ``off_ms``: the distance of the clock from the mark, if it may have
    jumped. ``kept``: the statements to store for this look.
    """

    may: bool
    off_ms: int
    kept: tuple[Statement, ...]


class Standstill(Struct, frozen=True):
    """Nothing of ``what`` is deleted ``since`` then, ``until`` then (epoch ms), because the clock was off by
    ``off_ms``: ahead, or behind when it is negative.
    """

    what: str
    since: int
    until: int
    off_ms: int


def look(db: Reads, what: str, now: int) -> Look:
    """Says whether rows may be deleted now, once a day."""
    mark = _mark(db, _NEXT, what)
    if mark is None:
        return Look(may=False, off_ms=0, kept=(_put(_NEXT, what, now + DAY_MS),))
    if now - mark > WEEK_MS or mark - now > DAY_MS:
        jumped = (_put(_JUMPED, what, mark), _put(_BEFORE, what, mark, "IGNORE"))
        return Look(may=False, off_ms=now - mark, kept=(*jumped, _put(_NEXT, what, now + DAY_MS)))
    if now < mark:
        return Look(may=False, off_ms=0, kept=())
    following = mark + DAY_MS if now < mark + DAY_MS else now + DAY_MS
    return Look(may=True, off_ms=0, kept=(_put(_NEXT, what, following), _forget(what)))


def standstill(db: Reads, what: str, now: int) -> Standstill | None:
    """Why nothing of this is deleted now, if the clock is the reason."""
    until, jumped = _mark(db, _NEXT, what), _mark(db, _JUMPED, what)
    if until is None or jumped is None or until <= now:
        return None
    since = until - DAY_MS
    return Standstill(what, since, until, since - jumped)


def trust_clock(db: Reads, what: str, now: int) -> tuple[Statement, ...]:
    """A person says that the clock is right: the standstill is over, and rows may be deleted again a day
    after the last time. Where the last time is still to come by this clock, the day of the standstill stays.
    """
    before = _mark(db, _BEFORE, what)
    if before is None or before - now > DAY_MS or standstill(db, what, now) is None:
        return ()
    return (_put(_NEXT, what, max(before, now)), _forget(what))


def _mark(db: Reads, name: str, what: str) -> int | None:
    ((mark,),) = db.read("SELECT max(at) FROM told_once WHERE what = ?", (f"{name} {what}",))
    return mark if mark is None else int(mark)


def _put(name: str, what: str, at: int, other: str = "REPLACE") -> Statement:
    return (f"INSERT OR {other} INTO told_once (what, at) VALUES (?, ?)", [(f"{name} {what}", at)])


def _forget(what: str) -> Statement:
    return ("DELETE FROM told_once WHERE what = ?", [(f"{_JUMPED} {what}",), (f"{_BEFORE} {what}",)])
