"""Which stored lessons belong in front of a task: what a search found, in order, with reasons (AC-2.6.4).

No signal decides alone. Two tasks in the same words may be different tasks ("add sorting" and "add paging" to
one list), and one task may be told in two languages. So each signal says how much it has seen, and a line is
drawn. On tasks that its author had not seen the line was wrong: ``design/memory-retrieval.md`` has the
figures. Pure; a million episodes never come here, only what a search found.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..core.episodes import TOP_K, Candidate, Episode
from .signals import Query, Signals, seen
from .weights import BY_TASK, WITH_MEANING, WITHOUT_MEANING, Weights

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Query", "Ranked", "rank", "weighed", "whole", "worth_showing"]


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate in its place. ``score``: 0 to 1, of use for comparing only. ``margin``: how
    far the score is above the line from which on a lesson is shown; negative below it. ``why``: the signals
    that spoke for it, the strongest first, for a person.
    """

    candidate: Candidate
    score: float
    margin: float
    why: tuple[str, ...]


def whole(episode: Episode) -> str:
    """Task and lesson as one text, for an embedding."""
    return f"{episode.query}\n{episode.lesson}"


def rank(query: Query, candidates: Sequence[Candidate], weights: Weights | None = None) -> list[Ranked]:
    """All candidates, the best first. Dismissed ones and other projects' are left to the caller.

    ``weights``: those for the signals that there are; by default as there are similarities or none.
    """
    if weights is None:
        meant = any(c.similarity is not None for c in candidates)
        weights = (WITH_MEANING if query.wholes else BY_TASK) if meant else WITHOUT_MEANING
    return weighed(candidates, seen(query, candidates), weights)


def weighed(candidates: Sequence[Candidate], signals: Sequence[Signals], weights: Weights) -> list[Ranked]:
    """The same for signals that are known already."""
    found = [_ranked(one, of, weights) for one, of in zip(candidates, signals, strict=True)]
    return sorted(found, key=lambda r: (-r.score, -r.candidate.episode.at, r.candidate.episode.id))


def worth_showing(ranked: Sequence[Ranked], limit: int = TOP_K) -> list[Ranked]:
    """Those that are put in front of an agent: above the line, at most ``limit``."""
    return [one for one in ranked if one.margin >= 0][:limit]


def _ranked(candidate: Candidate, signals: Signals, weights: Weights) -> Ranked:
    parts = {name: weight * getattr(signals, name) for name, weight in weights.of.items()}
    score = 1 / (1 + math.exp(-(weights.bias + sum(parts.values()))))
    best = sorted((name for name in parts if parts[name] > 0), key=lambda name: -parts[name])
    return Ranked(candidate, score, score - weights.line, tuple(best[:3]))
