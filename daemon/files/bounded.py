"""Reads small files that somebody else may have written: a clone can hold a FIFO, 2 GB or a link.

Never blocks on a FIFO or a device, and never reads more than the limit. Failures are ``OSError`` (the system
refused) or ``ValueError`` (it is no small text file), each with the reason in words.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def read_text(path: str | Path, limit: int, *, follow: bool = True) -> str | None:
    """The file's text (UTF-8, without a BOM), None when there is no file.

    ``follow=False`` refuses a path whose last part is a link. Raises ``OSError`` and ``ValueError``.
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


def reason(error: OSError | ValueError) -> str:
    """The reason in words, without the path and the error number."""
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
