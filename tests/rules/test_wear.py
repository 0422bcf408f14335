"""How rules wear: what contradicted them since they were learned, and when they were last said."""

from __future__ import annotations

from typing import Any

import pytest

from daemon.rules.rows import Standing
from daemon.rules.wear import Wear, wear

ROW = Standing("rule-001", "Use npm", True, False, "CLAUDE.md", "2025-06-01", sources=("sig-001",))


def signal(name: str, content: str, first: str, last: str, seen: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "id": name, "type": "correction", "content": content, "status": "pending", "occurrences": seen,
        "first_seen": first, "last_seen": last, **more,
    }  # fmt: skip


def test_only_what_came_later_contradicts() -> None:
    """All sessions of a signal that began later, one of a signal that only went on; as a model said."""
    signals = [
        signal("sig-002", "Use bun", "2025-07-01", "2025-08-01", 3, against=["rule-001"]),
        signal("sig-003", "Never use npm", "2025-01-01", "2025-07-01", 9, against=["rule-001"]),
        signal("sig-004", "Use yarn", "2025-01-01", "2025-05-01", 9, against=["rule-001"]),
        signal(
            "sig-005", "Use pnpm", "2025-07-01", "2025-08-01", 9, status="dismissed", against=["rule-001"]
        ),
        signal("sig-006", "Use pnpm", "2025-07-01", "2025-08-01", 9, type="feedback", against=["rule-001"]),
        signal("sig-007", "Use bun", "2025-07-01", "2025-08-01", 9, against=["rule-002"]),
    ]
    assert wear(ROW, signals, "2025-08-01") == Wear(4, ("sig-002", "sig-003"), "2025-06-01", 61)
    assert wear(ROW, signals, "2025-08-01").worn


@pytest.mark.parametrize(
    ("signals", "today", "days", "stale"),
    [
        ([], "2025-08-30", 90, False),
        ([], "2025-08-31", 91, True),
        ([signal("sig-001", "whatever", "2025-01-01", "2025-08-01")], "2025-08-31", 30, False),
        ([signal("sig-009", "use npm!", "2025-01-01", "2025-08-30")], "2025-08-31", 1, False),
        ([], "2025-01-01", 0, False),
    ],
)
def test_who_says_it_again_confirms_it(
    signals: list[dict[str, Any]], today: str, days: int, stale: bool
) -> None:
    """Its own signals and others that say the same; a line without a date is never stale."""
    found = wear(ROW, signals, today)
    assert (found.days, found.stale, found.worn) == (days, stale, False)
    undated = Standing("rule-002", "Use npm", True, False, "CLAUDE.md")
    assert not wear(undated, [], today).stale
