"""Work beside the loop: long texts, and disks that may never answer."""

from __future__ import annotations

import _thread
import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ..redact import redact

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

LARGE: Final = 256 * 1024
"""Bytes that the loop reads by itself: a thread would cost more than that takes."""
SEARCHED: Final = 32 * 1024
"""Characters that the loop searches for secrets by itself: at most 20 ms."""


async def beside(size: int, read: Callable[[], T]) -> T:
    """The result of ``read`` on ``size`` bytes, over ``LARGE`` by a thread; its exceptions are raised."""
    return await asyncio.to_thread(read) if size > LARGE else read()


async def redacted(text: str) -> str:
    return await asyncio.to_thread(redact, text) if len(text) > SEARCHED else redact(text)


def on_disk(do: Callable[[], T]) -> asyncio.Future[T]:
    """The result of ``do``, or what it raised: in a thread of its own, which the process does not wait for
    when it ends (asyncio's own threads it would wait for). ``OSError``: no thread could be started.

    ``_thread``, because ``threading`` waits until the new thread runs, for as long as other threads compute.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()

    def work() -> None:
        try:
            outcome = partial(_settle, answer, do(), None)
        except BaseException as e:  # noqa: BLE001 - it is raised where the answer is awaited
            outcome = partial(_settle, answer, None, e)
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(outcome)

    try:
        _thread.start_new_thread(work, ())
    except RuntimeError as e:
        answer.set_exception(OSError(f"no thread can be started: {e}"))
    return answer


def _settle(answer: asyncio.Future[Any], result: object, error: BaseException | None) -> None:
    if answer.done():
        return
    if error is None:
        answer.set_result(result)
    else:
        answer.set_exception(error)
