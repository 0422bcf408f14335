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
from importlib.util import find_spec
from itertools import islice
from operator import mul
from typing import TYPE_CHECKING, Final

from ..core.errors import ReflectdError
from ..playbook.case import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from ..learning.embed.vectors import Row, SharedEmbedder
    from ..log import Logger
    from ..playbook.case import Curation
    from ..playbook.points import Playbook

EMBED_S: Final = 120.0
KEPT: Final = 50  # sets of texts whose pairs are remembered
MOST_PAIRS: Final = 1_000
BLOCK: Final = 512  # rows that are compared with all others at once
FEW: Final = 50  # rows for which importing numpy takes longer than doing without
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

    async def curation(
        self, playbook: Playbook, kept: Collection[str], make: Callable[[Sequence[tuple[str, str]]], Curation]
    ) -> Curation:
        """``make`` with the pairs of the points that its question shows. Two that a person approved
        (``kept``) are no pair: neither would go. Never raises what an embedder raises.
        """
        case = make(())
        points = shown(playbook, case.points)
        names = [p["name"] for p in points]
        pairs = [(names[a], names[b]) for a, b in await self.pairs([p["text"] for p in points])]
        pairs = [(a, b) for a, b in pairs if not (a in kept and b in kept)]
        return make(pairs) if pairs else case

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
        return await asyncio.to_thread(_near, rows, self._least)


def _near(rows: Sequence[Row], least: float) -> Pairs:
    """The pairs of vectors that are near; the first ``MOST_PAIRS`` where there are very many."""
    return tuple(islice(near(rows, least), MOST_PAIRS))


def near(rows: Sequence[Row], threshold: float) -> Iterator[tuple[int, int]]:
    """The pairs of vectors whose cosine is at least ``threshold``, the lower index first. The vectors have
    length 1 and come from one model.
    """
    least = threshold - _ROUNDING
    if len(rows) <= FEW or find_spec("numpy") is None:
        for b, row in enumerate(rows):
            yield from ((a, b) for a in range(b) if sum(map(mul, rows[a], row)) >= least)
        return
    import numpy as np

    every = np.array(rows)
    for at in range(0, len(rows), BLOCK):
        for b, a in np.argwhere(every[at : at + BLOCK] @ every.T >= least).tolist():
            if a < at + b:
                yield a, at + b
