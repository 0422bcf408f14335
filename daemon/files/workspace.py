"""Asks ``git status`` which files of a workspace are changed, where the person trusts git there.

Blocks for up to a second: call it in a thread, one call at a time. Never writes.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..core.errors import Unavailable
from ..core.workspace import Entry, parse
from . import git

if TYPE_CHECKING:
    from .trust import Trust

MOST: Final = 2_000  # names that are compared
LOOK: Final = "look with `reflectd trust --git` in that folder"


class Workspace:
    """The files that git lists in a folder. ``limit_s``: how long all of git's work on a list may take."""

    def __init__(self, trust: Trust, limit_s: float = git.LIMIT_S) -> None:
        self._trust = trust
        self._limit_s = limit_s

    def entries(self, directory: str) -> tuple[Entry, ...]:
        """What ``git status`` lists in the folder now, with paths relative to it.

        Raises ``Unavailable`` with the reason when git is not trusted, can't be used or fails (``Slow``: in
        time), and ``BadReply``.
        """
        deadline = time.monotonic() + self._limit_s
        repository = git.find(directory)
        grants, problem = self._trust.load("git")
        grant = grants.get(str(repository.top))
        if grant is None:
            raise Unavailable(problem or f"you have not trusted git in {repository.top}: {LOOK}")
        found = git.set_up(repository, deadline)
        if found.refusal:
            raise Unavailable(found.refusal)
        if found.fingerprint != grant.sha256:
            raise Unavailable(f"how git is set up in {repository.top} changed since you trusted it: {LOOK}")
        listed = parse(git.status(repository, directory, deadline))
        if len(listed) > MOST:
            raise Unavailable(f"git lists more than {MOST} changed files in {directory}")
        inside = Path(os.path.realpath(directory)).relative_to(repository.top)
        prefix = b"" if inside == Path() else os.fsencode(inside) + b"/"
        return tuple(
            Entry(
                e.path.removeprefix(prefix) or b"./", e.status, _stamp(repository.top / os.fsdecode(e.path))
            )
            for e in listed
        )


def _stamp(path: Path) -> tuple[int, int]:
    try:
        found = path.lstat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size
