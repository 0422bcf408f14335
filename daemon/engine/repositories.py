"""Which project a folder belongs to: its repository, the same one for all its worktrees.

Blocks: call it in a thread. A folder outside git is its own project. The home folder and the root are none.
A `.git` file counts only when the repository that it names names this folder too: else any folder could say
that it is another project, and be given its lessons.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..core.errors import Unavailable
from ..files import git
from ..files.bounded import read_text

if TYPE_CHECKING:
    from pathlib import Path

LINK_BYTES = 8_192


def project_of(directory: str, home: str) -> str:
    """The real path that names the project; "" for a folder that is none."""
    real = os.path.realpath(directory) if directory else ""
    nothing = {"", "/", os.path.realpath(home)}
    if real in nothing:
        return ""
    try:
        found = git.find(real)
    except Unavailable:
        return real
    if str(found.top) in nothing:
        return real
    if (found.top / ".git").is_dir() or _names(found.folder, found.top):
        return str(found.common)
    return str(found.top)


def _names(folder: Path, top: Path) -> bool:
    """Whether the git folder of a linked worktree leads back to it."""
    try:
        said = read_text(folder / "gitdir", LINK_BYTES, follow=False)
    except (OSError, ValueError):
        return False
    return said is not None and os.path.realpath(said.strip()) == os.path.realpath(top / ".git")
