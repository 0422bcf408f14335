"""How much each signal counts, and from which score on a lesson is shown.

From logistic regressions on ``tests/data/memory/tuning.jsonl``, rounded by hand; where that set says nothing
(files, errors, other projects) they are judgement. The line is where about a tenth of that set's tasks
without a lesson of their own get one. On tasks that nobody tuned on none of this holds
(``design/memory-retrieval.md``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final


@dataclass(frozen=True, slots=True)
class Weights:
    """``of``: by the signal's name. ``line``: the score from which on a lesson is shown."""

    of: Mapping[str, float]
    bias: float
    line: float


_ALWAYS: Final = {"same_names": 0.2, "other_names": -0.3, "same_errors": 0.6, "same_files": 0.4}
WITH_MEANING: Final = Weights(
    {
        "meaning": 0.9,
        "whole": 1.5,
        "words": 0.2,
        "told": 2.3,
        "explained": 1.0,
        "same_action": 1.2,
        "other_action": -0.2,
        "ahead": 2.45,
        "above": 2.3,
        **_ALWAYS,
        "other_project": -1.0,
    },
    bias=-5.65,
    line=0.58,
)
BY_TASK: Final = replace(WITH_MEANING, line=0.66)
"""Where only the cosine with the episode's task is known: it alone is bolder."""
WITHOUT_MEANING: Final = Weights(
    {
        "words": 0.5,
        "told": 3.3,
        "explained": 1.3,
        "same_action": 0.25,
        "other_action": -0.2,
        "ahead": 3.8,
        "above": 2.4,
        **_ALWAYS,
        "other_project": -1.0,
    },
    bias=-3.75,
    line=0.68,
)
