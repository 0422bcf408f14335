"""Work beside the loop: long texts, and disks that may never answer."""

from __future__ import annotations

import asyncio
import queue
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ..redact import redact

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

LARGE: Final = 256 * 1024
"""Bytes that the loop reads by itself: a thread would cost more than that takes."""
SEARCHED: Final = 32 * 1024
"""Characters that the loop searches for secrets by itself: at most 20 ms."""
KEPT: Final = 4
"""Threads that stay when there is nothing to do."""


async def beside(size: int, read: Callable[[], T]) -> T:
    """What ``read`` makes of ``size`` bytes. Over ``LARGE`` a thread does it; what it raises is raised."""
    return await asyncio.to_thread(read) if size > LARGE else read()


async def redacted(text: str) -> str:
    """``redact`` of a text of any length."""
    return await asyncio.to_thread(redact, text) if len(text) > SEARCHED else redact(text)


class Threads:
    """Threads for work on disks. The process ends without waiting for them (asyncio's own it would wait for).

    A thread is started only when all others are at work; the caller bounds how many that are.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._queue: queue.SimpleQueue[Callable[[], Callable[[], None]]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0

    def ask(self, do: Callable[[], T]) -> asyncio.Future[T]:
        """The result of ``do``, or what it raised. ``OSError``: no thread could be started."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()

        def work() -> Callable[[], None]:
            try:
                outcome: Callable[[], None] = _outcome(answer, do(), None)
            except BaseException as e:  # noqa: BLE001 - it is raised where the answer is awaited
                outcome = _outcome(answer, None, e)

            def then() -> None:
                with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                    loop.call_soon_threadsafe(outcome)

            return then

        with self._lock:
            more = not self._idle
            self._idle -= not more
        try:
            if more:
                threading.Thread(target=self._run, name=self._name, daemon=True).start()
        except RuntimeError as e:
            answer.set_exception(OSError(f"no thread can be started: {e}"))
        else:
            self._queue.put(work)
        return answer

    def _run(self) -> None:
        ends = False
        while not ends:
            then = self._queue.get()()
            with self._lock:  # before the answer: whoever has it may ask again, and find this thread idle
                ends = self._idle >= KEPT
                self._idle += not ends
            then()


def _outcome(answer: asyncio.Future[Any], result: object, error: BaseException | None) -> Callable[[], None]:
    def tell() -> None:
        if answer.done():
            return
        if error is None:
            answer.set_result(result)
        else:
            answer.set_exception(error)

    return tell
