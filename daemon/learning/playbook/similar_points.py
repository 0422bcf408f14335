"""Finds points with similar embeddings and offers the pairs to the curator, who decides.

The model for embeddings is the daemon's one (``embedder``). Everything that blocks is done in a thread: the
choice, the model on this machine, the comparison. Without a model, and when it fails or
takes too long, there are no pairs and everything goes on; a failure is logged once, until it works again.
Pairs of the same texts are remembered, so a project whose points did not change costs nothing.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from hashlib import sha256
from operator import mul
from typing import TYPE_CHECKING, Final

from ...core.errors import ReflectdError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ...log import Logger
    from ..embed.vectors import Row, SharedEmbedder
    from .points import Point

EMBED_S: Final = 120.0
KEPT: Final = 50  # sets of texts whose pairs are remembered
_ROUNDING: Final = 1e-9

Pairs = tuple[tuple[int, int], ...]


class SimilarPoints:
    """One for the daemon. ``least``: the cosine from which on two texts are alike."""

    def __init__(self, embedder: SharedEmbedder, least: float, log: Logger) -> None:
        self._embedder = embedder
        self._least = least
        self._log = log
        self._lock = asyncio.Lock()
        self._known: OrderedDict[bytes, Pairs] = OrderedDict()
        self._failed = False

    async def named(self, points: Sequence[Point], kept: Collection[str]) -> list[tuple[str, str]]:
        """The names of two points each that may say the same. Two that a person approved (``kept``) are no
        pair: neither would go. Never raises what an embedder raises.
        """
        names = [p["name"] for p in points]
        pairs = [(names[a], names[b]) for a, b in await self.pairs([p["text"] for p in points])]
        return [(a, b) for a, b in pairs if not (a in kept and b in kept)]

    async def pairs(self, texts: Sequence[str]) -> Pairs:
        """The places of two texts each that may say the same, the lower one first. Never raises."""
        if len(texts) < 2:
            return ()
        key = sha256("\0".join(texts).encode("utf-8", "surrogatepass")).digest()
        async with self._lock:
            found = self._known.pop(key, None)
            if found is None:
                found = await self._found(texts)
            if found is None:
                return ()
            self._known[key] = found
            while len(self._known) > KEPT:
                self._known.popitem(last=False)
            return found

    async def _found(self, texts: Sequence[str]) -> Pairs | None:
        """The pairs; None when they can't be told now."""
        try:
            async with asyncio.timeout(EMBED_S):
                made = await self._embedder.get()
                if made is None:
                    return None
                rows = (await made.embed(texts)).rows
        except (ReflectdError, ValueError, TimeoutError) as e:
            if not self._failed:
                self._log.warning("meanings are not compared", error=str(e) or f"no answer in {EMBED_S:g} s")
            self._failed = True
            return None
        self._failed = False
        return await asyncio.to_thread(near, rows, self._least)


def near(rows: Sequence[Row], threshold: float) -> Pairs:
    """The pairs of vectors whose cosine is at least ``threshold``, the lower index first. The vectors have
    length 1 and come from one model. A curator is shown some two hundred points at most.
    """
    least = threshold - _ROUNDING
    return tuple(
        (a, b) for b, row in enumerate(rows) for a in range(b) if sum(map(mul, rows[a], row)) >= least
    )
