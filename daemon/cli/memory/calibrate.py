"""``reflectd memory calibrate FILE``: how often tasks of the person's own get the right lesson, and how often
a wrong one, at each line that could be drawn.

Reads tasks from a file, one JSON a line; asks no model but the one for embeddings, where there is one, and
changes nothing. Exit codes: 0 shown · 2 a file that can't be used.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ...core.errors import UserError
from ...memory.margin import Task, at, curve, line_of, outcomes_of, texts_of, trials
from ...memory.weights import WITH_MEANING, WITHOUT_MEANING
from ..render import Paint, print_json
from ..settings import look
from ..terminal import show

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from ...core.settings import Settings
    from ...memory.margin import Point

ROWS: Final = 12
"""Lines of the chart: so many are told apart on a screen."""
WIDTH: Final = 40
LONGEST: Final = 10_000_000


def calibrate(args: argparse.Namespace) -> int:
    """Measure, and draw the curve."""
    settings, _ = look(args)
    tasks = read(Path(args.file))
    model, rows = asyncio.run(_vectors(settings, tasks))
    weights = WITHOUT_MEANING if rows is None else WITH_MEANING
    outcomes = outcomes_of(trials(tasks, rows), weights)
    points, now, best = curve(outcomes), at(outcomes, weights.line), line_of(outcomes)
    if args.json:
        print_json({
            "tasks": len(tasks),
            "embedding": model,
            "now": now._asdict(),
            "best": best._asdict(),
            "curve": [p._asdict() for p in points],
        })  # fmt: skip
        return 0
    found = lines(points, now, best, model or "no model for embeddings: words alone", Paint())
    show(found, pager=not args.no_pager)
    return 0


def read(path: Path) -> list[Task]:
    """The tasks of a file. Raises ``UserError`` where one is wrong, or nothing can be measured."""
    import msgspec

    try:
        if path.stat().st_size > LONGEST:
            raise UserError(f"{path} has more than {LONGEST // 1_000_000} MB")
        raw = path.read_bytes()
    except OSError as e:
        raise UserError(f"{path} can't be read: {e.strerror}") from e
    found: list[Task] = []
    for number, line in enumerate(raw.splitlines(), 1):
        try:
            found += [msgspec.json.decode(line, type=Task)] if line.strip() else []
        except (msgspec.MsgspecError, UnicodeDecodeError) as e:
            raise UserError(f"{path}, line {number}: {e}") from None
    stored = {t.group for t in found if t.stored and t.group}
    asked = [t for t in found if not t.stored]
    if not any(t.group in stored for t in asked) or not any(t.group is None for t in asked):
        raise UserError(
            f"{path}: there must be tasks with a stored lesson, and some without (the guide says how)"
        )
    return found


def lines(points: Sequence[Point], now: Point, best: Point, model: str, paint: Paint) -> list[str]:
    """The curve for a person: a row for each of some lines, the highest first."""
    step = max(1, len(points) // ROWS)
    shown = sorted({*points[::step], now, best}, key=lambda p: -p.line)
    head = f"{'line':>5}  {'right':>5}  {'wrong':>5}  right ({'█'}) against wrong ({'░'})"
    rows = []
    for p in shown:
        mark = "  now" if p == now else "  most right with 10 % wrong" if p == best else ""
        bar = "█" * round(p.hits * WIDTH / 2) + "░" * round(p.false * WIDTH / 2)
        rows.append(f"{p.line:5.2f}  {p.hits:5.0%}  {p.false:5.0%}  {bar}{mark}")
    return [
        f"How often a task gets its lesson ({model})",
        paint(head, "dim"),
        *rows,
        "",
        *paint.row("", "right: of tasks whose lesson is stored, those that get it among at most three", "  "),
        *paint.row("", "wrong: of all other tasks, those that get any lesson", "  "),
    ]


async def _vectors(
    settings: Settings, tasks: Sequence[Task], env: Mapping[str, str] = os.environ
) -> tuple[str, dict[str, Any] | None]:
    """The model's name and the vector of each text; None without a model."""
    from ...embed.select import choose, embedder

    model = embedder(choose(settings, env), settings)
    if model is None:
        return "", None
    try:
        texts = texts_of(tasks)
        return model.model, dict(zip(texts, (await model.embed(texts)).rows, strict=True))
    finally:
        await model.close()
