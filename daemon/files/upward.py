"""Finds the project that a folder belongs to. Looks upward like git, so that a verb works in a sub-folder.

Looks only whether names are there; opens nothing. The home folder is no project of the folders in it, so that
a ``~/.git`` with somebody's dotfiles does not count for all their work.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..core.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Container

MARKS: Final = (".reflection", ".git")


def upward(folder: str | Path = ".") -> tuple[Path, ...]:
    """The folder and those above it that may be its project, nearest first: up to the root of its repository,
    else up to the last one below the home folder or below ``/``.

    Raises ``UserError`` when the current folder was removed.
    """
    try:
        start = Path(os.path.abspath(folder))  # noqa: PTH100 - without following links, as hosts name it
    except FileNotFoundError:
        raise UserError("the current folder was removed; go to another one") from None
    ends = {os.environ.get("HOME", ""), "/"}
    found: list[Path] = []
    for place in (start, *start.parents):
        if found and str(place) in ends:
            break
        found.append(place)
        if os.path.lexists(place / ".git"):
            break
    return tuple(found)


def project(folder: str | Path = ".", known: Container[str] = ()) -> Path:
    """The nearest folder upward that is ``known`` (hosts work there, or it is off); else the nearest one with
    ``.reflection`` or the root of a repository; else the folder itself. Raises ``UserError``.
    """
    places = upward(folder)
    marked = (p for p in places if any(os.path.lexists(p / mark) for mark in MARKS))
    return next((p for p in places if str(p) in known), None) or next(marked, places[0])
