"""Vectors of texts, and the daemon's one model for embeddings (design/memory.md).

The model is made when somebody first asks for it, in a thread, and only once: one on this machine takes
hundreds of megabytes. Without a model, and when it fails or takes too long, there are no vectors and
everything goes on without; a failure is logged once, until it works again.
"""

from __future__ import annotations

import asyncio
import math
from array import array
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct

from ...core.errors import ReflectdError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ...log import Logger

EMBED_S: Final = 30.0
WARM: Final = "warm"  # a text that is embedded so that the model is there


class Vector(Struct, frozen=True):
    """An embedding: 32-bit floats of length 1, and the model that made it. Vectors of two models are never
    compared.
    """

    model: str
    data: bytes

    @property
    def row(self) -> array[float]:
        return array("f", self.data)


def vectors(model: str, rows: Iterable[Sequence[float]]) -> list[Vector]:
    """Each row brought to length 1. Raises ``ValueError`` for rows of several sizes, for one of zeros, and
    for numbers that are none.
    """
    found = []
    for row in rows:
        length = math.hypot(*row)
        if not (math.isfinite(length) and length > 0):
            raise ValueError("a vector without a length")
        found.append(Vector(model, array("f", (x / length for x in row)).tobytes()))
    if len({len(v.data) for v in found}) > 1:
        raise ValueError("vectors of several sizes")
    return found


class Embedder(Protocol):
    """Makes vectors of texts, so that their meanings can be compared."""

    @property
    def model(self) -> str:
        """The name that its vectors carry. Another model, or the same on another server, has another."""
        ...

    @property
    def loaded(self) -> bool:
        """Says whether the next call needs nothing that takes long before it."""
        ...

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """A vector for each text, in their order. A long text counts with its beginning only.

        Raises ``Unavailable`` when there is no answer that can be read, ``BadReply`` when its vectors can't
        be right, and ``ValueError`` for a text without a visible character. Nothing is tried again.
        """
        ...

    async def close(self) -> None:
        """Give back memory and connections. A later call takes them again."""
        ...


class Embeddings:
    """One for the daemon. ``make``: the embedder of the settings, None when there is none; it may block and
    raise ``ReflectdError``, and then is asked again the next time.
    """

    def __init__(self, make: Callable[[], Embedder | None], log: Logger) -> None:
        self._make, self._log = make, log
        self._making: asyncio.Future[Embedder | None] | None = None
        self._made: Embedder | None = None
        self._failed = False

    @property
    def model(self) -> str:
        """The name of the vectors; "" while there was no model."""
        return self._made.model if self._made is not None else ""

    @property
    def loaded(self) -> bool:
        """Says whether the model is in memory. One that was idle for long is gone."""
        return self._made is not None and self._made.loaded

    async def warm(self) -> None:
        """Load the model, so that the next text takes no time. Never raises."""
        if not self.loaded:
            await self.of([WARM])

    async def one(self, text: str) -> Vector | None:
        found = await self.of([text])
        return found[0] if found else None

    async def of(self, texts: Sequence[str]) -> list[Vector]:
        """A vector for each text; none at all when they can't be made now. Never raises what an embedder
        raises.
        """
        if not texts or not all(t.strip() for t in texts):
            return []
        try:
            async with asyncio.timeout(EMBED_S):
                self._made = await self._model()
                found = await self._made.embed(texts) if self._made is not None else []
        except (ReflectdError, ValueError, TimeoutError) as e:
            if not self._failed:
                self._log.warning("meanings are not compared", error=str(e) or f"no answer in {EMBED_S:g} s")
            self._failed = True
            return []
        self._failed = False
        return found

    async def close(self) -> None:
        """Give back the model's memory and connections."""
        made = None
        if self._making is not None:
            with suppress(ReflectdError):
                made = await self._making
        if made is not None:
            await made.close()

    async def _model(self) -> Embedder | None:
        """The same one for everybody. A caller that gives up waiting does not end the making."""
        if self._making is None or (self._making.done() and self._making.exception() is not None):
            self._making = asyncio.ensure_future(asyncio.to_thread(self._make))
        return await asyncio.shield(self._making)
