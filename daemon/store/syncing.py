"""What the database asks of the disk beside its writer: syncing its WAL, and moving the WAL into the file.

Both take as long as the disk takes, from one to dozens of milliseconds, and every event of every host is
committed by the one writer. So neither happens in the writer's thread: no event waits for a sync.

A commit is in the WAL when it returns, as ``synchronous=NORMAL`` leaves it: ``kill -9`` does not lose it.
When ``Syncs.synced`` returns, a power cut does not either: all that was written to the WAL before is on the
disk, which is all that ``synchronous=FULL`` does. A checkpoint syncs by itself what it moves, before it moves
it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import sqlite3
import threading
from typing import TYPE_CHECKING, Final

from ..core.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Waiting = tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]

COMMITS: Final = 200
"""After so many the WAL is moved. One of them is two to ten pages: about as often as SQLite's own 1,000."""
LONGEST: Final = 4_000
"""Pages of the WAL at which the writer moves it after all, because the thread beside it does not keep up."""
PASSES: Final = 4  # each moves what was committed during the one before, ever less


def sync_data(fd: int) -> None:
    """Have the disk keep the file's content. Raises ``OSError``."""
    getattr(os, "fdatasync", os.fsync)(fd)  # macOS has no fdatasync


def sync_folder(folder: str | Path) -> None:
    """Have the disk keep which files the folder has. Raises ``OSError``: some file systems can't."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


class Syncs:
    """Syncs the WAL. Those who ask while it is synced share the next sync."""

    def __init__(self, database: Path, sync: Callable[[int], None] = sync_data) -> None:
        """The database must be open, so that its WAL is there and stays. Raises ``OSError``."""
        place = os.path.realpath(database)
        self._folder = os.path.dirname(place)  # noqa: PTH120 - a text, as SQLite makes the name
        self._fd = os.open(f"{place}-wal", os.O_RDONLY | os.O_CLOEXEC)
        self._sync = sync
        self._queue: queue.SimpleQueue[Waiting | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="reflectd-sync", daemon=True)
        self._thread.start()

    async def synced(self) -> None:
        """Returns when what was committed before is on the disk. Raises ``Unavailable``."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        self._queue.put((loop, done))
        await done

    def close(self) -> None:
        """Sync what was asked for, then end."""
        self._queue.put(None)
        self._thread.join()
        os.close(self._fd)

    def _run(self) -> None:
        with contextlib.suppress(OSError):  # some file systems can't
            sync_folder(self._folder)  # the WAL may be new; SQLite would do it with the first sync of its own
        while (asked := self._queue.get()) is not None:
            waiting: list[Waiting | None] = [asked]
            with contextlib.suppress(queue.Empty):
                while waiting[-1] is not None:
                    waiting.append(self._queue.get_nowait())
            error: OSError | None = None
            try:
                self._sync(self._fd)
            except OSError as e:
                error = e
            for each in waiting:
                if each is None:
                    return
                with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                    each[0].call_soon_threadsafe(_answer, each[1], error)


def _answer(done: asyncio.Future[None], error: OSError | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(Unavailable(f"the database could not be synced: {error}"))


class Checkpoints:
    """Moves the WAL into the file now and then, so that it does not grow. Readers and the writer go on."""

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connection = connect()
        self._commits = 0
        self._wanted: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="reflectd-checkpoint", daemon=True)
        self._thread.start()

    def committed(self) -> None:
        """The writer tells of each commit."""
        self._commits += 1
        if self._commits >= COMMITS:
            self._commits = 0
            self._wanted.put(True)

    def close(self) -> None:
        """End after what is under way."""
        self._wanted.put(False)
        self._thread.join()
        self._connection.close()

    def _run(self) -> None:
        while self._wanted.get():
            with contextlib.suppress(sqlite3.Error):  # the next one, or the writer, tries again
                self._move()

    def _move(self) -> None:
        """When all is moved, the writer begins the WAL anew."""
        for _ in range(PASSES):
            busy, pages, moved = self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            if busy or moved >= pages:
                return
