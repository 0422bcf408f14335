"""The changes that reflectd made of a project's rules and preferences: each with what the file was before it,
in the state folder.

A change is kept before the file is replaced, and as done once the journal says so too: what was begun and not
done is what a killed process left (``learned_rules``). Numbers count through all files of the project.
"""

from __future__ import annotations

import zlib
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ...core.errors import UserError
from ...files.atomic import write_atomic
from ...files.bounded import read_bytes
from .journal import RULE_ID

if TYPE_CHECKING:
    from pathlib import Path

    from ..state import ReflectState

KEPT: Final = 100
BYTES: Final = 50_000_000  # of all of them
LIMIT: Final = 16_000_000  # of one
FOLDER: Final = "changes"  # in the project's folder of the state
Pair = tuple[dict[str, Any] | None, dict[str, Any] | None]


@dataclass(frozen=True, slots=True)
class Change:
    """One change. ``file``: its path from the project, "" where nothing but Workshop was told. ``before`` and
    ``after``: digests of the file, "" for none. ``rules``: each entry of the journal before and after it.
    ``signals``: [id, status before, status after]. ``retired``: the playbook's revision that took out the
    point that said the same. ``undoes``: the number of the change that this one undid. ``backup``: what the
    file was, packed; None where there was none.
    """

    number: int
    at: int
    what: str
    file: str = ""
    soft: bool = False
    before: str = ""
    after: str = ""
    why: str = ""
    by: str = "you"
    rules: tuple[Pair, ...] = ()
    signals: tuple[tuple[str, str, str], ...] = ()
    retired: int = 0
    undoes: int = 0
    done: bool = False
    backup: bytes | None = None

    def content(self) -> bytes:
        """What the file was before it, empty for none. Raises ``UserError`` when that can't be read."""
        try:
            return zlib.decompress(self.backup or packed(b""))
        except zlib.error:
            raise UserError(f"what {self.file} was before change {self.number} can't be read") from None


class Changes:
    """Those of one project. Who writes holds the lock on the state's folder."""

    def __init__(self, state: ReflectState) -> None:
        self._folder = state.folder / FOLDER

    def all(self) -> list[Change]:
        """Newest first. One that can't be understood is left out."""
        found: list[Change] = []
        for path in self._paths():
            with suppress(OSError, ValueError, RecursionError):
                found.append(msgspec.json.decode(read_bytes(path, LIMIT) or b"", type=Change))
        return found

    def entries(self) -> list[dict[str, Any]]:
        """Every entry of the journal that a change made, newest first."""
        return [after for c in self.all() for _, after in c.rules if after is not None]

    def highest_rule(self) -> int:
        """The highest number of a rule that a change was about."""
        entries = (str(entry.get("id")) for c in self.all() for pair in c.rules for entry in pair if entry)
        return max((int(m[1]) for name in entries if (m := RULE_ID.fullmatch(name))), default=0)

    def next_number(self) -> int:
        """The number of the next change."""
        return max((int(path.stem) for path in self._paths()), default=0) + 1

    def put(self, change: Change) -> None:
        """Keep it, in place of what is kept under its number. Raises ``Unavailable``."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_atomic(self._path(change), msgspec.json.encode(change), mode=0o600)
        total = 0
        for i, path in enumerate(self._paths()):
            with suppress(OSError):
                total += path.stat().st_size
                if i and (i >= KEPT or total > BYTES):
                    path.unlink()

    def drop(self, change: Change) -> None:
        """It did not come about."""
        self._path(change).unlink(missing_ok=True)

    def finished(self, change: Change, *, retired: int = 0) -> None:
        """It is done. Raises ``Unavailable``."""
        self.put(replace(change, done=True, retired=retired or change.retired))

    def wanted(self, number: int = 0) -> Change:
        """The change that would be taken back: this one; for 0 the newest that nobody undid. Raises
        ``UserError``.
        """
        every = self.all()
        gone = undone(every)
        if number == 0:
            found = next((c for c in every if c.number not in gone and not c.undoes), None)
            if found is None:
                raise UserError("there is nothing to undo")
            return found
        found = next((c for c in every if c.number == number), None)
        if found is None:
            raise UserError(f"there is no change {number}; `reflectd reflect history` lists them")
        if found.number in gone:
            raise UserError(f"change {number} is undone already")
        return found

    def _path(self, change: Change) -> Path:
        return self._folder / f"{change.number:08d}.json"

    def _paths(self) -> list[Path]:
        return sorted((p for p in self._folder.glob("*.json") if p.stem.isdecimal()), reverse=True)


def undone(changes: list[Change]) -> set[int]:
    """The numbers of those that are undone now. ``changes``: newest first; an undo may be undone itself."""
    found: set[int] = set()
    for change in changes:
        if change.undoes and change.number not in found:
            found.add(change.undoes)
    return found


def digest(content: bytes) -> str:
    """The mark of a file's content, "" of a missing or empty one."""
    return sha256(content).hexdigest() if content else ""


def packed(content: bytes) -> bytes:
    """A file's content as a change keeps it."""
    return zlib.compress(content)
