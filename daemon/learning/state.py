"""The part of a project's learning that is kept outside the project: in the state folder, 0600.

The journal may be tracked by git, so a person's words are kept here, with the agent's words before them, and
so are the cursors. Each file is replaced as a whole. One that can't be used counts as empty and is renamed at
the next write. A writer holds the lock on ``folder`` (``files.safe.alone``).
"""

from __future__ import annotations

import json
import os
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Literal

from ..files.safe import read_text, set_aside, write_atomic

if TYPE_CHECKING:
    from pathlib import Path

FOLDER: Final = "reflect"  # in the state folder
LIMIT: Final = 256 * 1024 * 1024
Name = Literal["cursors", "messages", "tombstones", "preferences", "proposals"]


class ReflectState:
    """One project's files, by the project's real path."""

    def __init__(self, state_dir: Path, project: str | Path) -> None:
        self._project = os.path.realpath(project)
        digest = sha256(os.fsencode(self._project)).hexdigest()[:16]
        self.folder = state_dir / FOLDER / digest

    def has(self, name: Name) -> bool:
        """Says whether there is such a file."""
        return os.path.lexists(self._path(name))

    def load(self, name: Name) -> dict[str, Any]:
        """The file's content; nothing when it is missing or can't be used. Never raises."""
        return self._read(name) or {}

    def _read(self, name: Name) -> dict[str, Any] | None:
        """The same; None for a file that can't be used."""
        try:
            text = read_text(self._path(name), LIMIT)
            found = {} if text is None else json.loads(text)[name]
        except (OSError, ValueError, RecursionError, LookupError, TypeError):
            return None
        return found if isinstance(found, dict) else None

    def tombstones(self) -> list[dict[str, Any]]:
        """The ``content`` of each text that the person dismissed or forgot. Never raises."""
        found = [stone for stone in self.load("tombstones").values() if isinstance(stone, dict)]
        return [stone for stone in found if isinstance(stone.get("content"), str)]

    def save(self, name: Name, value: dict[str, Any], now_ms: int) -> None:
        """Replace the file; its folder is there. Raises ``Unavailable``."""
        path = self._path(name)
        if os.path.lexists(path) and self._read(name) is None:
            set_aside(path, str(now_ms))
        text = json.dumps({"project": self._project, name: value}, separators=(",", ":"))
        write_atomic(path, text + "\n", mode=0o600, durable=False)

    def _path(self, name: Name) -> Path:
        return self.folder / f"{name}.json"


def problem_of(project: Path, path: Path) -> str:
    """Why nothing is kept at this path of the project, "" when it may be: a clone may ship a folder that is a
    link, and the home folder is no project.
    """
    if os.path.realpath(project) in {"/", os.path.realpath(os.environ.get("HOME") or "/")}:
        return f"{project} is no project"
    folders = path.relative_to(project).parents
    link = next((project / f for f in folders if (project / f).is_symlink() and str(f) != "."), None)
    return f"{link} is a link: nothing is read or written there" if link else ""
