"""Long texts, read beside the loop: while one is decoded or searched for secrets the daemon must go on
answering all others.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, TypeVar

from ..core.redact import redact

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

LARGE: Final = 256 * 1024
"""Bytes that the loop reads by itself: a thread would cost more than that takes."""
SEARCHED: Final = 32 * 1024
"""Characters that the loop searches for secrets by itself: at most 20 ms."""


async def beside(size: int, read: Callable[[], T]) -> T:
    """What ``read`` makes of ``size`` bytes. Over ``LARGE`` a thread does it; what it raises is raised."""
    return await asyncio.to_thread(read) if size > LARGE else read()


async def redacted(text: str) -> str:
    """``redact`` of a text of any length."""
    return await asyncio.to_thread(redact, text) if len(text) > SEARCHED else redact(text)
