"""What a model for embeddings answers: one vector for each text, and which model made them."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Row = Sequence[float]


@dataclass(frozen=True, slots=True)
class Embedded:
    """Vectors of length 1, in the order of their texts. ``model`` names who made them.

    Only vectors of one ``Embedded`` are ever compared: those of two models have nothing to do with each
    other.
    """

    model: str
    rows: tuple[Row, ...] = ()

    @property
    def dimensions(self) -> int:
        """How many numbers a vector has; 0 without vectors."""
        return len(self.rows[0]) if self.rows else 0

    def plus(self, other: Embedded) -> Embedded:
        """Both. Raises ``ValueError`` when another model made the others."""
        mine, theirs = (self.model, self.dimensions), (other.model, other.dimensions)
        if self.rows and other.rows and mine != theirs:
            raise ValueError(f"vectors of two models: {mine[0]} ({mine[1]}) and {theirs[0]} ({theirs[1]})")
        return Embedded(self.model, self.rows + other.rows) if self.rows else other


def embedded(model: str, rows: Iterable[Sequence[float]]) -> Embedded:
    """The vectors, each brought to length 1. Raises ``ValueError`` for vectors of several sizes, for one of
    zeros, and for numbers that are none.
    """
    found = tuple(_unit(row) for row in rows)
    if len({len(row) for row in found}) > 1:
        raise ValueError(f"vectors of several sizes: {sorted({len(row) for row in found})}")
    return Embedded(model, found)


def _unit(row: Sequence[float]) -> Row:
    length = math.hypot(*row)
    if not (math.isfinite(length) and length > 0):
        raise ValueError("a vector without a length")
    return array("d", (x / length for x in row))  # a quarter of the memory of a tuple
