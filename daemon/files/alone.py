"""A lock on a folder, so that of two processes each reads what the other wrote. It leaves no file."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from ..core.errors import Unavailable
from .bounded import reason

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold the lock; the folder is made when it is missing. Raises ``Unavailable``."""
    import fcntl

    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise Unavailable(f"can't use the state folder {folder}: {reason(error)}") from error
    try:
        with suppress(OSError):  # a file system without locks: two commands at once are rare
            fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
