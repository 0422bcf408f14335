"""Folders beside each other: one that hangs holds up no other, and what waits is bounded."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator

import pytest

from daemon.engine.lanes import Lanes, Work
from harness.machine.sandbox import REPO

LIMITS = (1_000, 1_000, 10)


class Disk:
    """Writes down what was done where; the folders in ``gates`` wait until their gate opens."""

    def __init__(self) -> None:
        self.done: list[tuple[str, str]] = []
        self.gates: dict[str, threading.Event] = {}
        self.hung: list[str] = []
        self.dropped: list[int] = []
        self.errors: list[Exception] = []
        self.lanes = Lanes(LIMITS, self.hung.append, self.dropped.append, hung_s=0.05)

    def put(self, folder: str, key: str, urgency: int = 0, what: str = "") -> None:
        def do() -> None:
            gate = self.gates.get(folder)
            if gate is not None:
                gate.wait()
            if what == "fails":
                raise OSError("no")
            self.done.append((folder, what or key))

        async def told(error: Exception | None) -> None:
            if error is not None:
                self.errors.append(error)

        self.lanes.put(folder, (key, ""), urgency, Work(do, told))


@pytest.fixture
async def disk() -> AsyncIterator[Disk]:
    found = Disk()
    running = asyncio.create_task(found.lanes.run())
    yield found
    for gate in found.gates.values():
        gate.set()
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running


async def until_hung(disk: Disk, folders: int) -> None:
    while len(disk.hung) < folders:
        await asyncio.sleep(0.001)


@pytest.mark.shows("I21", "I22")
async def test_folders_that_hang_hold_up_no_other(disk: Disk) -> None:
    """More dead disks than threads, and another folder's files are written all the same; when a disk answers,
    what waited for it is done.
    """
    dead = [f"/dead{n}" for n in range(10)]
    disk.gates = {folder: threading.Event() for folder in dead}
    for folder in dead:
        disk.put(folder, "first")
        disk.put(folder, "second")
    disk.put("/fine", "mine")
    await until_hung(disk, len(dead))
    await disk.lanes.drain()
    assert disk.done == [("/fine", "mine")]
    assert sorted(disk.hung) == dead
    assert not disk.lanes.busy
    disk.gates["/dead3"].set()
    while len(disk.done) < 3:
        await asyncio.sleep(0.001)
    assert disk.done[1:] == [("/dead3", "first"), ("/dead3", "second")]


@pytest.mark.shows("I21")
async def test_of_one_key_the_newest_at_the_most_urgent_place(disk: Disk) -> None:
    """What is written last of a session is the newest, and it comes before what is less urgent."""
    disk.gates["/a"] = threading.Event()
    disk.put("/a", "under way")
    await until_hung(disk, 1)
    for n in range(5):
        disk.put("/a", f"other{n}", 1)
    disk.put("/a", "mine", 1, "old")
    disk.put("/a", "mine", 0, "judging")
    disk.put("/a", "mine", 1, "new")
    disk.gates["/a"].set()
    while len(disk.done) < 7:
        await asyncio.sleep(0.001)
    assert disk.done[:2] == [("/a", "under way"), ("/a", "new")]
    assert [what for _, what in disk.done[2:]] == [f"other{n}" for n in range(5)]


@pytest.mark.shows("I44")
async def test_what_waits_is_bounded_and_the_oldest_goes(disk: Disk) -> None:
    """Of a thousand pieces for a disk that hangs the newest ten stay, and each dropped one is told."""
    disk.gates["/a"] = threading.Event()
    disk.put("/a", "under way")
    await until_hung(disk, 1)
    for n in range(1_000):
        disk.put("/a", f"case{n}", 2)
    assert disk.lanes.waiting(2) == 10
    assert disk.dropped == [2] * 990
    disk.gates["/a"].set()
    while len(disk.done) < 11:
        await asyncio.sleep(0.001)
    assert [what for _, what in disk.done[1:]] == [f"case{n}" for n in range(990, 1_000)]


@pytest.mark.shows("I21")
async def test_a_failure_is_told_and_ends_nothing(disk: Disk) -> None:
    """Whoever put the work learns what went wrong, and the folder goes on."""
    disk.put("/a", "bad", what="fails")
    disk.put("/a", "good")
    await disk.lanes.drain()
    assert [str(e) for e in disk.errors] == ["no"]
    assert disk.done == [("/a", "good")]


@pytest.mark.shows("I44")
async def test_thousands_take_time_that_grows_with_their_number() -> None:
    """Eight times as many pieces take about eight times as long, not sixty-four times."""
    lanes = Lanes((100_000,), print, print)

    async def told(_: Exception | None) -> None:
        return None

    work = Work(lambda: None, told)

    def seconds(count: int) -> float:
        began = time.process_time()
        for n in range(count):
            lanes.put("/a", (str(n), ""), 0, work)
        return time.process_time() - began

    running = asyncio.create_task(lanes.run())
    await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    seconds(100)
    assert seconds(40_000) < 32 * seconds(5_000) + 0.05


ENDING = """
import asyncio, threading
from daemon.engine.lanes import Lanes, Work

async def told(error): pass

async def main():
    hung = asyncio.Event()
    lanes = Lanes((9, 9, 9), lambda _: hung.set(), print, hung_s=0.05)
    running = asyncio.create_task(lanes.run())
    lanes.put("/dead", ("s", ""), 0, Work(threading.Event().wait, told))
    await hung.wait()
    running.cancel()

asyncio.run(main())
print("ended")
"""


@pytest.mark.shows("I45")
def test_a_process_ends_while_a_disk_hangs() -> None:
    """The thread that waits for a dead disk does not keep the process alive."""
    found = subprocess.run(
        [sys.executable, "-c", ENDING], check=False, capture_output=True, text=True, timeout=120, cwd=REPO
    )
    assert (found.returncode, found.stdout, found.stderr) == (0, "ended\n", "")
