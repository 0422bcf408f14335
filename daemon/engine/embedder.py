"""The one model for embeddings of the daemon, shared by all that compares meanings.

It is made when somebody first asks for it, in a thread, and only once: a model on this machine takes hundreds
of megabytes. Whoever was given it never closes it; that is done at the daemon's end. Settings that can't be
right raise ``ReflectdError`` at each call, and no model at all is None.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..core.ports import Embedder


class SharedEmbedder:
    """One for the daemon. ``make``: the embedder of the settings, None when there is none; it may block and
    raise ``ReflectdError``.
    """

    def __init__(self, make: Callable[[], Embedder | None]) -> None:
        self._make = make
        self._lock = asyncio.Lock()
        self._made: Embedder | None = None
        self._asked = False

    async def get(self) -> Embedder | None:
        """The model, the same one for everybody. Raises what ``make`` raises, and then asks it again the next
        time.
        """
        async with self._lock:
            if not self._asked:
                self._made = await asyncio.to_thread(self._make)
                self._asked = True
            return self._made

    async def close(self) -> None:
        """Give back the model's memory and connections."""
        if self._made is not None:
            await self._made.close()
