"""What is seen of a task and of each lesson that a search found for it: one number a signal.

Words are weighed by how seldom they are among what was found, as BM25 does. What stands out counts too: a
similarity of 0.5 says much where everything else is at 0.1, and nothing where much is at 0.4.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from typing import TYPE_CHECKING, Final

from .lexicon import GENERAL
from .words import Read, folded, read

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..core.episodes import Candidate

RUNNERS: Final = 4
"""So many of the next candidates say how near to this task anything of the project is."""
UNSEEN: Final = 20
"""Episodes that are thought of beside those that were found: in a new store everything would be seldom."""
USUAL: Final = 0.25
USUAL_MEANT: Final = 0.45
"""What the next candidates have of words, or of meaning and words, where there are many; in a store with few
episodes anything would stand out.
"""


@dataclass(frozen=True, slots=True)
class Query:
    """A task for which lessons are wanted. ``files``: those that it is about. ``errors``: names of errors
    that were seen. ``wholes``: by the episode's id the cosine of the task with ``rank.whole(episode)``, where
    somebody knows it; it is worth a little more than the one with the episode's task alone.
    """

    text: str
    project: str = ""
    files: Sequence[str] = ()
    errors: Sequence[str] = ()
    wholes: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Signals:
    """Each from 0 to 1. ``meaning``: the cosine with the episode's task; ``whole``: that with task and lesson
    as one text, or the first again where nobody knows it.
    ``words``: the share of the query's words that the episode's task has; ``told``: the reverse.
    ``explained``: the share of the query's words that task or lesson has. ``ahead``: by how much meaning and
    words are above the runner-up; ``above``: by how much above the mean of the next. ``other_…``: both name
    something, and nothing is the same.
    """

    meaning: float = 0.0
    whole: float = 0.0
    words: float = 0.0
    told: float = 0.0
    explained: float = 0.0
    same_action: float = 0.0
    other_action: float = 0.0
    same_names: float = 0.0
    other_names: float = 0.0
    same_errors: float = 0.0
    same_files: float = 0.0
    other_project: float = 0.0
    ahead: float = 0.0
    above: float = 0.0


def seen(query: Query, candidates: Sequence[Candidate]) -> list[Signals]:
    """The signals of each candidate, in their order."""
    asked = read(query.text)
    tasks = [read(c.episode.query) for c in candidates]
    lessons = [read(c.episode.lesson) for c in candidates]
    seldom = Seldom(task.terms for task in tasks)
    files = {folded(f) for f in query.files} | {n for n in asked.names if "." in n}
    errors = asked.errors | {folded(e) for e in query.errors}
    shares = [
        (seldom.share(asked.terms, task.terms), seldom.share(task.terms, asked.terms)) for task in tasks
    ]
    meant = any(c.similarity is not None for c in candidates)
    meanings = [_meaning(c, both, meant=meant) for c, both in zip(candidates, shares, strict=True)]
    wholes = [
        max(0.0, query.wholes.get(c.episode.id, meaning))
        for c, meaning in zip(candidates, meanings, strict=True)
    ]
    near = [
        (meaning + whole + sum(both)) / 2
        for meaning, whole, both in zip(meanings, wholes, shares, strict=True)
    ]
    first = nlargest(RUNNERS + 1, (*near, *[USUAL_MEANT if meant else USUAL] * RUNNERS))
    found = []
    for n, (c, task, lesson) in enumerate(zip(candidates, tasks, lessons, strict=True)):
        rest = first[:]
        rest.remove(near[n] if near[n] in rest else rest[-1])
        found.append(
            Signals(
                meaning=meanings[n],
                whole=wholes[n],
                words=shares[n][0],
                told=shares[n][1],
                explained=seldom.share(asked.terms, (*task.terms, *lesson.terms)),
                same_action=float(bool(asked.actions & task.actions)),
                other_action=_other(asked.actions - GENERAL, task.actions - GENERAL),
                same_names=float(bool(asked.names & task.names)),
                other_names=_other(asked.names, task.names),
                same_errors=float(bool(errors & _errors(c, task, lesson))),
                same_files=float(bool(files & {folded(f) for f in _files(c)})),
                other_project=float(bool(query.project) and c.episode.project != query.project),
                ahead=near[n] - rest[0],
                above=near[n] - sum(rest) / len(rest),
            )
        )
    return found


class Seldom:
    """How much a word says: the less, the more of the found tasks have it."""

    def __init__(self, tasks: Iterable[Iterable[str]]) -> None:
        counted = [set(terms) for terms in tasks]
        self._have = Counter(term for terms in counted for term in terms)
        self._of = len(counted) + UNSEEN
        self._weights: dict[str, float] = {}

    def weight(self, term: str) -> float:
        """BM25's inverse document frequency."""
        found = self._weights.get(term)
        if found is None:
            have = self._have[term]
            found = self._weights[term] = math.log(1 + (self._of - have + 0.5) / (have + 0.5))
        return found

    def share(self, terms: Iterable[str], others: Iterable[str]) -> float:
        """Of what these words say, the share that the others say too."""
        known = set(others)
        weights = {term: self.weight(term) for term in terms}
        whole = sum(weights.values())
        return sum(w for term, w in weights.items() if term in known) / whole if whole else 0.0


def _meaning(c: Candidate, shares: tuple[float, float], *, meant: bool) -> float:
    """The cosine; where others have a vector and this one has none yet, what its words let expect."""
    if c.similarity is None:
        return sum(shares) / 2 if meant else 0.0
    return max(0.0, c.similarity)


def _other(a: frozenset[str], b: frozenset[str]) -> float:
    return float(bool(a) and bool(b) and not a & b)


def _errors(c: Candidate, task: Read, lesson: Read) -> frozenset[str]:
    of = {folded(t.text) for t in c.episode.triggers if t.kind == "error"}
    return task.errors | lesson.errors | of


def _files(c: Candidate) -> set[str]:
    whole = {*c.episode.files, *(t.text for t in c.episode.triggers if t.kind == "file")}
    return whole | {path.rsplit("/", 1)[-1] for path in whole}
