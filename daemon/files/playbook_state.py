"""What reflectd knows of a project's playbook and does not write into it, in the state folder.

* The highest number that was given to a name of each kind, so that no name is given twice, also after its
  point was removed.
* The texts that a person approved, as digests. ``playbook.json`` may come with a clone, so it can't say that.

The file is 0600 and replaced as a whole. One that can't be used counts as empty and is renamed at the next
write.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from .atomic import set_aside, write_atomic
from .bounded import read_text

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

FOLDER: Final = "playbooks"  # in the state folder
LIMIT: Final = 16 * 1024 * 1024
APPROVED_KEPT: Final = 100_000


@dataclass(slots=True)
class Known:
    """``highest``: how a name begins → the highest number. ``approved``: digest of a text → epoch ms."""

    highest: dict[str, int] = field(default_factory=dict)
    approved: dict[str, int] = field(default_factory=dict)

    def raise_to(self, highest: dict[str, int]) -> None:
        """Names up to these numbers are never given again."""
        for slug, number in highest.items():
            self.highest[slug] = max(number, self.highest.get(slug, 0))

    def approve(self, texts: Iterable[str], now_ms: int) -> None:
        """A person wrote or approved these texts."""
        for text in texts:
            self.approved.pop(digest(text), None)
            self.approved[digest(text)] = now_ms
        while len(self.approved) > APPROVED_KEPT:
            del self.approved[next(iter(self.approved))]

    def is_approved(self, text: str) -> bool:
        """Whether a person wrote or approved exactly this text."""
        return digest(text) in self.approved


def digest(text: str) -> str:
    """The digest by which a text is known."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def folder_of(state_dir: Path, project: str | Path) -> Path:
    """The folder of one project's playbook in the state folder, by the project's real path."""
    name = os.path.realpath(project)
    return state_dir / FOLDER / sha256(os.fsencode(name)).hexdigest()[:16]


class StateFile:
    """One project's file. Who changes it holds the lock on its folder (``files.alone``)."""

    def __init__(self, state_dir: Path, project: str | Path) -> None:
        self.folder = folder_of(state_dir, project)
        self._path = self.folder / "known.json"
        self._project = os.path.realpath(project)

    def load(self) -> Known:
        """What is known; nothing when the file is missing or can't be used. Never raises."""
        try:
            found = json.loads(read_text(self._path, LIMIT) or "{}")
            return Known(_numbers(found["highest"]), _numbers(found["approved"]))
        except (OSError, ValueError, RecursionError, KeyError, TypeError):
            return Known()

    def save(self, known: Known, now_ms: int) -> None:
        """Replace the file; its folder is there. Raises ``Unavailable``."""
        if os.path.lexists(self._path) and self.load() == Known() and known != Known():
            set_aside(self._path, str(now_ms))
        text = {"project": self._project, "highest": known.highest, "approved": known.approved}
        write_atomic(self._path, json.dumps(text, indent=1) + "\n", mode=0o600)


def _numbers(found: object) -> dict[str, int]:
    if not isinstance(found, dict) or not all(type(n) is int and n >= 0 for n in found.values()):
        raise ValueError("it is no table of numbers")
    return found
