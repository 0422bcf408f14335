"""The watcher on real files: what it notices, folders that come and go, and that nothing is left of it."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import pytest

from daemon.files.watch import watch
from harness.machine.waiting import wait_until


@asynccontextmanager
async def watching(folder: Path) -> AsyncIterator[asyncio.Event]:
    """An event that is set at each change."""
    seen = asyncio.Event()
    task = asyncio.create_task(watch(folder, seen.set, appears_s=0.05))
    try:
        yield seen
    finally:
        task.cancel()
        await asyncio.wait([task], timeout=60)
        assert task.cancelled()


async def noticed(seen: asyncio.Event, change: Callable[[], object]) -> None:
    """Repeat the change until it is noticed: nobody outside can know when a watch stands."""
    seen.clear()
    for _ in range(100):
        change()
        try:
            async with asyncio.timeout(0.3):
                await seen.wait()
        except TimeoutError:
            continue
        return
    raise AssertionError("a change was never noticed")


def edits(file: Path) -> Callable[[], object]:
    """Write something new, each time."""
    numbers = count()
    return lambda: file.write_text(str(next(numbers)))


async def test_edits_are_noticed(tmp_path: Path) -> None:
    """In a folder that is made later, in one below, in one made while watching."""
    folder = tmp_path / "config" / "reflectd"
    edit = edits(folder / "config.toml")
    async with watching(folder) as seen:
        await noticed(seen, lambda: (folder.mkdir(parents=True, exist_ok=True), edit()))
        for name in ("prompts", "later"):
            (folder / name).mkdir()
            await noticed(seen, edits(folder / name / "x.txt"))


async def test_a_folder_that_goes_and_comes_again(tmp_path: Path) -> None:
    """Both are noticed, and the new folder is watched, also when it has the old one's inode."""
    folder = tmp_path / "reflectd"
    folder.mkdir()
    edit = edits(folder / "judge.txt")
    async with watching(folder) as seen:
        await noticed(seen, edit)
        for _ in range(3):
            seen.clear()
            shutil.rmtree(folder)
            async with asyncio.timeout(60):
                await seen.wait()
            folder.mkdir()
            await noticed(seen, edit)


@pytest.mark.shows("I45")
def test_nothing_is_left_when_it_ends(tmp_path: Path) -> None:
    """Cancelled in the middle, no thread of it stays."""
    before = set(threading.enumerate())

    async def scenario() -> None:
        async with watching(tmp_path) as seen:
            await noticed(seen, edits(tmp_path / "x"))
            assert len(threading.enumerate()) > len(before)

    asyncio.run(scenario())
    wait_until(
        lambda: set(threading.enumerate()) <= before, what="end of its threads", seen=threading.enumerate
    )
