"""The page Cost: what judging cost, beside the agent's own work; limits, pace, and the last 30 days.

It reads the same as ``reflectd cost``. Amounts in several currencies are never added up, and a price that
nobody told is unknown, not 0.
"""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from .chart import chart

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..store.ledger import By
    from .source import Source

DAYS: Final = 30
GROUPS: Final = 200
PACE_DAYS: Final = 7
TABLES: Final[tuple[tuple[By, str], ...]] = (
    ("purpose", "By purpose"),
    ("model", "By model"),
    ("project", "By project"),
    ("account", "By account"),
)
Json = dict[str, Any]


async def read(source: Source, _: Mapping[str, str]) -> Json:
    """Sums of today and of 30 days, tables, and the numbers of the chart."""
    status = source.status.status()
    now = datetime.fromtimestamp(source.clock.now_ms() / 1000).astimezone()
    today = now.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    days = [(today - timedelta(days=n)).date() for n in reversed(range(DAYS))]
    since = int((today - timedelta(days=DAYS - 1)).astimezone().timestamp() * 1000)
    of_today, by_day, found = await asyncio.gather(
        source.status.ledger("", int(today.astimezone().timestamp() * 1000), 1, None),
        source.status.ledger("", since, GROUPS, "day"),
        source.status.groups(since, GROUPS, [by for by, _ in TABLES]),
    )
    amounts = {g["name"]: g for g in by_day["groups"]}
    spent = [(day.isoformat(), float(amounts.get(day.isoformat(), {}).get("cost") or 0)) for day in days]
    tokens = [
        (day.isoformat(), float(amounts.get(day.isoformat(), {}).get("unpriced_tokens") or 0)) for day in days
    ]
    priced = any(amount for _, amount in spent)
    tables = [{"title": title, "by": by, "groups": found[by]} for by, title in TABLES]
    limits = status["limits"]
    return {
        "today": of_today["sums"],
        "agent_today": of_today["agent"],
        "all": by_day["sums"],
        "agent": by_day["agent"],
        "spent": status["spent_today"],
        "asked": status["asked_today"],
        "limits": limits,
        "month": status["month"],
        "pace": sum(amount for _, amount in spent[-PACE_DAYS:]) / PACE_DAYS,
        "pace_days": PACE_DAYS,
        "days": DAYS,
        "chart": chart(spent, "USD", limits["cents_per_day"] / 100)
        if priced or not any(n for _, n in tokens)
        else chart(tokens, "tokens at an unknown price"),
        "unit": "USD" if priced or not any(n for _, n in tokens) else "tokens at an unknown price",
        "by_day": [amounts[d.isoformat()] for d in reversed(days) if d.isoformat() in amounts],
        "tables": tables,
    }
