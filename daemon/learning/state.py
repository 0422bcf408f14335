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
        try:
            found = json.loads(read_text(self._path(name), LIMIT) or "{}")
        except (OSError, ValueError, RecursionError):
            return {}
        of = found.get(name) if isinstance(found, dict) else None
        return of if isinstance(of, dict) else {}

    def save(self, name: Name, value: dict[str, Any], now_ms: int, *, durable: bool = False) -> None:
        """Replace the file; its folder is there. ``durable``: it outlasts a power cut. Raises
        ``Unavailable``.
        """
        path = self._path(name)
        if os.path.lexists(path) and not self._is_whole(path):
            set_aside(path, str(now_ms))
        text = json.dumps({"project": self._project, name: value}, separators=(",", ":"))
        write_atomic(path, text + "\n", mode=0o600, durable=durable)

    def _path(self, name: Name) -> Path:
        return self.folder / f"{name}.json"

    def _is_whole(self, path: Path) -> bool:
        """Says whether the file ends like one written here; reading its content would take too long."""
        try:
            with path.open("rb") as file:
                head = file.read(1)
                file.seek(-2, os.SEEK_END)
                return head == b"{" and file.read() == b"}\n"
        except OSError:
            return False


def problem_of(project: Path, path: Path) -> str:
    """Why nothing is kept at this path of the project, "" when it may be: a clone may ship a folder that is a
    link, and the home folder is no project.
    """
    if os.path.realpath(project) in {"/", os.path.realpath(os.environ.get("HOME") or "/")}:
        return f"{project} is no project"
    folders = path.relative_to(project).parents
    link = next((project / f for f in folders if (project / f).is_symlink() and str(f) != "."), None)
    return f"{link} is a link: nothing is read or written there" if link else ""
