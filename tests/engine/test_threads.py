"""Threads that are used again: as many as there is work, and few when there is none."""

from __future__ import annotations

import asyncio
import threading

import pytest

from daemon.engine.threads import KEPT, Threads

NAME = "test-threads"


def alive() -> int:
    """How many of these threads there are."""
    return sum(t.name == NAME for t in threading.enumerate())


@pytest.mark.shows("I44")
async def test_one_piece_after_the_other_starts_one_thread() -> None:
    """The loop starts no thread for each file, because starting one waits for those that compute."""
    threads, by = Threads(NAME), set[int]()
    before = alive()
    for _ in range(200):
        await threads.ask(lambda: by.add(threading.get_ident()))
    assert (len(by), alive() - before) == (1, 1)


@pytest.mark.shows("I45")
async def test_pieces_that_hang_hold_up_no_other_and_their_threads_end() -> None:
    """Each dead disk has its own thread; when they answer, few threads stay."""
    threads, gate, before = Threads(NAME), threading.Event(), alive()
    hung = [threads.ask(gate.wait) for _ in range(5 * KEPT)]
    assert await threads.ask(lambda: 7) == 7
    assert not any(piece.done() for piece in hung)
    gate.set()
    assert await asyncio.gather(*hung) == [True] * (5 * KEPT)
    while alive() - before > KEPT:
        await asyncio.sleep(0.001)
    assert await threads.ask(lambda: 8) == 8


@pytest.mark.shows("I35")
async def test_what_goes_wrong_is_told() -> None:
    """Whoever asked learns of it, and the thread goes on."""
    threads = Threads(NAME)

    def fails() -> None:
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        await threads.ask(fails)
    assert await threads.ask(lambda: 1) == 1
