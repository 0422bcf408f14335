"""Threads for work on disks that may never answer: they are used again, and no process waits for one to end.

A new thread is started only when all others are at work. Starting one makes the caller wait until it runs,
which takes as long as another thread computes; so the loop must not start one for each piece of work.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

KEPT: Final = 4
"""Threads that stay when there is nothing to do."""


class Threads:
    """As many threads as there is work: whoever asks bounds that."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._queue: queue.SimpleQueue[Callable[[], Callable[[], None]]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._count = 0
        self._wanted = 0  # pieces of work that are not done

    def ask(self, do: Callable[[], T]) -> asyncio.Future[T]:
        """Have this done for the running loop: the future has what it returned or raised. ``OSError``: no
        thread could be started.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()

        def tell(found: T | None, error: BaseException | None) -> None:
            if answer.done():
                return
            if error is None:
                answer.set_result(cast("T", found))
            else:
                answer.set_exception(error)

        def work() -> Callable[[], None]:
            found: T | None = None
            error: BaseException | None = None
            try:
                found = do()
            except BaseException as e:  # noqa: BLE001 - whoever asked is told
                error = e

            def then() -> None:
                with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                    loop.call_soon_threadsafe(tell, found, error)

            return then

        try:
            self._put(work)
        except RuntimeError as e:
            tell(None, OSError(f"no thread can be started: {e}"))
        return answer

    def _put(self, work: Callable[[], Callable[[], None]]) -> None:
        """Have this done; what it returns is called when its thread is free for other work."""
        with self._lock:
            self._wanted += 1
            more = self._wanted > self._count
            self._count += more
        if more:
            try:
                threading.Thread(target=self._run, name=self._name, daemon=True).start()
            except RuntimeError:
                with self._lock:
                    self._wanted -= 1
                    self._count -= 1
                raise
        self._queue.put(work)

    def _run(self) -> None:
        ends = False
        while not ends:
            then = self._queue.get()()
            with self._lock:
                self._wanted -= 1
                ends = self._count > max(KEPT, self._wanted)
                self._count -= ends
            then()
