"""The figures as a table for people, and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from evals.score import CHARS_PER_TOKEN, CLASSES, PENDING, ClassScore, Outcome, PromptTokens, Score

if TYPE_CHECKING:
    from collections.abc import Sequence

    from daemon.engine.page import Share

NAME, CELL, COUNTED = 14, 18, 31


def table(title: str, found: Score, outcomes: Sequence[Outcome]) -> list[str]:
    """Per class, coverage, totals, the invariant, and each wrong answer with what a person said."""
    head = f"{title}: {found.cases} cases, {found.right} right, {found.unscored} unscored"
    head += f", {found.pending} pending" if found.pending else ""
    columns = f"{'precision':>{COUNTED}}{'recall':>{COUNTED}}{'F1':>{CELL}}{'speaks on':>{CELL}}"
    lines = [head, "", f"{'class':<{NAME}}{'cases':>6}{columns}"]
    lines += [_row(c) for c in found.classes]
    counts = _confusion(outcomes)
    lines += ["", f"{'expected':<{NAME}}" + "".join(f"{got:>14}" for got in (*CLASSES, "unscored"))]
    lines += [f"{name:<{NAME}}" + "".join(f"{n:>14}" for n in row) for name, row in counts.items()]
    cost = "unknown" if found.cost is None else f"{found.cost:.4f} USD"
    tokens = f"{found.tokens_in} in and {found.tokens_out} out" if found.tokens_in else "not counted"
    lines += ["", f"speaks on {counted(found.coverage)}", "", *_prompts(found.prompt_tokens)]
    lines += [
        "",
        f"calls {found.calls}, tokens {tokens}, cost {cost}, "
        f"latency median {found.median_ms:.0f} ms, p95 {found.p95_ms} ms",
        f"complete on a failed check after the last write: {found.broken}",
    ]
    wrong = [o for o in outcomes if o.got not in {o.expect, PENDING}]
    lines += ["", "wrong or unscored:"] if wrong else ["", "nothing wrong"]
    for o in wrong:
        lines += [f"  {o.name}: expected {o.expect}, got {o.got}", f"    {o.why}"]
    if found.pending:
        lines += ["", "pending, a prompt waits for its reply:"]
        lines += [f"  {o.name}: {o.why}" for o in outcomes if o.got == PENDING]
    return lines


def as_json(found: Score, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The same, for programs."""
    return {**to_builtins(found), "outcomes": [to_builtins(o) for o in outcomes]}


def counted(s: Share) -> str:
    """A share with its counts and its interval: ``62 of 62, 1.00 (0.94-1.00)``."""
    return f"{s.hits} of {s.of}, {_share(s)}"


def _row(c: ClassScore) -> str:
    return (
        f"{c.name:<{NAME}}{c.cases:>6}{counted(c.precision):>{COUNTED}}{counted(c.recall):>{COUNTED}}"
        f"{_share(c.f1):>{CELL}}{f'{c.coverage.hits} of {c.coverage.of}':>{CELL}}"
    )


def _share(s: Share) -> str:
    return "-" if s.value is None else f"{s.value:.2f} ({s.low:.2f}-{s.high:.2f})"


def _prompts(found: PromptTokens) -> list[str]:
    said = f"characters / {CHARS_PER_TOKEN}"
    whole = f"counted by the model for {found.counted} cases, else {said}" if found.counted else said
    parts = (("system text", found.system, said), ("data", found.data, said), ("both", found.prompt, whole))
    return [
        f"{'first prompt':<{NAME}}{'median':>9}{'p90':>9}{'max':>9}  tokens",
        *(f"{name:<{NAME}}{of.median:>9.0f}{of.p90:>9}{of.max:>9}  {how}" for name, of, how in parts),
    ]


def _confusion(outcomes: Sequence[Outcome]) -> dict[str, list[int]]:
    columns = (*CLASSES, "unscored")
    found = {name: [0] * len(columns) for name in CLASSES}
    for o in outcomes:
        if o.got != PENDING:
            found[o.expect][columns.index(o.got if o.got in CLASSES else "unscored")] += 1
    return found
