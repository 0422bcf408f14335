"""The project of a folder: its root, its AGENTS.md and CLAUDE.md, and the programs that it can't have put on
PATH.

The files are the project's, so untrusted: a link that leads out of the workspace, a FIFO, a file over 256 KB
or one that is not UTF-8 counts as missing, quietly, because the agent itself may read it otherwise.
"""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..core.errors import UserError
from .safe import read_text

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from ..core.ports import Clock

MARKS: Final = (".reflection", ".git")
FILES: Final = ("AGENTS.md", "CLAUDE.md", ".claude/CLAUDE.md")
LIMIT: Final = 256 * 1024  # bytes of one file
TTL_S: Final = 60.0
DIRECTORIES_KEPT: Final = 200


def upward(folder: str | Path = ".") -> tuple[Path, ...]:
    """The folder and those above it that may be its project, nearest first: up to the root of its repository,
    else up to the last one below the home folder or below ``/``. The home folder is no project of the folders
    in it, so that a ``~/.git`` with somebody's dotfiles does not count for all their work.

    Raises ``UserError`` when the current folder was removed.
    """
    try:
        start = Path(os.path.abspath(folder))  # noqa: PTH100 - without following links, as hosts name it
    except FileNotFoundError:
        raise UserError("the current folder was removed; go to another one") from None
    ends = {os.environ.get("HOME", ""), "/"}
    places: list[Path] = []
    for place in (start, *start.parents):
        if places and str(place) in ends:
            break
        places.append(place)
        if os.path.lexists(place / ".git"):
            break
    return tuple(places)


def find_project(folder: str | Path = ".", known: Container[str] = ()) -> Path:
    """The nearest folder upward that is ``known`` (hosts work there, or it is off); else the nearest one with
    ``.reflection`` or the root of a repository; else the folder itself. Raises ``UserError``.
    """
    places = upward(folder)
    marked = (p for p in places if any(os.path.lexists(p / mark) for mark in MARKS))
    return next((p for p in places if str(p) in known), None) or next(marked, places[0])


def find_program(name: str, env: Mapping[str, str], project: Path) -> str | None:
    """The program's absolute path; None when there is none outside of ``project``, a real path. A folder of
    PATH that is relative, or that lies in the project, does not count: a clone may ship such a program.
    """
    folders = [Path(folder) for folder in env.get("PATH", os.defpath).split(os.pathsep)]
    outside = [
        str(f) for f in folders if f.is_absolute() and not Path(os.path.realpath(f)).is_relative_to(project)
    ]
    program = shutil.which(name, path=os.pathsep.join(outside)) if outside else None
    if program is None or Path(os.path.realpath(program)).is_relative_to(project):
        return None
    return program


class ProjectRules:
    """The project rules by workspace (I26), read at most once a minute. Blocking: up to 30 ms for a slow
    text.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[str, tuple[float, str]] = {}
        self._lock = threading.Lock()  # judgements make their cases in threads

    def lines(self, directory: str) -> str:
        """At most 2,400 characters, "" where the project has no rules. Never raises."""
        now = self._clock.monotonic()
        known = self._known.get(directory)
        if known is not None and now - known[0] < TTL_S:
            return known[1]
        lines = project_rule_lines(directory)
        with self._lock:
            self._known.pop(directory, None)
            if len(self._known) >= DIRECTORIES_KEPT:
                del self._known[next(iter(self._known))]
            self._known[directory] = (now, lines)
        return lines


def project_rule_lines(directory: str) -> str:
    """The project rules of the workspace as its files are now. Never raises."""
    if not directory:
        return ""
    from ..evidence.project_rules import select

    return select(*(text for name in FILES if (text := _read(directory, name))))


def _read(directory: str, name: str) -> str:
    try:
        root = os.path.realpath(directory)
        path = Path(os.path.realpath(Path(root, name)))
        if not path.is_relative_to(root):
            return ""
        return read_text(path, LIMIT, follow=False) or ""
    except (OSError, ValueError):
        return ""
