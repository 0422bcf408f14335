"""Changes one settings file of the person's, a host's or our own, and leads back.

Backups are kept in the data folder, never beside the settings, which may lie in a repository. Each edited
file has a folder there: ``file`` names it, ``written`` is our last text, ``<stamp>-<number>-<name>`` is a
copy, and ``<stamp>-<number>-none`` lists the folders that were made for it, where there was no file.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from contextlib import suppress
from difflib import unified_diff
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from ... import config, paths
from ...core.errors import Unavailable, UserError, words
from ...core.settings import Settings, toml
from ...files.safe import CHANGED, holds, make_folder, read_bytes, remove_empty, write_atomic
from ...files.toml_text import put
from ...paths import data_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime

    from ...core.settings import Value

    Clock = Callable[[], datetime]

KEPT: Final = 5  # backups of a file
LIMIT: Final = 4_000_000  # bytes of a settings file
_NAME, _NONE, _WRITTEN = "file", "none", "written"
_SCHEMA: Final = re.compile(rb'"\$schema"\s*:\s*"[^"]*"\s*,?')
_FLEETING: Final = ("/uv/archive-v", "/uv/builds-v", "/pipx/.cache/")  # uvx and `pipx run` delete these again

Action = Literal["created", "added", "replaced", "removed", "deleted", "restored", "unchanged"]


class Extra(Struct, frozen=True):
    """The outcome for a file beside the settings. ``told``: the text for the person, "" for nothing."""

    told: str = ""
    changed: bool = False


NOTHING: Final = Extra()


class Report(Struct, frozen=True):
    """The steps that were or would be done. ``copied``: the plugin's copy was made or brought up to date.
    ``command``: the outcome for the bare `/reflect`. ``note``: more text for the person.
    """

    file: Path
    action: Action
    line: str = ""
    backup: Path | None = None
    diff: str = ""
    warnings: tuple[str, ...] = ()
    copied: bool = False
    command: Extra = NOTHING
    note: str = ""


class Written(Struct, frozen=True):
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
        """The outcome for some of them."""
        backup = str(self.backup) if self.backup else None
        more = {"file": str(self.file), "diff": self.diff, "backup": backup, "warnings": self.notes}
        return {"changed": not self.changed.isdisjoint(keys), **more}


# --- what a file is before it is edited ---------------------------------------------------------------------


def read_text(file: Path) -> str:
    """The settings as text. Raises ``UserError`` for no small text, ``Unavailable``."""
    try:
        return read(file).decode()
    except UnicodeDecodeError as error:
        raise UserError(f"{file} is not UTF-8 (byte {error.start}): save it as UTF-8") from error


def read(file: Path) -> bytes:
    """A settings file's content, which may have come with a clone. Raises ``UserError``, ``Unavailable``."""
    try:
        return read_bytes(file, LIMIT) or b""
    except ValueError as error:
        raise UserError(f"{file} can't be used: {words(error)}") from error
    except OSError as error:
        raise Unavailable(f"can't read {file}: {error.strerror}") from error


def stay_inside(folder: Path, files: Iterable[Path]) -> None:
    """Refuse files that a link of a clone leads out of it. Raises ``UserError``."""
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
    lines = unified_diff(old.splitlines(True), new.splitlines(True), str(file), f"{file} (new)")
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


# --- a change, and the way back -----------------------------------------------------------------------------


def write(env: Mapping[str, str], file: Path, old: bytes, data: bytes, now: Clock) -> Path | None:
    """Keep the file, which was read as ``old``, then replace it. Returns the backup, None when there was no
    file. A save by somebody meanwhile stays, and is ``Unavailable``.
    """
    there = file.exists()
    made = [] if there else make_folder(file.parent)
    backup = _keep(env, file, old, now, made)
    try:
        _put(env, file, data, old)
    except Unavailable:
        _remove_made([backup])
        _drop(env, file, backup)
        raise
    return backup if there else None


def kept(env: Mapping[str, str], file: Path) -> list[Path]:
    """The backups of the file, oldest first."""
    folder = _folder(env, file)
    there = folder.iterdir() if folder.is_dir() else ()
    return sorted(path for path in there if path.name not in {_NAME, _WRITTEN})


def edited_files(env: Mapping[str, str]) -> list[Path]:
    """Every settings file that has backups; it may be gone."""
    files = []
    for name in (data_folder(env) / "backups").glob(f"*/{_NAME}"):
        with suppress(OSError):
            files.append(Path(name.read_text("utf-8", "surrogateescape")))
    return sorted(files)


def first(env: Mapping[str, str], file: Path) -> tuple[bool, bytes | None]:
    """(There was no file before our first edit, the file then): None also where nothing is kept."""
    backups = kept(env, file)
    return any(map(_is_none, backups)), _content(backups[0]) if backups else None


def before(env: Mapping[str, str], file: Path) -> tuple[bool, bytes | None]:
    """(Nobody edited the file since our last edit, the file before that): None is no file."""
    newest = kept(env, file)[-1:]
    if not newest or not _is_untouched(env, file):
        return False, None
    return True, _content(newest[0])


def put_back(env: Mapping[str, str], file: Path, old: bytes, data: bytes | None) -> None:
    """Make the file, which was read as ``old``, ``data`` again, or remove it with the empty folders that were
    made for it. All its backups are removed too. A save by somebody meanwhile stays, and is ``Unavailable``.
    """
    if data is None:
        if not holds(file, old):
            raise Unavailable(f"can't remove {file}: {CHANGED}")
        file.unlink(missing_ok=True)
        _remove_made(kept(env, file))
    else:
        write_atomic(file, data, mode=None, follow=True, expected=old)
    _forget(env, file)


def undo(env: Mapping[str, str], files: list[Path], now: Clock, *, force: bool, dry_run: bool) -> Report:
    """Bring back the newest backup of these files and delete it. Raises ``UserError`` when there is none, or
    when the file was edited since and ``force`` is not given; with it, the edited version is kept.
    """
    backups = [(backup.name, backup, file) for file in files for backup in kept(env, file)]
    if not backups:
        raise UserError(f"there is no backup of {files[0]}: nothing to undo")
    _, backup, file = max(backups)
    old, new = read(file), _content(backup)
    edited = not _is_untouched(env, file)
    if edited and not force:
        raise UserError(
            f"{file} was changed after our backup {backup}: use --remove to remove only what is ours, "
            "or --undo --force to restore the backup (your version is then kept)"
        )
    check_editable(file, force=force)
    saved = None
    if not dry_run:
        if edited and file.exists():
            saved = _keep(env, file, old, now, [])
        if new is None:
            file.unlink(missing_ok=True)
            _remove_made([backup])
        else:
            make_folder(file.parent)
            _put(env, file, new, old)
        _drop(env, file, backup)
    change = diff(file, old.decode(errors="replace"), (new or b"").decode(errors="replace"))
    return Report(file, "deleted" if new is None else "restored", "", saved, change)


def remove_made(env: Mapping[str, str], folder: Path) -> None:
    """Remove ``folder`` and those above it if they are empty and ``setup`` may have made them."""
    ours, share = data_folder(env), Path(env.get("HOME", ""), ".local", "share")
    usual = {share, share.parent} if ours.parent == share else set()
    remove_empty(f for f in (folder, *folder.parents) if f.is_relative_to(ours) or f in usual)


def _keep(env: Mapping[str, str], file: Path, old: bytes, now: Clock, made: list[Path]) -> Path:
    """A backup of the file, or the note that there is none. The newest stay, and the oldest of all."""
    folder, stamp = _folder(env, file), f"{now():%Y%m%dT%H%M%S}"
    there = file.exists()
    data = old if there else "".join(f"{path}\n" for path in made).encode()
    taken = [path.name for path in kept(env, file) if path.name.startswith(stamp)]
    number = int(taken[-1].split("-")[1]) + 1 if taken else 1
    backup = folder / f"{stamp}-{number:03d}-{file.name if there else _NONE}"
    try:
        make_folder(folder)
        folder.chmod(0o700)  # settings can hold keys
        write_atomic(folder / _NAME, os.fsencode(file))
        write_atomic(backup, data, stat.S_IMODE(file.stat().st_mode) if there else 0o600)
        for outdated in kept(env, file)[1 : -KEPT + 1]:
            outdated.unlink()
    except OSError as error:
        raise Unavailable(f"can't back up {file} in {folder}: {error.strerror}") from error
    return backup


def _folder(env: Mapping[str, str], file: Path) -> Path:
    return data_folder(env) / "backups" / sha256(os.fsencode(file)).hexdigest()[:12]


def _content(backup: Path) -> bytes | None:
    return None if _is_none(backup) else backup.read_bytes()


def _is_none(backup: Path) -> bool:
    return backup.name.endswith(f"-{_NONE}")


def _put(env: Mapping[str, str], file: Path, data: bytes, old: bytes) -> None:
    """Write the file, and note what was written, so that the next edit is seen."""
    write_atomic(file, data, mode=None, follow=True, expected=old)
    write_atomic(_folder(env, file) / _WRITTEN, data)


def _is_untouched(env: Mapping[str, str], file: Path) -> bool:
    """Says whether the file is as we wrote it; a ``$schema`` that opencode added is no edit."""
    try:
        now, then = read(file), (_folder(env, file) / _WRITTEN).read_bytes()
    except (OSError, UserError, Unavailable):
        return False
    added = _SCHEMA.search(now) and not _SCHEMA.search(then)
    return now == then or bool(added and _bare(now) == _bare(then))


def _bare(data: bytes) -> bytes:
    """Without ``$schema``, spaces and line breaks."""
    return b"".join(_SCHEMA.sub(b"", data).split())


def _remove_made(backups: list[Path]) -> None:
    """Remove the folders that were made for the file, if they are empty."""
    for backup in filter(_is_none, backups):
        made = backup.read_text("utf-8", "surrogateescape").splitlines()
        remove_empty(Path(folder) for folder in reversed(made))


def _drop(env: Mapping[str, str], file: Path, backup: Path) -> None:
    backup.unlink()
    if not kept(env, file):
        _forget(env, file)


def _forget(env: Mapping[str, str], file: Path) -> None:
    folder = _folder(env, file)
    shutil.rmtree(folder, ignore_errors=True)
    remove_made(env, folder.parent)


# --- our own settings ---------------------------------------------------------------------------------------


def put_settings(
    env: Mapping[str, str],
    values: Mapping[str, Value],
    now: Clock,
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
    backup = None if dry_run or new == old else write(env, file, old.encode(), new.encode(), now)
    notes = [
        f"{source} in your environment counts more than {key} = {toml(value)} in {file}"
        for key, value in values.items()
        if (source := settings.sources.get(key, "")) != str(file)
    ]
    problem = "\n".join(wrong)
    return Written(file, settings, changed, diff(file, old, new), backup, tuple(notes), problem)


def _with_settings(file: Path, values: Mapping[str, Value]) -> tuple[str, str]:
    """Our settings, as they are and with these values. Raises ``UserError``, ``Unavailable``."""
    old = new = read_text(file) if file.exists() else ""
    try:
        for key, value in values.items():
            section, _, name = key.rpartition(".")
            new = put(new, section, name, value)
    except UserError as error:
        raise UserError(f"{file}: {error}. Nothing was changed in it") from error
    return old, new
