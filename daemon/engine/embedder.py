"""The one model for embeddings of the daemon, shared by all that compares meanings.

It is made when somebody first asks for it, in a thread, and only once: a model on this machine takes hundreds
of megabytes. Whoever was given it never closes it; that is done at the daemon's end. Settings that can't be
right raise ``ReflectdError`` at each call, and no model at all is None.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from ..core.errors import ReflectdError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..core.ports import Embedder


class SharedEmbedder:
    """One for the daemon. ``make``: the embedder of the settings, None when there is none; it may block and
    raise ``ReflectdError``.
    """

    def __init__(self, make: Callable[[], Embedder | None]) -> None:
        self._make = make
        self._making: asyncio.Future[Embedder | None] | None = None

    async def get(self) -> Embedder | None:
        """The model, the same one for everybody. Raises what ``make`` raises, and then asks it again the next
        time. Whoever gives up waiting does not end the making.
        """
        if self._making is None or (self._making.done() and self._making.exception() is not None):
            self._making = asyncio.ensure_future(asyncio.to_thread(self._make))
        return await asyncio.shield(self._making)

    async def close(self) -> None:
        """Give back the model's memory and connections."""
        made = None
        if self._making is not None:
            with suppress(ReflectdError):
                made = await self._making
        if made is not None:
            await made.close()
