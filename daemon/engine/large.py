"""Long texts, read beside the loop: while one is decoded the daemon must go on answering all others."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

LARGE: Final = 256 * 1024
"""Bytes that the loop reads by itself: a thread would cost more than that takes."""


async def beside(size: int, read: Callable[[], T]) -> T:
    """What ``read`` makes of ``size`` bytes. Over ``LARGE`` a thread does it; what it raises is raised."""
    return await asyncio.to_thread(read) if size > LARGE else read()
