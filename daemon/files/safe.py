"""Reads and replaces files that others may have made or may read at the same moment, and locks folders.

A reader never blocks on a FIFO or a device and never takes more than a limit. A writer fills a temporary file
in the same folder and renames it, so nobody sees half a file. When the file system refuses, the old file is
untouched and ``Unavailable`` says which path and why.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import Unavailable, words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CHANGED = "it was changed meanwhile. Nothing was written: run this again"
_TEMPORARY = re.compile(r"\.reflectd-[0-9a-f]{16}\.tmp")
# Some folders can't be opened for reading, and some file systems can't sync one. The rename is done all the
# same.
_NO_FOLDER_SYNC = {errno.EACCES, errno.EINVAL, errno.ENOTSUP}


# --- reading ------------------------------------------------------------------------------------------------


def read_text(path: str | Path, limit: int, *, follow: bool = True) -> str | None:
    """The file's text (UTF-8, without a BOM), None when there is no file.

    ``follow=False`` refuses a path whose last part is a link. Raises ``OSError`` (the system refused) and
    ``ValueError`` (it is no small text file), each with the reason in words.
    """
    raw = read_bytes(path, limit, follow=follow)
    try:
        return None if raw is None else raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8 (byte {error.start})") from None


def read_bytes(path: str | Path, limit: int, *, follow: bool = True) -> bytes | None:
    """The file's content, None when there is no file. As ``read_text``."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    try:
        fd = os.open(path, flags)
    except (FileNotFoundError, NotADirectoryError):
        if follow and os.path.lexists(path) and os.path.islink(path):  # noqa: PTH114 - any path-like
            raise ValueError("it is a link that leads nowhere") from None
        return None
    except OSError as error:
        if error.errno == errno.ELOOP and not follow:
            raise ValueError("it is a link") from None
        if error.errno == errno.ENXIO:  # a socket
            raise ValueError("it is not a regular file") from None
        raise
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise ValueError("it is not a regular file")
        with open(fd, "rb", closefd=False) as file:
            raw = file.read(limit + 1)
    finally:
        os.close(fd)
    if len(raw) > limit:
        raise ValueError(f"it is larger than {limit} bytes")
    return raw


def holds(path: str | Path, expected: bytes) -> bool:
    """Says whether the file holds exactly this; a missing file is empty."""
    try:
        return (read_bytes(path, len(expected)) or b"") == expected
    except ValueError:
        return False


# --- writing ------------------------------------------------------------------------------------------------


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

    The file gets exactly ``mode``, in spite of the umask. ``None`` keeps the mode and owner of an existing
    file; a new file gets 0644 less the umask. ``durable=False`` skips the syncs, for data that a power cut
    may lose.

    A symlink is replaced, because a cloned repository may ship one that points at a file of the person's.
    ``follow=True`` writes to the file it points at, for a person's own settings (dotfiles are often links).

    ``expected``: the content that ``data`` was made from, empty for no file. It is compared right before the
    file is replaced: a later save stays, and nothing is written.

    Raises ``Unavailable``.
    """
    content = data.encode() if isinstance(data, str) else data
    target = os.fspath(path)
    try:
        if follow and os.path.islink(target):  # noqa: PTH114 - twice as fast
            target = os.path.realpath(target)
        _replace(target, content, mode, durable, expected)
    except OSError as error:
        raise Unavailable(f"can't write {path}: {words(error)}") from error


def _replace(target: str, data: bytes, mode: int | None, durable: bool, expected: bytes | None) -> None:
    try:
        old = os.lstat(target)
    except FileNotFoundError:
        old = None
    if old and not (stat.S_ISREG(old.st_mode) or stat.S_ISLNK(old.st_mode)):
        raise OSError(errno.EINVAL, "it is not a regular file")  # a rename would replace /dev/null itself
    folder = os.path.dirname(target) or "."  # noqa: PTH120 - this runs for every verdict
    temporary = f"{folder}/.reflectd-{os.urandom(8).hex()}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    fd = os.open(temporary, flags, 0o644 if mode is None and old is None else 0o600)
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
        try:
            sync_folder(folder)
        except OSError as error:
            if error.errno not in _NO_FOLDER_SYNC:
                raise


def _keep_owner(fd: int, old: os.stat_result) -> None:
    ours = os.fstat(fd)
    if ours.st_uid != old.st_uid:  # root may; anyone else must not take the file over
        os.fchown(fd, old.st_uid, old.st_gid)
    elif ours.st_gid != old.st_gid:
        with suppress(PermissionError):
            os.fchown(fd, -1, old.st_gid)


def sync_folder(folder: str | Path) -> None:
    """Have the disk keep which files the folder has. Raises ``OSError``: some file systems can't."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def remove_leftovers(folder: Path, before_ns: int) -> None:
    """Remove the temporary files that a killed process left in the folder, if they are older than
    ``before_ns`` (epoch ns, of the last change). Files that can't be removed stay.
    """
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _TEMPORARY.fullmatch(entry.name):
                with suppress(OSError):
                    if entry.stat(follow_symlinks=False).st_mtime_ns < before_ns:
                        os.unlink(entry.path)  # noqa: PTH108 - as above


def set_aside(path: str | Path, stamp: str, why: str = "corrupt") -> Path:
    """Rename a file to ``<name>.<why>-<stamp>`` (``-2``, ``-3`` … when taken). Returns the new path.
    Nothing is overwritten. Of a symlink only the link is renamed. Raises ``Unavailable``.
    """
    path, count = Path(path), 1
    try:
        path.lstat()  # raises when there is no file, before a name is reserved
        while True:
            aside = path.with_name(f"{path.name}.{why}-{stamp}" + (f"-{count}" if count > 1 else ""))
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
        raise Unavailable(f"can't set {path} aside: {words(error)}") from error


# --- folders ------------------------------------------------------------------------------------------------


@contextmanager
def alone(folder: Path, *, busy: str = "") -> Iterator[None]:
    """Hold a lock on the folder, so that two processes read each other's writes. It leaves no file; the
    folder is made when it is missing. Raises ``Unavailable``, also with the words ``busy`` when another
    process has the lock; without such words this waits for it.
    """
    import fcntl

    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise Unavailable(f"can't use the state folder {folder}: {words(error)}") from error
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | (fcntl.LOCK_NB if busy else 0))
        except BlockingIOError:
            raise Unavailable(busy) from None
        except OSError:  # a file system without locks: two commands at once are rare
            pass
        yield
    finally:
        os.close(fd)


def make_folder(folder: Path) -> list[Path]:
    """Make the folder and those above it; returns those that were made, the outermost first. Nobody else may
    write to them, in spite of the umask.
    """
    if folder.is_dir():
        return []
    made = make_folder(folder.parent)
    folder.mkdir(mode=0o755, exist_ok=True)
    return [*made, folder]


def remove_empty(folders: Iterable[Path]) -> None:
    """Remove these folders, the innermost first, each only when it is empty. None of them has to be there."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()
