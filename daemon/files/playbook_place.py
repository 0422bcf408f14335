"""Where a project's playbook is: ``.reflection/playbook.json``, unless a person named another file.

A person names it for one project (``reflectd playbook use``, kept in the project's folder in the state
folder) or for all of them (setting ``playbook.path``); the former counts more. A project can name none. The
file is inside the project, is called ``playbook.json``, and no folder on the way to it may be a link: a clone
may ship one that leads out. A record that can't be used counts as none.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..core.errors import UserError
from ..core.settings import SETTINGS
from .atomic import write_atomic
from .bounded import read_text
from .playbook import FILE

if TYPE_CHECKING:
    from collections.abc import Iterator

ACE: Final = ".claude/playbook.json"
"""Where the ACE plugin of Claude Code keeps a project's playbook."""
RECORD: Final = "path.json"  # in the project's folder in the state folder
LIMIT: Final = 10_000  # bytes


def place(folder: Path, setting: str) -> str:
    """Where the playbook is, from the project on. ``folder``: the project's in the state folder. Never
    raises.
    """
    return chosen(folder) or setting or FILE


def chosen(folder: Path) -> str:
    """What a person named for this project, "" for nothing. Never raises."""
    try:
        found = json.loads(read_text(folder / RECORD, LIMIT) or "{}").get("path", "")
    except (OSError, ValueError, RecursionError, AttributeError):
        return ""
    return found if SETTINGS["playbook.path"].valid(found) else ""


def choose(folder: Path, project: str | Path, path: str, now_ms: int) -> None:
    """A person names the file for this project. Who calls it holds the lock on ``folder``. Raises
    ``Unavailable``.
    """
    kept = {"project": os.path.realpath(project), "path": path, "at": now_ms}
    write_atomic(folder / RECORD, json.dumps(kept, indent=1) + "\n", mode=0o600)


def inside(project: Path, file: str) -> str:
    """The file that a person typed, from the project on. Raises ``UserError``."""
    path = os.path.relpath(os.path.abspath(file), os.path.abspath(project))  # noqa: PTH100 - without following links
    if not SETTINGS["playbook.path"].valid(path):
        raise UserError(f"{file} can't be the playbook of {project}: it must be a playbook.json inside it")
    return path


def link_on_the_way(project: str | Path, path: str) -> Path | None:
    """The first folder between the project and the file that is a link."""
    return next((folder for folder in _folders(Path(project), path) if folder.is_symlink()), None)


def _folders(project: Path, path: str) -> Iterator[Path]:
    for name in Path(path).parts[:-1]:
        project /= name
        yield project
