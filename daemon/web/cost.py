"""The page Cost: what judging cost, beside the agent's own work; limits, pace, and the last 30 days.

It reads the same as ``reflectd cost``. Amounts in several currencies are never added up, and a price that
nobody told is unknown, not 0.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..store.ledger import By
    from .source import Source

# A chart of amounts by day, as numbers for a drawing: bars, their places, a scale. Pure; it draws nothing.
#
# The drawing is SVG that a template makes, so it prints, needs no script, and a screen reader has the
# table.

WIDTH: Final = 720.0
HEIGHT: Final = 180.0
LEFT: Final = 52.0
RIGHT: Final = 14.0
BELOW: Final = 22.0
TOP: Final = 10.0
MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_STEPS: Final = (1, 2, 2.5, 5, 10)


@dataclass(frozen=True, slots=True)
class Bar:
    """One day. ``label``: what it is called below the bar, "" where there is no room."""

    x: float
    y: float
    width: float
    height: float
    label: str
    said: str


@dataclass(frozen=True, slots=True)
class Chart:
    """``lines``: where a line of the scale is, and its number. ``cap``: where the limit is, None when it is
    not in the picture.
    """

    bars: tuple[Bar, ...]
    lines: tuple[tuple[float, str], ...]
    cap: float | None
    width: float = WIDTH
    height: float = HEIGHT + BELOW + TOP
    left: float = LEFT
    floor: float = HEIGHT + TOP


def chart(days: Sequence[tuple[str, float]], unit: str, cap: float = 0.0) -> Chart:
    """``days``: name (``2026-05-31``) and amount, oldest first."""
    most = max([amount for _, amount in days], default=0.0)
    if 0 < cap < 4 * most:  # a limit far above all days would flatten them
        most = max(most, cap)
    top = _round_up(most)
    step = (WIDTH - LEFT - RIGHT) / max(1, len(days))

    def y(amount: float) -> float:
        return round(TOP + HEIGHT * (1 - amount / top), 1)

    bars = tuple(
        Bar(
            x=round(LEFT + i * step + step * 0.15, 1),
            y=y(amount),
            width=round(step * 0.7, 1),
            height=round(HEIGHT + TOP - y(amount), 1),
            label=_label(day) if (len(days) - 1 - i) % 7 == 0 else "",
            said=f"{day}: {_number(amount)} {unit}",
        )
        for i, (day, amount) in enumerate(days)
    )
    lines = tuple((y(top * part), _number(top * part)) for part in (0.0, 0.5, 1.0))
    return Chart(bars, lines, y(cap) if 0 < cap <= top else None)


def _label(day: str) -> str:
    return f"{int(day[8:10])} {MONTHS[int(day[5:7]) - 1]}"


def _round_up(most: float) -> float:
    """The least round number that is not below it."""
    if most <= 0:
        return 1.0
    power = 10.0 ** (len(f"{int(most)}") - 1) if most >= 1 else 0.0001
    while power * 10 < most:
        power *= 10
    return next(power * step for step in _STEPS if power * step >= most)


def _number(amount: float) -> str:
    return f"{amount:,.0f}" if amount >= 100 else f"{amount:.4f}".rstrip("0").rstrip(".") or "0"


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
