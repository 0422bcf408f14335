"""Compares texts by their meaning: the comparison (``Similar``) that ``playbook.dedup`` takes.

The vectors are made first, before anybody holds a lock; the comparison itself only computes. Without an
embedder, and when it fails, there is no comparison, and a sentence for the person says why.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from operator import mul
from typing import TYPE_CHECKING, Final, NamedTuple

from ..core.errors import ReflectdError
from ..playbook.dedup import by_meaning
from .select import choose, embedder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ..core.embeddings import Row
    from ..core.ports import Embedder
    from ..core.settings import Settings
    from ..playbook.dedup import Similar

BLOCK: Final = 512  # rows that are compared with all others at once
FEW: Final = 50  # rows for which importing numpy takes longer than doing without
_ROUNDING: Final = 1e-9


class Compared(NamedTuple):
    """A comparison, None when there is none, and then why: a sentence for a person."""

    similar: Similar | None
    why: str = ""


def compared(settings: Settings, env: Mapping[str, str], texts: Iterable[str]) -> Compared:
    """A comparison of these texts with the embedder of the settings; blocks until it has their vectors.

    Texts that it does not know are alike to none. Never raises. May be called where an event loop runs.
    """
    known = tuple(dict.fromkeys(text for text in texts if text.strip()))
    if len(known) < 2:
        return Compared(None)
    work = _compared(settings, env, known)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


async def _compared(settings: Settings, env: Mapping[str, str], texts: Sequence[str]) -> Compared:
    why = "only words were compared"
    try:
        choice = choose(settings, env)
        made = embedder(choice, settings)
        if made is None:
            return Compared(None, f"{why}: {choice.why}{f' ({choice.mend})' if choice.mend else ''}")
        try:
            return Compared(await meanings(made, texts))
        finally:
            await made.close()
    except ReflectdError as error:
        return Compared(None, f"{why}: {error}")


async def meanings(made: Embedder, texts: Sequence[str]) -> Similar:
    """The comparison of these texts. Raises what ``Embedder.embed`` raises."""
    found = await made.embed(texts)
    rows = dict(zip(texts, found.rows, strict=True))

    def similar(wanted: Sequence[str], threshold: float) -> Iterator[tuple[int, int]]:
        known = [i for i, text in enumerate(wanted) if text in rows]
        for a, b in near([rows[wanted[i]] for i in known], threshold):
            yield known[a], known[b]

    return by_meaning(similar)


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
