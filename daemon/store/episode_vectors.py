"""The vectors of one model in memory, so that a search compares all of them at once (facts are in
design/memory.md).

With numpy, which the extra ``[embed]`` brings, a hundred thousand are compared in some milliseconds. Without
it they are compared one by one, and only the newest ``PLAIN``. Blocks; whoever owns it has a lock.
"""

from __future__ import annotations

import sys
from array import array
from heapq import nlargest
from importlib.util import find_spec
from operator import mul
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

MOST: Final = 250_000  # of more the newest are compared: 400 MB with 384 dimensions
PLAIN: Final = 10_000  # as many as take about a tenth of a second without numpy
SPARE: Final = 1.25  # room for what comes, so that not each new one copies all


class Row(NamedTuple):
    """A vector of an episode. ``seq`` grows with each that is stored, so it names this one for ever."""

    seq: int
    project: str
    data: bytes


class Hit(NamedTuple):
    """A vector that is near. ``similarity``: the cosine."""

    seq: int
    similarity: float


class Matrix(Protocol):
    """Vectors that were loaded."""

    size: int

    def append(self, rows: Sequence[Row]) -> None:
        """Take these too. Rows of another size than the first one's are left out."""
        ...

    def nearest(self, vector: bytes, projects: Collection[str] | None, limit: int) -> list[Hit]:
        """The nearest, best first."""
        ...


def matrix() -> Matrix:
    """An empty one, of the faster kind that this machine has."""
    return _Plain() if find_spec("numpy") is None else _Numpy()


def most() -> int:
    """How many vectors are worth loading here."""
    return PLAIN if find_spec("numpy") is None else MOST


def floats(data: bytes) -> array[float]:
    """The numbers of a vector."""
    found = array("f")
    found.frombytes(data[: len(data) // 4 * 4])
    if sys.byteorder == "big":
        found.byteswap()
    return found


def packed(numbers: array[float]) -> bytes:
    """The numbers as a vector holds them."""
    found = array("f", numbers)
    if sys.byteorder == "big":
        found.byteswap()
    return found.tobytes()


class _Plain:
    def __init__(self) -> None:
        self.size = 0
        self._rows: list[tuple[int, str, array[float]]] = []

    def append(self, rows: Sequence[Row]) -> None:
        width = len(self._rows[0][2]) if self._rows else len(rows[0].data) // 4 if rows else 0
        self._rows += [(r.seq, r.project, floats(r.data)) for r in rows if len(r.data) == 4 * width]
        del self._rows[: max(0, len(self._rows) - PLAIN)]
        self.size = len(self._rows)

    def nearest(self, vector: bytes, projects: Collection[str] | None, limit: int) -> list[Hit]:
        wanted = floats(vector)
        if not self._rows or len(self._rows[0][2]) != len(wanted):
            return []
        scored = (
            Hit(seq, sum(map(mul, row, wanted)))
            for seq, project, row in self._rows
            if projects is None or project in projects
        )
        return nlargest(limit, scored, key=lambda hit: hit.similarity)


class _Numpy:
    def __init__(self) -> None:
        import numpy as np

        self._np: Any = np
        self.size = 0
        self._width = 0
        self._codes: dict[str, int] = {}
        self._rows: Any = None
        self._seqs: Any = None
        self._projects: Any = None

    def append(self, rows: Sequence[Row]) -> None:
        np = self._np
        if not self._width and rows:
            self._width = len(rows[0].data) // 4
        rows = [row for row in rows if len(row.data) == 4 * self._width][-MOST:]
        if not rows:
            return
        self._make_room(len(rows))
        start, self.size = self.size, self.size + len(rows)
        flat = np.frombuffer(b"".join(row.data for row in rows), dtype="<f4")
        self._rows[start : self.size] = flat.reshape(len(rows), self._width)
        self._seqs[start : self.size] = [row.seq for row in rows]
        self._projects[start : self.size] = [
            self._codes.setdefault(row.project, len(self._codes)) for row in rows
        ]

    def nearest(self, vector: bytes, projects: Collection[str] | None, limit: int) -> list[Hit]:
        np = self._np
        if not self.size or len(vector) != 4 * self._width:
            return []
        wanted = np.frombuffer(vector, dtype="<f4")
        rows, seqs = self._rows[: self.size], self._seqs[: self.size]
        if projects is not None:
            codes = [self._codes[project] for project in projects if project in self._codes]
            places = np.flatnonzero(np.isin(self._projects[: self.size], codes))
            if not len(places):
                return []
            seqs = seqs[places]
            # copying a few rows is cheaper than comparing all; copying many is not
            scores = rows[places] @ wanted if len(places) * 8 < self.size else (rows @ wanted)[places]
        else:
            scores = rows @ wanted
        best = np.argpartition(scores, -limit)[-limit:] if limit < len(scores) else np.arange(len(scores))
        best = best[np.argsort(-scores[best], kind="stable")]
        return [Hit(int(seqs[i]), float(scores[i])) for i in best]

    def _make_room(self, count: int) -> None:
        """Drop the oldest beyond ``MOST``; make the arrays larger when they are full."""
        np, needed = self._np, min(self.size + count, MOST)
        gone = self.size + count - needed
        if self._rows is not None and needed <= len(self._rows) and not gone:
            return
        room = min(MOST, int(needed * (SPARE if self.size else 1)))
        kept = self.size - gone
        for name, shape, kind in (
            ("_rows", (room, self._width), "f4"),
            ("_seqs", (room,), "i8"),
            ("_projects", (room,), "i4"),
        ):
            found = np.empty(shape, dtype=kind)
            if kept:
                found[:kept] = getattr(self, name)[gone : self.size]
            setattr(self, name, found)
        self.size = kept
