"""Reports that something in the person's settings folder changed, so that the log says at once what an edit
did.

Runs one ``watchfiles`` watcher on one folder, which may be made and removed meanwhile. It reads no file: the
prompts are read for each judgement anyway. When it misses a change, as on a network file system, only the
line in the log is missing. Projects are not watched: there may be hundreds of them, with millions of files.

Measured: 10 ms of CPU in 10 s without changes, two threads, and 4 MB for the library, which takes 20 ms or
more to load. So the library is imported in a thread, and only when the folder exists.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

from ..core.errors import Unavailable, words

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

    from watchfiles.main import Change, FileChange

APPEARS_S = 2.0  # how often to look whether the folder is there
STEP_MS = 200  # how long to wait for the rest of an edit; also how long the thread outlives a cancellation
LOOK_MS = 2_000  # how often to look whether the folder is still the same one


async def watch(folder: Path, on_change: Callable[[], None], appears_s: float = APPEARS_S) -> None:
    """Call ``on_change`` after each change in ``folder`` or below it, until cancelled.

    Raises ``Unavailable`` when the system has no watches left.
    """
    seen = _identity(folder)
    while True:
        here = _identity(folder)
        if here != seen:
            on_change()  # the folder was made, removed, or replaced by another one
        seen = here
        if here is not None:
            async with aclosing(_changes(folder)) as changes:
                async for changed in changes:
                    if changed:
                        on_change()
                    if _identity(folder) != here:
                        break
        if _identity(folder) is None:
            await asyncio.sleep(appears_s)


async def _changes(folder: Path) -> AsyncGenerator[bool, None]:
    """Whether something changed, at least every ``LOOK_MS``; ends when the folder is gone."""
    awatch, deleted = await asyncio.to_thread(_load)
    found = awatch(
        folder,
        watch_filter=None,
        step=STEP_MS,
        rust_timeout=LOOK_MS,
        yield_on_timeout=True,
        ignore_permission_denied=True,
    )
    try:
        async with aclosing(found):
            async for changes in found:
                yield bool(changes)
                if (deleted, str(folder)) in changes:  # even if a new one has the same inode already
                    return
    except FileNotFoundError:
        return
    except (OSError, RuntimeError) as error:
        why = words(error)
        raise Unavailable(
            f"{folder} can't be watched ({why}): edits there are used, but the log does not report them"
        ) from error


def _load() -> tuple[Callable[..., AsyncGenerator[set[FileChange], None]], Change]:
    from watchfiles import Change, awatch

    return awatch, Change.deleted


def _identity(folder: Path) -> tuple[int, int] | None:
    """Device and inode; None when there is no such folder."""
    try:
        found = folder.stat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if folder.is_dir() else None
