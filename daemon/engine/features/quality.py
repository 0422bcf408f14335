"""How good the verdicts were, as far as the person said so: a page of the dashboard, and nothing else.

Reads the verdicts that are kept, the person's labelled cases and what they said of a back-test. Nothing here
judges, and nothing is written.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final, get_args

from ...core.errors import Unavailable
from ...core.verdict import FinalState
from ...store.readonly import ReadOnly
from ...store.verdicts import Verdicts
from ..feature import Feature, Page
from ..page import piece, row, section, session, share, when, wilson

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ...files.cases import Saved
    from ..engine import Engine

Json = dict[str, Any]
CLASSES: Final = ("complete", "incomplete", "awaiting_user")
STATES: Final[tuple[str, ...]] = get_args(FinalState)
WEEKS: Final = 26
WEEK_MS: Final = 7 * 86_400_000
MONDAY_MS: Final = 4 * 86_400_000  # 1970-01-05
READ: Final = 500  # case files, the newest


class Quality(Feature):
    name: ClassVar = "quality"

    def __init__(self, parts: Engine) -> None:
        super().__init__(parts)
        self._database = parts.world.db.path
        self._clock = parts.world.clock
        self._alone = asyncio.Lock()

    def pages(self) -> Sequence[Page]:
        return (Page("quality", "Quality", self._read),)

    async def _read(self, query: Mapping[str, Any]) -> Mapping[str, Any]:
        async with self._alone:
            return await asyncio.to_thread(read, self._database, query, self._clock.now_ms())


def read(database: Path, query: Mapping[str, Any], now_ms: int) -> Json:
    """All sections of the page, from the daemon's database, which is read beside it, and the state folder."""
    from ...files.cases import CaseFolder, summary  # not needed to start

    with ReadOnly(database) as db:
        weeks = _weeks(Verdicts(db), now_ms)
        try:
            paths = CaseFolder(database.parent).paths()
        except Unavailable as error:
            return {"sections": [section("Labelled cases", (), (), text=str(error)), weeks]}
        cases = [c for c in map(summary, paths[:READ]) if not c.problem and c.expect]
        cases.sort(key=lambda c: (-c.at, c.path.name))
        agreement = _agreement(cases, len(paths) - READ)
        disputes = _disputes(Verdicts(db), [c for c in cases if c.judged not in {"", c.expect}], query)
    return {"sections": [agreement, _backtest(database.parent), weeks, disputes]}


def _agreement(cases: Sequence[Saved], left: int) -> Json:
    """How often a verdict was right when it said so, and how often it said so when it should have."""
    rows = []
    for name in CLASSES:
        hits = sum(c.judged == c.expect == name for c in cases)
        said = sum(c.judged == name for c in cases)
        due = sum(c.expect == name for c in cases)
        rows.append(row(_words(name), said, share(wilson(hits, said)), due, share(wilson(hits, due))))
    right = wilson(sum(c.judged == c.expect for c in cases), len(cases))
    rows.append(row("all", len(cases), share(right), None, None))
    text = (
        "Cases that you labelled. People label mostly what was wrong, so these figures are lower than those "
        "of all verdicts. Beside each share is the interval that the true one is in, 95 times of 100."
    )
    text += f" Of {left} older cases nothing is counted here." if left > 0 else ""
    columns = ("class", "judged so", "right when it said so", "labelled so", "found of those")
    return section("Agreement with your labels", columns, rows, text=text)


def _backtest(state_dir: Path) -> Json:
    """A person's labels on feedbacks of the back-test, by judge."""
    from ...store.backtests import answers  # not needed to start

    text = "Feedbacks of past sessions that you looked at with reflectd judge --past --label."
    rows = []
    try:
        counts = Counter(answers(state_dir))
    except Unavailable as error:
        counts, text = Counter(), str(error)
    for judge in sorted({judge for judge, _ in counts}):
        known = sum(n for (by, answer), n in counts.items() if by == judge and answer != "unknown")
        right = wilson(counts[judge, "right"], known)
        rows.append(row(judge, known, share(right), counts[judge, "unknown"]))
    return section("Back-test", ("judge", "looked at", "right", "don't know"), rows, text=text)


def _weeks(verdicts: Verdicts, now_ms: int) -> Json:
    """How turns ended, by week."""
    this = (now_ms - MONDAY_MS) // WEEK_MS
    begin, end = (MONDAY_MS + week * WEEK_MS for week in (this - WEEKS + 1, this + WEEKS))
    counts = verdicts.by_week(begin, end, MONDAY_MS, WEEK_MS)
    rows = []
    for week in sorted({week for week, _ in counts}, reverse=True):
        monday = datetime.fromtimestamp((MONDAY_MS + week * WEEK_MS) / 1000, UTC).date()
        numbers = [counts.get((week, state), 0) for state in STATES]
        rows.append(row(monday.isoformat(), *numbers, sum(numbers)))
    text = f"Verdicts of the last {WEEKS} weeks; a week begins on Monday, in UTC."
    return section("States by week", ("week", *map(_words, STATES), "all"), rows, text=text)


def _disputes(verdicts: Verdicts, cases: Sequence[Saved], query: Mapping[str, Any]) -> Json:
    """One by one. A session that the daemon never judged, of a back-test, has no page."""
    some, more = piece(cases, query, "disputes")
    rows = [
        row(
            when(c.at), session(c.session) if verdicts.how_many(c.session) else c.session, c.request,
            _words(c.judged), _words(c.expect), c.why, c.path.stem,
        )
        for c in some
    ]  # fmt: skip
    columns = ("when", "session", "request", "judged", "should be", "why", "case")
    text = "Take one back in a terminal: reflectd dispute remove, and its name."
    return section("Disputes", columns, rows, text=text, more=more)


def _words(state: str) -> str:
    return state.replace("_", " ")
