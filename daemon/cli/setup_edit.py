"""One settings file of a host, edited for ``reflectd setup``: checked, backed up, replaced as a whole.

Never decides what is written. When the file system says no, the old file is untouched: ``Unavailable``, or
``UserError`` with what to do.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from daemon.core.errors import Unavailable, UserError

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

BACKUPS_KEPT = 5
_FLEETING = ("/uv/archive-v", "/uv/builds-v", "/pipx/.cache/")  # what uvx and `pipx run` delete again

Action = Literal["created", "added", "replaced", "removed", "restored", "unchanged"]


@dataclass(frozen=True, slots=True)
class Report:
    """What was done, or would be."""

    file: Path
    action: Action
    line: str
    backup: Path | None
    diff: str
    warnings: tuple[str, ...] = ()


def read_text(file: Path) -> str:
    """The settings as text. ``UserError`` when not UTF-8, ``Unavailable`` when they can't be read."""
    try:
        return file.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise UserError(f"{file} is not UTF-8 (byte {error.start}): save it as UTF-8") from error
    except OSError as error:
        raise Unavailable(f"can't read {file}: {error.strerror}") from error


def fleeting(line: str) -> str:
    """A warning when what is loaded will be deleted again."""
    if any(part in line for part in _FLEETING):
        return "reflectd runs from a temporary folder: uv tool install it, then run this again"
    return ""


def write(file: Path, data: bytes, now: Callable[[], datetime]) -> Path | None:
    """Replace it; the old version is the backup that is returned."""
    from daemon.files.atomic import back_up, write_atomic

    file.parent.mkdir(parents=True, exist_ok=True)
    backup = back_up(file, f"{now():%Y%m%dT%H%M%S}", keep=BACKUPS_KEPT) if file.exists() else None
    write_atomic(file, data, mode=None, follow=True)
    if backup:  # so that --undo sees whether the file was edited since
        written = file.stat().st_mtime_ns
        os.utime(backup, ns=(written, written))
    return backup


def check_editable(file: Path, *, force: bool) -> None:
    """Refuse what a rename would do against the person's will. Raises ``UserError``."""
    if not file.exists():
        return
    found = file.stat()
    name = f"{file} (a link to {file.resolve()})" if file.is_symlink() else str(file)
    if not stat.S_ISREG(found.st_mode):
        raise UserError(f"{name} is not a regular file")
    if found.st_uid != os.geteuid() and not force:
        raise UserError(f"{name} belongs to user {found.st_uid}: run this as that user, or add --force")
    if not found.st_mode & stat.S_IWUSR:
        raise UserError(f"{name} is read-only: chmod u+w it, or change it in the tool that generates it")


def diff(file: Path, old: str, new: str) -> str:
    """The change, as a unified diff."""
    from difflib import unified_diff

    lines = unified_diff(old.splitlines(True), new.splitlines(True), str(file), f"{file} (new)")
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )
