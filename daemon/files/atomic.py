"""Whole-file writes that a reader never sees half-done; corrupt files set aside; backups.

Owns: the temporary file beside the target, the syncs, the rename. Never makes folders and never writes into
an existing file. When the file system says no, the old file is untouched, the temporary one is gone, and
``Unavailable`` says which path and why.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from contextlib import suppress
from pathlib import Path

from daemon.core.errors import Unavailable

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
_BACKUP = ".reflectd-backup-"
_STAMP = re.compile(r"\d{8}T\d{6}(-\d{3})?")
# Folders that cannot be opened for reading, and file systems that cannot sync one: the rename itself is done.
_NO_FOLDER_SYNC = {errno.EACCES, errno.EINVAL, errno.ENOTSUP}


def write_atomic(
    path: str | Path,
    data: bytes | str,
    mode: int | None = 0o600,
    *,
    durable: bool = True,
    follow: bool = False,
) -> None:
    """Replace ``path`` by ``data`` (text goes out as UTF-8, newlines as they are), all or nothing.

    ``mode`` is set exactly, whatever the umask; ``None`` keeps mode and owner of the file that is there, and
    leaves a new one to the umask. ``durable=False`` skips the syncs, for what may be lost with the power.

    A symlink is replaced, because a cloned repository may ship one that points at something of yours.
    ``follow=True`` writes where it points, for a person's own settings (dotfiles are often links).

    Raises ``Unavailable``.
    """
    try:
        _write(_target(path, follow=follow), data.encode() if isinstance(data, str) else data, mode, durable)
    except OSError as error:
        raise Unavailable(f"can't write {path}: {_reason(error)}") from error


def set_aside(path: str | Path, stamp: str) -> Path:
    """Rename a corrupt file to ``<name>.corrupt-<stamp>`` (``-2``, ``-3`` … when taken) and say where it is.

    Nothing is overwritten. Of a symlink only the link moves. Raises ``Unavailable``.
    """
    path = Path(path)
    count = 1
    try:
        path.lstat()  # or the reserved name would stay behind, empty
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
    """Copy ``path`` to ``<name>.reflectd-backup-<stamp>`` with its mode; of older ones ``keep - 1`` stay.

    ``stamp`` is ``YYYYmmddTHHMMSS``; a second one in the same second gets ``-002``. Raises ``Unavailable``.
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


def _write(target: str, data: bytes, mode: int | None, durable: bool) -> None:
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
        0o666 if mode is None and old is None else 0o600,
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
