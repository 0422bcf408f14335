"""Finds the cases that the daemon saved: ``<session>_<epoch ms>.json`` in the folder of the verdict files.

``files.verdict`` writes and prunes them; this module only looks. A folder that can't be read holds none.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING

from .verdict import FOLDER, file_name

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_CASE = re.compile(r"(?!verdict_)(.{1,120})_(\d{10,16})\.json", re.DOTALL)


def folders(directory: Path, fallback: Path) -> tuple[Path, Path]:
    """The two folders that may hold a workspace's cases: its own, and its stand-in in the state folder."""
    return directory / FOLDER, fallback


def case_at(folders: Iterable[Path], session: str, at: int) -> Path | None:
    """The case of the verdict that the session got at that time (epoch ms); None when there is none."""
    for folder in folders:
        path = folder / f"{file_name(session)}_{at}.json"
        with suppress(OSError):
            if path.is_file():
                return path
    return None


def newest_cases(
    folders: Iterable[Path], session: str = "", *, exact: bool = False, limit: int = 1
) -> list[Path]:
    """The newest cases of the sessions whose id begins with ``session`` (``exact``: is ``session``), newest
    first.
    """
    name = file_name(session)
    found: list[tuple[int, Path]] = []
    for folder in folders:
        try:
            listed = [(_CASE.fullmatch(path.name), path) for path in folder.iterdir()]
        except OSError:
            continue
        cases = [(m[1], int(m[2]), path) for m, path in listed if m is not None]
        found += [(at, path) for of, at, path in cases if (of == name if exact else of.startswith(name))]
    return [path for _, path in sorted(found, reverse=True)[:limit]]
