"""What the settings of a host were before ``reflectd setup`` edited them, and the way back.

Backups are kept in the data folder and never beside the settings, which may lie in a repository. Each edited
file has a folder there: ``file`` names it, ``<stamp>-<number>-<name>`` is a copy of it, and
``<stamp>-<number>-none`` says that there was no file; it lists the folders that were made for it. ``written``
is what we wrote last. So this is also the list of all files that ``setup`` has edited. A file that was edited
since is never overwritten without ``--force``, and is kept then.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...core.errors import Unavailable, UserError
from ...files.safe import make_folder, remove_empty
from ...paths import data_folder
from .copies import remove_made
from .edit import BACKUPS_KEPT, Report, check_editable, diff, read

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

_NAME: Final = "file"
_NONE: Final = "none"
_WRITTEN: Final = "written"
_SCHEMA: Final = re.compile(rb'"\$schema"\s*:\s*"[^"]*"\s*,?')


def write(
    env: Mapping[str, str], file: Path, old: bytes, data: bytes, now: Callable[[], datetime]
) -> Path | None:
    """Keep the file, which was read as ``old``, then replace it. Returns the backup, None when there was no
    file. What somebody saved meanwhile stays, and is ``Unavailable``.
    """
    there = file.exists()
    made = [] if there else make_folder(file.parent)
    backup = _keep(env, file, old, now, made)
    try:
        _put(env, file, data, old)
    except Unavailable:
        _remove_made([backup])
        backup.unlink()
        if not kept(env, file):
            _forget(env, file)
        raise
    return backup if there else None


def kept(env: Mapping[str, str], file: Path) -> list[Path]:
    """The backups of the file, oldest first."""
    folder = _folder(env, file)
    found = folder.iterdir() if folder.is_dir() else ()
    return sorted(path for path in found if path.name not in {_NAME, _WRITTEN})


def edited_files(env: Mapping[str, str]) -> list[Path]:
    """Every settings file that has backups; it may be gone."""
    found = []
    for name in (data_folder(env) / "backups").glob(f"*/{_NAME}"):
        with suppress(OSError):
            found.append(Path(name.read_text("utf-8", "surrogateescape")))
    return sorted(found)


def was_made(env: Mapping[str, str], file: Path) -> bool:
    """Whether there was no file before us."""
    return any(map(_is_none, kept(env, file)))


def oldest(env: Mapping[str, str], file: Path) -> bytes | None:
    """What the file was before our first edit; None when there was none, or when nothing is kept."""
    found = kept(env, file)[:1]
    return _content(found[0]) if found else None


def before(env: Mapping[str, str], file: Path) -> tuple[bool, bytes | None]:
    """Whether nobody edited the file since our last edit, and what it was before that: None is no file."""
    found = kept(env, file)[-1:]
    if not found or not _is_untouched(env, file):
        return False, None
    return True, _content(found[0])


def put_back(env: Mapping[str, str], file: Path, old: bytes, data: bytes | None) -> None:
    """Make the file, which was read as ``old``, ``data`` again, or remove it with the empty folders that were
    made for it. All its backups are removed too. What somebody saved meanwhile stays, and is ``Unavailable``.
    """
    from ...files.safe import CHANGED, backups, holds, write_atomic

    if data is None:
        if not holds(file, old):
            raise Unavailable(f"can't remove {file}: {CHANGED}")
        file.unlink(missing_ok=True)
    else:
        write_atomic(file, data, mode=None, follow=True, expected=old)
    for _, beside in backups(file):  # where earlier versions kept them
        beside.unlink()
    if data is None:
        _remove_made(kept(env, file))
    _forget(env, file)


def undo(
    env: Mapping[str, str], files: list[Path], now: Callable[[], datetime], *, force: bool, dry_run: bool
) -> Report:
    """Bring back the newest backup of these files and delete it. Raises ``UserError`` when there is none, or
    when the file was edited since and ``force`` is not given; with it, the edited version is kept.
    """
    found = [(backup.name, backup, file) for file in files for backup in kept(env, file)]
    if not found:
        raise UserError(f"there is no backup of {files[0]}: nothing to undo. --remove removes what is ours")
    _, backup, file = max(found)
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
        backup.unlink()
        if not kept(env, file):
            _forget(env, file)
    change = diff(file, old.decode(errors="replace"), (new or b"").decode(errors="replace"))
    return Report(file, "deleted" if new is None else "restored", "", saved, change)


def _keep(
    env: Mapping[str, str], file: Path, old: bytes, now: Callable[[], datetime], made: list[Path]
) -> Path:
    """A backup of the file, or the note that there is none. The newest stay, and the oldest of all."""
    from ...files.safe import write_atomic

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
        for outdated in kept(env, file)[1 : -BACKUPS_KEPT + 1]:
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
    from ...files.safe import write_atomic

    write_atomic(file, data, mode=None, follow=True, expected=old)
    write_atomic(_folder(env, file) / _WRITTEN, data)


def _is_untouched(env: Mapping[str, str], file: Path) -> bool:
    """Whether the file is as we wrote it. opencode itself adds the member ``$schema`` to a file that has
    none: that is no edit.
    """
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


def _forget(env: Mapping[str, str], file: Path) -> None:
    folder = _folder(env, file)
    shutil.rmtree(folder, ignore_errors=True)
    remove_made(env, folder.parent)
