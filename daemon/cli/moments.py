"""Moments in the past as people type them: ``8h``, ``18:00``, ``yesterday``, ``2026-01-31 18:00``.

All are local time. Other texts, and times in the future, are a ``UserError``.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from ..core.errors import UserError

FORMS = "8h, 90m, 2d, 18:00, today, yesterday, 2026-01-31 or 2026-01-31T18:00"
_SPAN = re.compile(r"(\d{1,6})\s*(s|m|min|h|d|w)")
_UNITS = {"s": "seconds", "m": "minutes", "min": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})")


def moment(text: str, now: datetime | None = None) -> int:
    """The moment that ``text`` means, in epoch ms. A time of day is the last one: 18:00, typed at 9:00, is
    that of yesterday. ``now``: local time without a zone.
    """
    now = now or datetime.now()  # noqa: DTZ005 - what a person types is local time
    try:
        found = _read(text.strip().lower(), now)
        ms = int(found.timestamp() * 1000)
    except (ValueError, OverflowError, OSError) as e:
        raise UserError(f"{text[:60]!r} is no time; write {FORMS}") from e
    if found > now:
        raise UserError(f"{text[:60]!r} lies in the future")
    return max(0, ms)


def _read(text: str, now: datetime) -> datetime:
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if text in {"today", "yesterday"}:
        return midnight - timedelta(days=text == "yesterday")
    if span := _SPAN.fullmatch(text):
        return now - timedelta(**{_UNITS[span[2]]: int(span[1])})
    if clock := _CLOCK.fullmatch(text):
        found = midnight.replace(hour=int(clock[1]), minute=int(clock[2]))
        return found if found <= now else found - timedelta(days=1)
    found = datetime.fromisoformat(text.upper())
    return found.astimezone().replace(tzinfo=None) if found.tzinfo else found
