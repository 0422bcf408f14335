"""Edits one settings file for ``reflectd setup`` and ``config``: checks it, and replaces it as a whole.
``put_settings`` and ``write`` are for our own settings, with the backup beside the file; those of hosts go
through ``backups``.

The callers decide what is written. When the file system refuses, the old file is untouched and the error is
``Unavailable``, or ``UserError`` with what to do.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ... import config, paths
from ...core.errors import Unavailable, UserError, words
from ...core.settings import Settings, toml
from ...files.safe import make_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime

    from ...core.settings import Value

BACKUPS_KEPT = 5
LIMIT = 4_000_000  # bytes of a settings file
_FLEETING = (
    "/uv/archive-v",
    "/uv/builds-v",
    "/pipx/.cache/",
)  # uvx and `pipx run` delete these folders again

Action = Literal["created", "added", "replaced", "removed", "deleted", "restored", "unchanged"]


@dataclass(frozen=True, slots=True)
class Extra:
    """What became of a file beside the settings. ``told``: what the person reads, "" for nothing."""

    told: str = ""
    changed: bool = False


NOTHING = Extra()


@dataclass(frozen=True, slots=True)
class Report:
    """What was done, or would be done. ``copied``: the plugin's copy was made or brought up to date.
    ``command``: what became of the bare `/reflect`.
    """

    file: Path
    action: Action
    line: str
    backup: Path | None
    diff: str
    warnings: tuple[str, ...] = ()
    copied: bool = False
    command: Extra = NOTHING


@dataclass(frozen=True, slots=True)
class Written:
    """Our own settings after some were set, or as they would be after a dry run. ``changed``: the keys whose
    value in the file is another one now. ``notes``: which variable counts more than the file. ``problem``:
    why no daemon starts with them; "" if one does.
    """

    file: Path
    settings: Settings
    changed: frozenset[str] = frozenset()
    diff: str = ""
    backup: Path | None = None
    notes: tuple[str, ...] = ()
    problem: str = ""

    def as_json(self, *keys: str) -> dict[str, object]:
        """What became of some of them."""
        backup = str(self.backup) if self.backup else None
        more = {"file": str(self.file), "diff": self.diff, "backup": backup, "warnings": self.notes}
        return {"changed": not self.changed.isdisjoint(keys), **more}


def put_settings(
    env: Mapping[str, str],
    values: Mapping[str, Value],
    now: Callable[[], datetime],
    *,
    force: bool = False,
    dry_run: bool = False,
) -> Written:
    """Set some of our own settings in the person's file, all or none; other mistakes in it stay. Raises
    ``UserError`` and ``Unavailable``.
    """
    file, wrong = paths.config_file(env), list[str]()
    old, new = _with_settings(file, values)
    check_editable(file, force=force)
    settings = config.from_text(new, name=str(file), env=env, left_out=wrong)
    changed = frozenset(key for key in values if _with_settings(file, {key: values[key]})[1] != old)
    backup = None if dry_run or new == old else write(file, old, new, now)
    notes = [
        f"{source} in your environment counts more than {key} = {toml(value)} in {file}"
        for key, value in values.items()
        if (source := settings.sources.get(key, "")) != str(file)
    ]
    problem = "\n".join(wrong)
    return Written(file, settings, changed, diff(file, old, new), backup, tuple(notes), problem)


def _with_settings(file: Path, values: Mapping[str, Value]) -> tuple[str, str]:
    """The text of our settings file, and its text with these values. Raises ``UserError`` and
    ``Unavailable``.
    """
    from ...files.toml_text import put

    old = new = read_text(file) if file.exists() else ""
    try:
        for key, value in values.items():
            section, _, name = key.rpartition(".")
            new = put(new, section, name, value)
    except UserError as error:
        raise UserError(f"{file}: {error}. Nothing was changed in it") from error
    return old, new


def read_text(file: Path) -> str:
    """The settings as text. ``UserError`` when they are no text of this size, ``Unavailable`` when they can't
    be read.
    """
    try:
        return read(file).decode()
    except UnicodeDecodeError as error:
        raise UserError(f"{file} is not UTF-8 (byte {error.start}): save it as UTF-8") from error


def read(file: Path) -> bytes:
    """The content of a settings file, which may have come with a clone; nothing for no file. Raises
    ``UserError``, ``Unavailable``.
    """
    from ...files.safe import read_bytes

    try:
        return read_bytes(file, LIMIT) or b""
    except ValueError as error:
        raise UserError(f"{file} can't be used: {words(error)}") from error
    except OSError as error:
        raise Unavailable(f"can't read {file}: {error.strerror}") from error


def stay_inside(folder: Path, files: Iterable[Path]) -> None:
    """Refuse files of a project that a link leads out of it: a clone may bring that link. Raises
    ``UserError``.
    """
    top = folder.resolve()
    for file in files:
        if not Path(os.path.realpath(file)).is_relative_to(top):
            raise UserError(
                f"{file} leads out of {folder}, to {os.path.realpath(file)}. Nothing was changed: "
                "put a file there, or edit that one"
            )


def fleeting(line: str) -> str:
    """A warning when ``line`` loads from a folder that will be deleted again; else empty."""
    if any(part in line for part in _FLEETING):
        return "reflectd runs from a temporary folder: uv tool install it, then run this again"
    return ""


def write(file: Path, old: str, new: str, now: Callable[[], datetime]) -> Path | None:
    """Replace the file, which was read as ``old``. Returns the backup of it, None when there was no file."""
    from ...files.safe import back_up, write_atomic

    make_folder(file.parent)
    backup = back_up(file, f"{now():%Y%m%dT%H%M%S}", keep=BACKUPS_KEPT) if file.exists() else None
    try:
        write_atomic(file, new, mode=None, follow=True, expected=old.encode())
    except Unavailable:
        if backup:
            backup.unlink(missing_ok=True)
        raise
    if backup:  # so that --undo sees whether the file was edited since
        written = file.stat().st_mtime_ns
        os.utime(backup, ns=(written, written))
    return backup


def check_editable(file: Path, *, force: bool) -> None:
    """Refuse a file that the person did not mean to be replaced. Raises ``UserError``."""
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
