"""How often the ranker is right at each line: the share of tasks that get their lesson, against that of tasks
that get a lesson though none is theirs.

A trial has stored tasks, each with its lesson, and asked ones: another wording of a stored task, a near miss
(the same words, another task), or something unrelated. Pure: the vectors are the caller's.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import mul
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from ..core.episodes import TOP_K, Candidate, Episode
from .rank import Query, weighed, whole
from .signals import Signals, seen
from .words import read

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .weights import Weights

Kind = Literal["same", "near", "unrelated"]
FOUND: Final = 20
"""So many the search of a store gives by vector, and as many by words."""
MOST_FALSE: Final = 0.10
_NONE: Final = -1.0


@dataclass(frozen=True, slots=True)
class Task:
    """One task of a trial. ``group``: tasks of one group are the same. ``lesson``: of a stored one.
    ``project``: lessons of others are not found; a task without one finds those of all.
    """

    id: str
    language: str
    text: str
    group: str | None = None
    lesson: str | None = None
    stored: bool = False
    near_miss_of: str | None = None
    project: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of an asked task. ``best``: the score of the first lesson, -1 without any. ``hit``: the score
    of its own lesson if that is among the first three, else -1. ``first``: whether it is the first.
    """

    task: Task
    kind: Kind
    best: float
    hit: float
    first: bool


class Point(NamedTuple):
    """The shares at one line. ``hits``: of tasks whose lesson is stored, those that get it, among at most
    three. ``false``: of all others, those that get any; ``near`` and ``unrelated`` are its parts.
    """

    line: float
    hits: float
    false: float
    near: float
    unrelated: float


@dataclass(frozen=True, slots=True)
class Trial:
    """An asked task, what was found for it, and which of it is its own."""

    task: Task
    found: tuple[Candidate, ...]
    signals: tuple[Signals, ...]
    own: frozenset[str]


def trials(
    tasks: Sequence[Task],
    rows: Mapping[str, Sequence[float]] | None,
    among: Sequence[Episode] = (),
    *,
    wholly: bool = True,
) -> list[Trial]:
    """A trial of each asked task. ``rows``: the vector of each text (``texts_of``); None: words only.

    ``among``: episodes that are stored besides, as in a person's own store. ``wholly``: the vectors of task
    and lesson together are known too.
    """
    stored = [episode_of(task) for task in tasks if task.stored] + list(among)
    of: dict[str, set[str]] = {}
    for task in tasks:
        if task.stored and task.group is not None:
            of.setdefault(task.group, set()).add(task.id)
    found = []
    for task in tasks:
        if not task.stored:
            here = [e for e in stored if not task.project or e.project in {"", task.project}]
            candidates, wholes = _search(task.text, here, rows)
            signals = seen(Query(task.text, wholes=wholes if wholly else {}), candidates)
            own = frozenset(of.get(task.group or "", ()))
            found.append(Trial(task, tuple(candidates), tuple(signals), own))
    return found


def outcomes_of(tried: Sequence[Trial], weights: Weights) -> list[Outcome]:
    """What comes of each with these weights, before any line is drawn."""
    return [_outcome(one, weights) for one in tried]


def texts_of(tasks: Sequence[Task], among: Sequence[Episode] = ()) -> list[str]:
    """All texts whose vectors ``trials`` wants, each once."""
    stored = [episode_of(task) for task in tasks if task.stored] + list(among)
    asked = [task.text for task in tasks if not task.stored]
    return list(dict.fromkeys([*asked, *(e.query for e in stored), *(whole(e) for e in stored)]))


def episode_of(task: Task) -> Episode:
    """A stored task as an episode."""
    lesson = task.lesson or ""
    return Episode(task.id, task.project or "", task.text, -1.0, "", lesson, lesson, "confirmed")


def kind_of(task: Task) -> Kind:
    """What is asked with it."""
    if task.group is not None:
        return "same"
    return "near" if task.near_miss_of is not None else "unrelated"


def at(outcomes: Sequence[Outcome], line: float) -> Point:
    """The shares at this line."""
    shares = {
        kind: _share([o.best >= line for o in outcomes if o.kind == kind]) for kind in ("near", "unrelated")
    }
    return Point(
        line,
        _share([o.hit >= line for o in outcomes if o.kind == "same"]),
        _share([o.best >= line for o in outcomes if o.kind != "same"]),
        shares["near"],
        shares["unrelated"],
    )


def curve(outcomes: Sequence[Outcome]) -> list[Point]:
    """The shares at each line where they change, the highest line first."""
    lines = {o.best for o in outcomes} | {o.hit for o in outcomes}
    return [at(outcomes, line) for line in sorted(lines - {_NONE}, reverse=True)]


def line_of(outcomes: Sequence[Outcome], most: float = MOST_FALSE, unrelated: float = 1.0) -> Point:
    """The lowest line with at most so many false lessons: 1 when there is none below."""
    best = at(outcomes, 1.0)
    for point in curve(outcomes):
        if point.false > most or point.unrelated > unrelated:
            break
        best = point
    return best


def _outcome(trial: Trial, weights: Weights) -> Outcome:
    ranked = weighed(trial.found, trial.signals, weights)
    mine = [n for n, one in enumerate(ranked[:TOP_K]) if one.candidate.episode.id in trial.own]
    return Outcome(
        trial.task,
        kind_of(trial.task),
        ranked[0].score if ranked else _NONE,
        ranked[mine[0]].score if mine else _NONE,
        bool(mine) and mine[0] == 0,
    )


def _search(
    text: str, stored: Sequence[Episode], rows: Mapping[str, Sequence[float]] | None
) -> tuple[list[Candidate], dict[str, float]]:
    """What a store finds: the nearest by vector, and those with the most words in common."""
    asked = set(read(text).terms)
    common = {e.id: len(asked & {*read(e.query).terms, *read(e.lesson).terms}) for e in stored}
    near = {e.id: _cosine(rows[text], rows[e.query]) for e in stored} if rows is not None else {}
    by_words = sorted((e.id for e in stored if common[e.id]), key=lambda id_: (-common[id_], id_))[:FOUND]
    by_meaning = sorted(near, key=lambda id_: (-near[id_], id_))[:FOUND]
    kept = {*by_words, *by_meaning}
    found = [Candidate(e, near.get(e.id)) for e in stored if e.id in kept]
    if rows is None:
        return found, {}
    return found, {e.id: _cosine(rows[text], rows[whole(e)]) for e in stored if e.id in kept}


def _cosine(a: Sequence[float], b: Sequence[float]) -> float:
    found: float = sum(map(mul, a, b))
    return found


def _share(hits: Sequence[bool]) -> float:
    return sum(hits) / len(hits) if hits else 0.0
