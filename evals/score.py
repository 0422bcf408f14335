"""Figures from outcomes: precision, recall and F1 of each class with 95 % intervals, coverage, tokens. Pure.

Coverage is the share of cases that get any verdict; the others are unscored. A pending case waits for a reply
from a file: of it only the prompt is measured. Intervals are Wilson's (``engine/shares``). F1 is no share,
but F1 = 2J / (1 + J) with J = TP / (TP + FP + FN), which is one: its interval is carried over.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Final, get_args

from msgspec import Struct

from daemon.engine.page import Share, wilson
from daemon.replay.cases import Expect

if TYPE_CHECKING:
    from collections.abc import Sequence

CLASSES: Final[tuple[str, ...]] = get_args(Expect)
PENDING: Final = "pending"
CHARS_PER_TOKEN: Final = 4  # of English, about; where a model counts, its figure is taken


class Outcome(Struct, frozen=True):
    """One case: what was expected, what came (``complete`` …, ``unscored`` or ``pending``), and what it took.

    ``cost`` is USD, None when unknown. ``broken``: called complete against a check that failed after the last
    write. ``system_chars`` and ``data_chars``: the length of the first prompt's two texts. ``counted``: its
    tokens as a model counted them, None where none did.
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
    system_chars: int = 0
    data_chars: int = 0
    counted: int | None = None


class ClassScore(Struct, frozen=True):
    """How one class was met."""

    name: str
    cases: int
    precision: Share
    recall: Share
    f1: Share
    coverage: Share


class Spread(Struct, frozen=True):
    """The middle, the 90th percentile and the largest of some counts of tokens."""

    median: float
    p90: int
    max: int


class PromptTokens(Struct, frozen=True):
    """How long the first prompt of each case is: what a model is told, the data, and both.

    ``counted``: for how many cases a model counted ``prompt``; all else is estimated.
    """

    system: Spread
    data: Spread
    prompt: Spread
    counted: int


class Score(Struct, frozen=True):
    """All figures of one set of outcomes. ``cost`` is None when the price of any call is unknown.

    ``cases`` are those that were judged; ``pending`` ones come on top.
    """

    cases: int
    pending: int
    right: int
    unscored: int
    broken: int
    coverage: Share
    classes: tuple[ClassScore, ...]
    prompt_tokens: PromptTokens
    calls: int
    tokens_in: int
    tokens_out: int
    cost: float | None
    median_ms: float
    p95_ms: int


def score(given: Sequence[Outcome]) -> Score:
    """The figures. An unscored case is missed by its class and claimed by none."""
    outcomes = [o for o in given if o.got != PENDING]
    costs = [o.cost for o in outcomes if o.cost is not None]
    times = sorted(o.ms for o in outcomes)
    return Score(
        cases=len(outcomes),
        pending=len(given) - len(outcomes),
        right=sum(o.got == o.expect for o in outcomes),
        unscored=sum(o.got not in CLASSES for o in outcomes),
        broken=sum(o.broken for o in outcomes),
        coverage=_coverage(outcomes),
        classes=tuple(_class(name, outcomes) for name in CLASSES),
        prompt_tokens=_prompt_tokens(given),
        calls=sum(o.calls for o in outcomes),
        tokens_in=sum(o.tokens_in for o in outcomes),
        tokens_out=sum(o.tokens_out for o in outcomes),
        cost=sum(costs) if len(costs) == len(outcomes) else None,
        median_ms=median(times) if times else 0.0,
        p95_ms=_percentile(times, 95),
    )


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
    coverage = _coverage([o for o in outcomes if o.expect == name])
    return ClassScore(name, cases, wilson(hits, claimed), wilson(hits, cases), f1, coverage)


def _coverage(outcomes: Sequence[Outcome]) -> Share:
    return wilson(sum(o.got in CLASSES for o in outcomes), len(outcomes))


def _prompt_tokens(outcomes: Sequence[Outcome]) -> PromptTokens:
    system = [_estimated(o.system_chars) for o in outcomes]
    data = [_estimated(o.data_chars) for o in outcomes]
    both = [_estimated(o.system_chars + o.data_chars) if o.counted is None else o.counted for o in outcomes]
    counted = sum(o.counted is not None for o in outcomes)
    return PromptTokens(_spread(system), _spread(data), _spread(both), counted)


def _estimated(chars: int) -> int:
    return -(-chars // CHARS_PER_TOKEN)


def _spread(counts: list[int]) -> Spread:
    return Spread(median(counts) if counts else 0.0, _percentile(sorted(counts), 90), max(counts, default=0))


def _percentile(ordered: Sequence[int], percent: int) -> int:
    """The smallest value that so many percent do not exceed; 0 of none."""
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)] if ordered else 0


def _doubled(share: float) -> float:
    return 2 * share / (1 + share)
