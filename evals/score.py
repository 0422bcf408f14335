"""Figures from outcomes: precision, recall and F1 of each class with 95 % intervals. Pure.

Intervals are Wilson's, which hold for few cases and for shares near 0 and 1. F1 is no share, but
F1 = 2J / (1 + J) with J = TP / (TP + FP + FN), which is one: its interval is carried over.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist, median
from typing import TYPE_CHECKING, Final, get_args

from daemon.engine.cases import Expect

if TYPE_CHECKING:
    from collections.abc import Sequence

CLASSES: Final[tuple[str, ...]] = get_args(Expect)
Z: Final = NormalDist().inv_cdf(0.975)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One case: what was expected, what came (``complete`` … or ``unscored``), and what it took.

    ``cost`` is USD, None when unknown. ``broken``: called complete against a check that failed after the last
    write.
    """

    name: str
    split: str
    expect: str
    got: str
    ms: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    calls: int = 0
    cost: float | None = 0.0
    why: str = ""
    broken: bool = False


@dataclass(frozen=True, slots=True)
class Share:
    """``hits`` of ``of``, with the interval; ``value`` is None where there is nothing to divide by."""

    hits: int
    of: int
    value: float | None
    low: float = 0.0
    high: float = 1.0


@dataclass(frozen=True, slots=True)
class ClassScore:
    """How one class was met."""

    name: str
    cases: int
    precision: Share
    recall: Share
    f1: Share


@dataclass(frozen=True, slots=True)
class Score:
    """All figures of one set of outcomes. ``cost`` is None when the price of any call is unknown."""

    cases: int
    right: int
    unscored: int
    broken: int
    classes: tuple[ClassScore, ...]
    calls: int
    tokens_in: int
    tokens_out: int
    cost: float | None
    median_ms: float
    p95_ms: float


def score(outcomes: Sequence[Outcome]) -> Score:
    """The figures. An unscored case is missed by its class and claimed by none."""
    costs = [o.cost for o in outcomes if o.cost is not None]
    times = sorted(o.ms for o in outcomes)
    return Score(
        cases=len(outcomes),
        right=sum(o.got == o.expect for o in outcomes),
        unscored=sum(o.got not in CLASSES for o in outcomes),
        broken=sum(o.broken for o in outcomes),
        classes=tuple(_class(name, outcomes) for name in CLASSES),
        calls=sum(o.calls for o in outcomes),
        tokens_in=sum(o.tokens_in for o in outcomes),
        tokens_out=sum(o.tokens_out for o in outcomes),
        cost=sum(costs) if len(costs) == len(outcomes) else None,
        median_ms=median(times) if times else 0.0,
        p95_ms=times[max(0, -(-len(times) * 95 // 100) - 1)] if times else 0.0,
    )


def wilson(hits: int, of: int) -> Share:
    """The share ``hits / of`` with its 95 % interval."""
    if not of:
        return Share(hits, of, None)
    p, n = hits / of, of
    middle = p + Z * Z / (2 * n)
    half = Z * sqrt(p * (1 - p) / n + Z * Z / (4 * n * n))
    scale = 1 + Z * Z / n
    return Share(hits, of, p, max(0.0, (middle - half) / scale), min(1.0, (middle + half) / scale))


def _class(name: str, outcomes: Sequence[Outcome]) -> ClassScore:
    hits = sum(o.got == o.expect == name for o in outcomes)
    claimed = sum(o.got == name for o in outcomes)
    cases = sum(o.expect == name for o in outcomes)
    jaccard = wilson(hits, claimed + cases - hits)
    f1 = Share(
        2 * hits,
        claimed + cases,
        None if jaccard.value is None else _doubled(jaccard.value),
        _doubled(jaccard.low),
        _doubled(jaccard.high),
    )
    return ClassScore(name, cases, wilson(hits, claimed), wilson(hits, cases), f1)


def _doubled(share: float) -> float:
    return 2 * share / (1 + share)
