"""What people type for a moment in the past."""

from __future__ import annotations

from datetime import datetime

import pytest

from daemon.cli.verdicts.history import moment
from daemon.core.errors import UserError

NOW = datetime.fromisoformat("2026-03-10T09:30:15")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("90s", "2026-03-10T09:28:45"),
        ("90m", "2026-03-10T08:00:15"),
        ("8h", "2026-03-10T01:30:15"),
        (" 2 D ", "2026-03-08T09:30:15"),
        ("1w", "2026-03-03T09:30:15"),
        ("9:30", "2026-03-10T09:30"),
        ("18:00", "2026-03-09T18:00"),
        ("today", "2026-03-10"),
        ("yesterday", "2026-03-09"),
        ("2026-01-31", "2026-01-31"),
        ("2026-01-31 18:00", "2026-01-31T18:00"),
        ("2026-01-31t18:00:05", "2026-01-31T18:00:05"),
    ],
)
def test_a_moment_is_understood(text: str, found: str) -> None:
    """Spans, times of day, days: local time, and a time of day is the last one."""
    wanted = datetime.fromisoformat(found)
    assert moment(text, NOW) == int(wanted.timestamp() * 1000)


@pytest.mark.parametrize(
    "text", ["", "moon", "8", "25:00", "9:75", "8y", "2026-13-01", "2026-03-11", "999999w", "-8h", "0x8h"]
)
def test_what_is_no_moment_in_the_past_is_refused(text: str) -> None:
    """In words that name it."""
    with pytest.raises(UserError, match=r"is no time|in the future"):
        moment(text, NOW)
