"""A lock on a folder, so that of two processes each reads what the other wrote. It leaves no file."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..core.errors import Unavailable
from .bounded import reason

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def alone(folder: Path, *, busy: str = "") -> Iterator[None]:
    """Hold the lock; the folder is made when it is missing. Raises ``Unavailable``, also with the words
    ``busy`` when another process has the lock; without such words this waits for it.
    """
    import fcntl

    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise Unavailable(f"can't use the state folder {folder}: {reason(error)}") from error
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
