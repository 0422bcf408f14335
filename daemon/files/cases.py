"""Where the full evaluations lie: ``<session>_<epoch ms>.json`` beside the verdict files. Only looks.

Written by ``files.verdict``. A folder that cannot be read has none.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from daemon.files.verdict import FOLDER, file_name

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_CASE = re.compile(r"(?!verdict_)(.{1,120})_(\d{10,16})\.json", re.DOTALL)


def folders(directory: Path, fallback: Path) -> tuple[Path, Path]:
    """Where the cases of a workspace may be: in it, or in its stand-in in the state folder."""
    return directory / FOLDER, fallback


def newest_cases(
    folders: Iterable[Path], session: str = "", *, exact: bool = False, limit: int = 1
) -> list[Path]:
    """The newest cases, newest first; of sessions whose id begins with ``session``, or is it (``exact``)."""
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
