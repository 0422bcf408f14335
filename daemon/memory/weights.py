"""How much each signal counts, and from which score on a lesson is shown.

The figures come from ``tests/data/memory/tuning.jsonl`` by ``python -m evals.memory --fit``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Weights:
    """``of``: by the signal's name. ``line``: the score from which on a lesson is shown."""

    of: Mapping[str, float]
    bias: float
    line: float


WITH_MEANING: Final = Weights(
    {
        "meaning": 3.0, "words": 3.0, "told": 2.0, "lesson": 1.0, "same_action": 0.6, "other_action": -1.2,
        "same_names": 0.8, "other_names": -0.5, "same_errors": 0.8, "same_files": 0.8, "other_project": -1.0,
        "ahead": 3.0, "above": 2.5,
    },
    -5.0,
    0.55,
)  # fmt: skip
WITHOUT_MEANING: Final = Weights(
    {
        "words": 4.0, "told": 3.0, "same_action": 0.6, "other_action": -1.2,
        "same_names": 0.8, "other_names": -0.5, "same_errors": 0.8, "same_files": 0.8, "other_project": -1.0,
        "ahead": 3.0, "above": 2.5,
    },
    -4.5,
    0.55,
)  # fmt: skip
