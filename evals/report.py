"""The figures as a table for people, and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from evals.score import CLASSES, ClassScore, Outcome, Score, Share

if TYPE_CHECKING:
    from collections.abc import Sequence

NAME, CELL = 14, 19


def table(title: str, found: Score, outcomes: Sequence[Outcome]) -> list[str]:
    """Per class, then totals, the invariant, and each wrong answer with what a person said."""
    head = f"{title}: {found.cases} cases, {found.right} right, {found.unscored} unscored"
    lines = [head, "", f"{'class':<{NAME}}{'cases':>6}" + "".join(f"{h:>{CELL}}" for h in COLUMNS)]
    lines += [_row(c) for c in found.classes]
    counts = _confusion(outcomes)
    lines += ["", f"{'expected':<{NAME}}" + "".join(f"{got:>14}" for got in (*CLASSES, "unscored"))]
    lines += [f"{name:<{NAME}}" + "".join(f"{n:>14}" for n in row) for name, row in counts.items()]
    cost = "unknown" if found.cost is None else f"{found.cost:.4f} USD"
    lines += [
        "",
        f"calls {found.calls}, tokens {found.tokens_in} in and {found.tokens_out} out, cost {cost}, "
        f"latency median {found.median_ms:.0f} ms, p95 {found.p95_ms:.0f} ms",
        f"complete on a failed check after the last write: {found.broken}",
    ]
    wrong = [o for o in outcomes if o.got != o.expect]
    lines += ["", "wrong or unscored:"] if wrong else ["", "nothing wrong"]
    for o in wrong:
        lines += [f"  {o.name}: expected {o.expect}, got {o.got}", f"    {o.why}"]
    return lines


COLUMNS = ("precision", "recall", "F1")


def as_json(found: Score, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The same, for programs."""
    return {**asdict(found), "outcomes": [asdict(o) for o in outcomes]}


def _row(c: ClassScore) -> str:
    return f"{c.name:<{NAME}}{c.cases:>6}" + "".join(
        f"{_share(s):>{CELL}}" for s in (c.precision, c.recall, c.f1)
    )


def _share(s: Share) -> str:
    return "-" if s.value is None else f"{s.value:.2f} ({s.low:.2f}-{s.high:.2f})"


def _confusion(outcomes: Sequence[Outcome]) -> dict[str, list[int]]:
    columns = (*CLASSES, "unscored")
    found = {name: [0] * len(columns) for name in CLASSES}
    for o in outcomes:
        found[o.expect][columns.index(o.got if o.got in CLASSES else "unscored")] += 1
    return found
