"""How good the verdicts were, as far as the person said so: a page of the dashboard, and nothing else."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final, get_args

from ...core.errors import Unavailable
from ...core.verdict import FinalState
from ...files.cases import CaseFolder, Saved, summary
from ...store.backtests import answers as answers_of
from ...store.readonly import ReadOnly
from ...store.verdicts import Verdicts
from ..feature import Feature, Page
from ..page import piece, row, section, session, share, when, wilson

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ..engine import Engine

# The figures of the page Quality: what became of turns, what a person disputed, how often they agreed.
#
# Reads the verdicts that are kept and the person's labelled cases. A case file is read once and again when
# it was changed. Nothing here judges, and nothing is written. Blocks: call it in a thread, one at a time.

Json = dict[str, Any]
CLASSES: Final = ("complete", "incomplete", "awaiting_user")
STATES: Final[tuple[str, ...]] = get_args(FinalState)
WEEKS: Final = 26
HOUR_MS: Final = 3_600_000
WEEK_MS: Final = 7 * 86_400_000
MONDAY_MS: Final = 4 * 86_400_000  # 1970-01-05
READ: Final = 2_000  # case files, the newest
Stamp = tuple[int, int, int]


class Figures:
    """One for the daemon."""

    def __init__(self, database: Path) -> None:
        """``database``: the daemon's, read beside it, so that a long count does not hold up the daemon."""
        self._database, state_dir = database, database.parent
        self._folder = CaseFolder(state_dir)
        self._state_dir = state_dir
        self._over: tuple[int, dict[tuple[int, str], int]] | None = None
        self._known: dict[Path, tuple[Stamp, Saved]] = {}

    def read(self, query: Mapping[str, Any], now_ms: int) -> Json:
        """All sections of the page."""
        try:
            cases, left = self._cases()
        except Unavailable as error:
            return {"sections": [section("Labelled cases", (), (), text=str(error)), self._weeks(now_ms)]}
        told = f"Of {left} older cases nothing is counted here." if left else ""
        return {
            "sections": [
                self._agreement(cases, told),
                _disputes(cases, now_ms),
                self._backtest(),
                self._weeks(now_ms),
                self._listed(cases, query),
            ]
        }

    def _cases(self) -> tuple[list[Saved], int]:
        """The labelled cases, newest first, and how many more there are."""
        paths = self._folder.paths()
        for path in self._known.keys() - set(paths[:READ]):
            del self._known[path]
        found = [self._case(path) for path in paths[:READ]]
        labelled = [c for c in found if not c.problem and c.expect]
        return sorted(labelled, key=lambda c: (-c.at, c.path.name)), len(paths) - len(found)

    def _case(self, path: Path) -> Saved:
        try:
            there = path.stat()
        except OSError:
            return Saved(path, problem="it is gone")
        stamp = (there.st_ino, there.st_size, there.st_mtime_ns)
        known = self._known.get(path)
        if known is None or known[0] != stamp:
            known = self._known[path] = (stamp, summary(path))
        return known[1]

    def _backtest(self) -> Json:
        """What the person said of feedbacks that a back-test would have sent, by the judge that it asked."""
        text = "Feedbacks of past sessions that you looked at with reflectd judge --past --label."
        rows = []
        try:
            found = Counter(answers_of(self._state_dir))
            for judge in sorted({judge for judge, _ in found}):
                answers = {answer: n for (by, answer), n in found.items() if by == judge}
                unknown = answers.pop("unknown", 0)
                right = wilson(answers.get("right", 0), sum(answers.values()))
                rows.append(row(judge, sum(answers.values()), share(right), unknown))
        except Unavailable as error:
            text = str(error)
        return section("Back-test", ("judge", "looked at", "right", "don't know"), rows, text=text)

    @staticmethod
    def _agreement(cases: Sequence[Saved], told: str) -> Json:
        """Of each class: how often the verdict was right when it said so, and how often it said so when it
        should have.
        """
        rows = []
        for name in CLASSES:
            hits = sum(c.judged == c.expect == name for c in cases)
            said = sum(c.judged == name for c in cases)
            due = sum(c.expect == name for c in cases)
            rows.append(row(words(name), said, share(wilson(hits, said)), due, share(wilson(hits, due))))
        right = wilson(sum(c.judged == c.expect for c in cases), len(cases))
        rows.append(row("all", len(cases), share(right), None, None))
        text = (
            "Cases that you labelled. Who labels mostly what was wrong sees lower figures than those of all "
            "verdicts. Beside each share is the interval that the true one is in, 95 times "
            "of 100."
        )
        columns = ("class", "judged so", "right when it said so", "labelled so", "found of those")
        return section("Agreement with your labels", columns, rows, text=f"{text} {told}".strip())

    def _counts(self, now_ms: int) -> dict[tuple[int, str], int]:
        """By week and state. Weeks that are over are counted once an hour: there are many rows."""
        this, hour = week_of(now_ms), now_ms // HOUR_MS
        if self._over is None or self._over[0] != hour:
            self._over = (hour, self._between(this - WEEKS + 1, this))
        return self._over[1] | self._between(this, this + WEEKS)

    def _between(self, first: int, end: int) -> dict[tuple[int, str], int]:
        begin, over = (MONDAY_MS + week * WEEK_MS for week in (first, end))
        with ReadOnly(self._database) as db:
            return Verdicts(db).by_week(begin, over, MONDAY_MS, WEEK_MS)

    def _listed(self, cases: Sequence[Saved], query: Mapping[str, Any]) -> Json:
        """The disputes one by one. A session that the daemon never judged, of a back-test, has no page."""
        some, more = piece([c for c in cases if is_dispute(c)], query, "disputes")
        with ReadOnly(self._database) as db:
            judged = {c.session for c in some if Verdicts(db).how_many(c.session)}
        rows = [
            row(
                when(c.at), session(c.session) if c.session in judged else c.session, c.request,
                words(c.judged), words(c.expect), c.why, c.path.stem,
            )
            for c in some
        ]  # fmt: skip
        columns = ("when", "session", "request", "judged", "should be", "why", "case")
        text = "Take one back in a terminal: reflectd dispute remove, and its name."
        return section("Disputes", columns, rows, text=text, more=more)

    def _weeks(self, now_ms: int) -> Json:
        """How turns ended, by week."""
        found = self._counts(now_ms)
        weeks = sorted({week for week, _ in found}, reverse=True)
        rows = [
            row(
                day_of(week),
                *(found.get((week, state), 0) for state in STATES),
                sum(n for (w, _), n in found.items() if w == week),
            )
            for week in weeks
        ]
        text = f"Verdicts of the last {WEEKS} weeks; a week begins on Monday, in UTC."
        return section("States by week", ("week", *map(words, STATES), "all"), rows, text=text)


def _disputes(cases: Sequence[Saved], now_ms: int) -> Json:
    """The cases whose label is not what the judge said, by the week of the verdict."""
    wrong = Counter((week_of(c.at), c.judged) for c in cases if is_dispute(c))
    first = week_of(now_ms) - WEEKS + 1
    weeks = sorted({week for week, _ in wrong if week >= first}, reverse=True)
    said = [*CLASSES, *sorted({judged for _, judged in wrong} - set(CLASSES))]
    rows = [row(day_of(week), *(wrong[week, name] for name in said)) for week in weeks]
    text = "Verdicts that you said were wrong, by what they had said and the week in which they were given."
    return section("Disputes by week", ("week", *map(words, said)), rows, text=text)


def is_dispute(case: Saved) -> bool:
    """Whether the person said that the verdict was wrong."""
    return bool(case.judged) and case.judged != case.expect


def words(state: str) -> str:
    """A state as it is read."""
    return state.replace("_", " ")


def week_of(at: int) -> int:
    """The number of the week, from the first Monday of 1970 on."""
    return (at - MONDAY_MS) // WEEK_MS


def day_of(week: int) -> str:
    """The Monday of a week, in UTC."""
    return datetime.fromtimestamp((MONDAY_MS + week * WEEK_MS) / 1000, UTC).date().isoformat()


class Quality(Feature):
    """Shows figures; hears nothing."""

    name: ClassVar = "quality"

    def __init__(self, parts: Engine) -> None:
        super().__init__(parts)
        self.parts = parts
        self._world = parts.world
        self._alone = asyncio.Lock()
        self._figures = Figures(parts.world.db.path)

    def pages(self) -> Sequence[Page]:
        """What was disputed, how often the labels agree, how turns ended."""
        return (Page("quality", "Quality", self._read),)

    async def _read(self, query: Mapping[str, Any]) -> Mapping[str, Any]:
        async with self._alone:
            return await asyncio.to_thread(self._figures.read, query, self._world.clock.now_ms())
