"""Replaces whole files so that no reader sees half of one; renames corrupt files; makes backups.

A write goes to a temporary file in the same folder, which is then renamed. This module never makes folders
and never writes into an existing file. When the file system refuses, the old file is untouched, the temporary
file is removed, and ``Unavailable`` says which path and why.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from contextlib import suppress
from pathlib import Path

from ..core.errors import Unavailable
from .bounded import read_bytes

_REASONS = {
    errno.EROFS: "the file system is read-only",
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EACCES: "permission denied",
    errno.EPERM: "not permitted",
    errno.ENOENT: "the folder or file does not exist",
    errno.ENOTDIR: "a part of the path is not a folder",
    errno.ELOOP: "its links go in a circle",
    errno.ENAMETOOLONG: "the name is too long",
}
CHANGED = "it was changed meanwhile. Nothing was written: run this again"
_BACKUP = ".reflectd-backup-"
_TEMPORARY = re.compile(r"\.reflectd-[0-9a-f]{16}\.tmp")
_STAMP = re.compile(r"\d{8}T\d{6}(-\d{3})?")
# Some folders can't be opened for reading, and some file systems can't sync one. The rename is done all the
# same.
_NO_FOLDER_SYNC = {errno.EACCES, errno.EINVAL, errno.ENOTSUP}


def write_atomic(
    path: str | Path,
    data: bytes | str,
    mode: int | None = 0o600,
    *,
    durable: bool = True,
    follow: bool = False,
    expected: bytes | None = None,
) -> None:
    """Replace the file at ``path`` by ``data`` (text as UTF-8, its newlines unchanged), all or nothing.

    The file gets exactly ``mode``, whatever the umask is. ``None`` keeps the mode and owner of an existing
    file; a new file gets what the umask leaves of 0644. ``durable=False`` skips the syncs, for data that a
    power cut may lose.

    A symlink is replaced, because a cloned repository may ship one that points at a file of the person's.
    ``follow=True`` writes to the file it points at, for a person's own settings (dotfiles are often links).

    ``expected``: what ``data`` was made from, empty for no file. It is compared right before the file is
    replaced: what somebody saved meanwhile stays, and nothing is written.

    Raises ``Unavailable``.
    """
    content = data.encode() if isinstance(data, str) else data
    try:
        _write(_target(path, follow=follow), content, mode, durable, expected)
    except OSError as error:
        raise Unavailable(f"can't write {path}: {_reason(error)}") from error


def remove_leftovers(folder: Path, before_ns: int) -> None:
    """Remove the temporary files that a killed process left in the folder, if they are older than
    ``before_ns`` (epoch ns, of the last change). What can't be removed stays.
    """
    with suppress(OSError), os.scandir(folder) as found:
        for entry in found:
            if _TEMPORARY.fullmatch(entry.name):
                with suppress(OSError):
                    if entry.stat(follow_symlinks=False).st_mtime_ns < before_ns:
                        os.unlink(entry.path)  # noqa: PTH108 - as above


def set_aside(path: str | Path, stamp: str) -> Path:
    """Rename a corrupt file to ``<name>.corrupt-<stamp>`` (``-2``, ``-3`` … when taken). Returns the new
    path.

    Nothing is overwritten. Of a symlink only the link is renamed. Raises ``Unavailable``.
    """
    path = Path(path)
    count = 1
    try:
        path.lstat()  # raises when there is no file, before a name is reserved
        while True:
            aside = path.with_name(f"{path.name}.corrupt-{stamp}" + (f"-{count}" if count > 1 else ""))
            try:
                # a rename overwrites silently, so the name is reserved first
                os.close(os.open(aside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            except FileExistsError:
                count += 1
                continue
            try:
                return path.replace(aside)
            except BaseException:
                aside.unlink()
                raise
    except OSError as error:
        raise Unavailable(f"can't set {path} aside: {_reason(error)}") from error


def back_up(path: Path, stamp: str, *, keep: int) -> Path:
    """Copy ``path`` with its mode to ``<name>.reflectd-backup-<stamp>``. The ``keep`` newest backups stay.

    ``stamp`` is ``YYYYmmddTHHMMSS``; a second backup in the same second gets ``-002``. Raises
    ``Unavailable``.
    """
    try:
        mode, data = stat.S_IMODE(path.stat().st_mode), path.read_bytes()
        taken = [found for found, _ in backups(path) if found.startswith(stamp)]
        number = f"-{int(taken[-1][16:] or 1) + 1:03d}" if taken else ""
        backup = path.with_name(f"{path.name}{_BACKUP}{stamp}{number}")
        write_atomic(backup, data, mode)
        for _, outdated in backups(path)[:-keep]:
            outdated.unlink()
    except OSError as error:
        raise Unavailable(f"can't back up {path}: {_reason(error)}") from error
    return backup


def backups(path: Path) -> list[tuple[str, Path]]:
    """The backups of ``path`` with their stamps, oldest first."""
    start = f"{path.name}{_BACKUP}"
    there = path.parent.iterdir() if path.parent.is_dir() else ()
    found = [(file.name.removeprefix(start), file) for file in there if file.name.startswith(start)]
    return sorted((stamp, file) for stamp, file in found if _STAMP.fullmatch(stamp))


def _target(path: str | Path, *, follow: bool) -> str:
    name = os.fspath(path)
    return os.path.realpath(name) if follow and os.path.islink(name) else name  # noqa: PTH114 - twice as fast


def holds(path: str | Path, expected: bytes) -> bool:
    """Whether the file holds exactly this; a missing file is empty."""
    try:
        return (read_bytes(path, len(expected)) or b"") == expected
    except ValueError:
        return False


def _write(target: str, data: bytes, mode: int | None, durable: bool, expected: bytes | None) -> None:
    try:
        old = os.lstat(target)
    except FileNotFoundError:
        old = None
    if old and not (stat.S_ISREG(old.st_mode) or stat.S_ISLNK(old.st_mode)):
        raise OSError(errno.EINVAL, "it is not a regular file")  # a rename would replace /dev/null itself
    folder = os.path.dirname(target) or "."  # noqa: PTH120 - this runs for every verdict
    temporary = f"{folder}/.reflectd-{os.urandom(8).hex()}.tmp"
    fd = os.open(
        temporary,
        os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC,
        0o644 if mode is None and old is None else 0o600,
    )
    try:
        with open(fd, "wb", buffering=0) as file:  # noqa: PTH123 - a descriptor, not a path
            if mode is not None:
                os.fchmod(fd, mode)
            elif old:
                _keep_owner(fd, old)
                os.fchmod(fd, stat.S_IMODE(old.st_mode))
            rest = memoryview(data)
            while rest:
                rest = rest[file.write(rest) :]
            if durable:
                os.fsync(fd)
        if expected is not None and not holds(target, expected):
            raise OSError(errno.EAGAIN, CHANGED)
        os.replace(temporary, target)  # noqa: PTH105
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)  # noqa: PTH108
        raise
    if durable:
        _sync_folder(folder)


def _keep_owner(fd: int, old: os.stat_result) -> None:
    ours = os.fstat(fd)
    if ours.st_uid != old.st_uid:  # root may; anyone else must not take the file over
        os.fchown(fd, old.st_uid, old.st_gid)
    elif ours.st_gid != old.st_gid:
        with suppress(PermissionError):
            os.fchown(fd, -1, old.st_gid)


def _sync_folder(folder: str) -> None:
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:
            raise


def _reason(error: OSError) -> str:
    return _REASONS.get(error.errno or 0) or error.strerror or str(error)
