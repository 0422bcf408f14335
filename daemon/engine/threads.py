"""Threads for work on disks that may never answer: they are used again, and no process waits for one to end.

A new thread is started only when all others are at work. Starting one makes the caller wait until it runs,
which takes as long as another thread computes; so the loop must not start one for each piece of work.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

KEPT: Final = 4
"""Threads that stay when there is nothing to do."""


class Threads:
    """``put`` work, from any thread. As many threads as there is work: whoever puts it bounds that."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._queue: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._count = 0
        self._wanted = 0  # pieces of work that are not done

    def put(self, do: Callable[[], None]) -> None:
        """Have this done, which must not raise. Raises ``OSError`` when no thread can be started."""
        with self._lock:
            self._wanted += 1
            more = self._wanted > self._count
            self._count += more
        if more:
            try:
                threading.Thread(target=self._work, name=self._name, daemon=True).start()
            except RuntimeError as e:
                with self._lock:
                    self._wanted -= 1
                    self._count -= 1
                raise OSError(f"no thread can be started: {e}") from None
        self._queue.put(do)

    def _work(self) -> None:
        while True:
            self._queue.get()()
            with self._lock:
                self._wanted -= 1
                if self._count > max(KEPT, self._wanted):
                    self._count -= 1
                    return

    def ask(self, do: Callable[[], object]) -> asyncio.Future[None]:
        """Have this done for the running loop: the future ends with it, or has what it raised."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[None] = loop.create_future()

        def tell(error: BaseException | None) -> None:
            if answer.done():
                return
            if error is None:
                answer.set_result(None)
            else:
                answer.set_exception(error)

        def work() -> None:
            error: BaseException | None = None
            try:
                do()
            except BaseException as e:  # noqa: BLE001 - whoever asked is told
                error = e
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(partial(tell, error))

        try:
            self.put(work)
        except OSError as e:
            tell(e)
        return answer
