"""Finds the cases that the daemon saved: ``<session>_<epoch ms>.json`` in the folder of the verdict files.

``files.verdict`` writes and prunes them; this module only looks. A folder that can't be read holds none. A
case may have come with a clone, so any field of it may be missing or have a wrong type.
"""

from __future__ import annotations

import json
import os
import re
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from ..core.errors import Unavailable
from .verdict import FOLDER, file_name

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

CASE_BYTES: Final = 32 * 1024 * 1024
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


def read_case(path: Path) -> dict[str, Any]:
    """The object in a case file, which must be a regular file of at most ``CASE_BYTES``. Raises
    ``Unavailable``.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
        with os.fdopen(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise Unavailable(f"{path} is not a regular file")
            data = file.read(CASE_BYTES + 1)
        found = json.loads(data) if len(data) <= CASE_BYTES else None
    except OSError as e:
        raise Unavailable(f"cannot read {path}: {e.strerror}") from e
    except (ValueError, RecursionError) as e:
        raise Unavailable(f"{path} is not a case of reflectd: {e}") from e
    if not isinstance(found, dict) or found.get("version") != 1:
        raise Unavailable(f"{path} is not a case of reflectd")
    return found
