"""Vectors of tasks, so that similar ones are found again (design/embeddings.md).

The model for embeddings is the daemon's one (``embedder``); all that blocks is done in a thread. Without a
model, and when it fails or takes too long, there is no vector and everything goes on without;
a failure is logged once, until it works again.
"""

from __future__ import annotations

import asyncio
from array import array
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from ..core.episodes import Vector
from ..core.errors import ReflectdError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.ports import Embedder
    from ..log import Logger
    from .embedder import SharedEmbedder

EMBED_S: Final = 30.0
KEPT: Final = 200  # vectors of texts that were asked for lately
FLOAT: Final = "f"
WARM: Final = "warm"  # a text that is embedded so that the model is there


class Vectors:
    """One for the daemon."""

    def __init__(self, embedder: SharedEmbedder, log: Logger) -> None:
        self._embedder = embedder
        self._log = log
        self._made: Embedder | None = None
        self._failed = False
        self._known: OrderedDict[str, Vector] = OrderedDict()

    @property
    def model(self) -> str:
        """Whose vectors they are; "" while there was none."""
        return self._made.model if self._made is not None else ""

    @property
    def loaded(self) -> bool:
        """Whether the next text takes no more than its own time: a model that was idle for long is gone."""
        return self._made is not None and self._made.loaded

    async def warm(self) -> None:
        """Load the model, so that the next text takes no time. Never raises."""
        if not self.loaded:
            self._known.pop(WARM, None)
            await self.of([WARM])

    async def one(self, text: str) -> Vector | None:
        """The vector of one text."""
        found = await self.of([text])
        return found[0] if found else None

    async def of(self, texts: Sequence[str]) -> list[Vector]:
        """A vector for each text; none at all when they can't be made now. Never raises what an embedder
        raises.
        """
        if texts and all(t in self._known for t in texts):
            return [self._known[t] for t in texts]
        if not texts or not all(t.strip() for t in texts):
            return []
        try:
            async with asyncio.timeout(EMBED_S):
                made = self._made = await self._embedder.get()
                if made is None:
                    return []
                found = await made.embed(texts)
        except (ReflectdError, ValueError, TimeoutError) as e:
            if not self._failed:
                why = str(e) or f"no answer in {EMBED_S:g} s"
                self._log.warning("tasks are not compared by their meaning", error=why)
            self._failed = True
            return []
        self._failed = False
        vectors = [Vector(found.model, _little(row)) for row in found.rows]
        for text, vector in zip(texts, vectors, strict=True):
            self._known[text] = vector
        while len(self._known) > KEPT:
            self._known.popitem(last=False)
        return vectors


def _little(row: Sequence[float]) -> bytes:
    """32-bit floats, the lowest byte first."""
    import sys

    found = array(FLOAT, row)
    if sys.byteorder == "big":
        found.byteswap()
    return found.tobytes()
