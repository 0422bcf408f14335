"""Episodes for the tests of their stores: made by hand, with vectors whose cosines are known."""

from __future__ import annotations

import math
from array import array
from typing import Any

from daemon.learning.embed.vectors import Vector
from daemon.learning.lessons.episodes import Episode

NOW = 1_700_000_000_000
MODEL = "a-model"


def hexed(number: int) -> str:
    return f"{number:032x}"


def episode(number: int, query: str = "", **given: Any) -> Episode:
    """Number 2 is newer than number 1."""
    values = {
        "project": "/p",
        "query": query or f"task number {number}",
        "reward": -0.5,
        "problem": "The tests were not run.",
        "lesson": "Run the tests first.",
        "reflection": "Problem: …\nLesson: …",
        "at": NOW + number,
        "author": "ada",
        **given,
    }
    return Episode(id=hexed(number), **values)


def rich(number: int) -> Episode:
    """With something in every field, and texts that are hard to store."""
    return episode(
        number,
        "Größe prüfen \u2028 'quoted' \"twice\" %s {x} 日本語 🦊",
        reward=-1.0,
        state="confirmed",
        triggers=("npm test -- --run", "make lint"),
        cites=("src/a b.py", "npm test"),
        files=("src/größe.py",),
        proof="tests: 3 failed",
        session="ses_1",
        turn="msg_2",
        task="msg_1",
    )


def vector(degrees: float, model: str = MODEL, size: int = 8) -> Vector:
    """Two of these have the cosine of the angle between them."""
    radians = math.radians(degrees)
    return Vector(model, array("f", [math.cos(radians), math.sin(radians), *[0.0] * (size - 2)]).tobytes())


def ids(found: Any) -> list[int]:
    """The numbers of what was found."""
    return [int(e.id, 16) for e in found]
