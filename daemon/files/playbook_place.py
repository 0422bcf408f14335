"""Where a project's playbook is: ``.reflection/playbook.json``, unless a person names another file for all
projects (setting ``playbook.path``). A project can name none.

The file is inside the project, is called ``playbook.json``, and no folder on the way to it may be a link: a
clone may ship one that leads out.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

ACE: Final = ".claude/playbook.json"
"""Where the ACE plugin of Claude Code keeps a project's playbook."""


def link_on_the_way(project: str | Path, path: str) -> Path | None:
    """The first folder between the project and the file that is a link."""
    return next((folder for folder in _folders(Path(project), path) if folder.is_symlink()), None)


def _folders(project: Path, path: str) -> Iterator[Path]:
    for name in Path(path).parts[:-1]:
        project /= name
        yield project
