"""What a model for embeddings answers, and the one model of the daemon (design/memory.md).

It is made when somebody first asks for it, in a thread, and only once: a model on this machine takes
hundreds of megabytes. ``Vectors`` makes those of tasks, so that similar ones are found again: without a
model, and when it fails or takes too long, there is no vector and everything goes on without; a failure is
logged once, until it works again.
"""

from __future__ import annotations

import asyncio
import math
import sys
from array import array
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from ...core.errors import ReflectdError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...log import Logger

Row = Sequence[float]
EMBED_S: Final = 30.0
WARM: Final = "warm"  # a text that is embedded so that the model is there


@dataclass(frozen=True, slots=True)
class Vector:
    """An embedding: little-endian 32-bit floats of length 1, and the model that made it. Vectors of two
    models are never compared.
    """

    model: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Embedded:
    """Vectors of length 1, in the order of their texts. ``model`` names who made them.

    Only vectors of one ``Embedded`` are ever compared: those of two models have nothing to do with each
    other.
    """

    model: str
    rows: tuple[Row, ...] = ()

    @property
    def dimensions(self) -> int:
        """How many numbers a vector has; 0 without vectors."""
        return len(self.rows[0]) if self.rows else 0


def embedded(model: str, rows: Iterable[Sequence[float]]) -> Embedded:
    """The vectors, each brought to length 1. Raises ``ValueError`` for vectors of several sizes, for one of
    zeros, and for numbers that are none.
    """
    found = tuple(_unit(row) for row in rows)
    if len({len(row) for row in found}) > 1:
        raise ValueError(f"vectors of several sizes: {sorted({len(row) for row in found})}")
    return Embedded(model, found)


def _unit(row: Sequence[float]) -> Row:
    length = math.hypot(*row)
    if not (math.isfinite(length) and length > 0):
        raise ValueError("a vector without a length")
    return array("d", (x / length for x in row))  # a quarter of the memory of a tuple


class Embedder(Protocol):
    """Makes vectors of texts, so that their meanings can be compared."""

    @property
    def model(self) -> str:
        """The name that its vectors carry. Another model, or the same on another server, has another."""
        ...

    @property
    def loaded(self) -> bool:
        """Whether the next call needs nothing that takes long before it."""
        ...

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """A vector for each text, in their order. A long text counts with its beginning only.

        Raises ``Unavailable`` when there is no answer that can be read, ``BadReply`` when its vectors can't
        be right, and ``ValueError`` for a text without a visible character. Nothing is tried again.
        """
        ...

    async def close(self) -> None:
        """Give back memory and connections. A later call takes them again."""
        ...


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


class Vectors:
    """One for the daemon."""

    def __init__(self, embedder: SharedEmbedder, log: Logger) -> None:
        self._embedder = embedder
        self._log = log
        self._made: Embedder | None = None
        self._failed = False

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
            await self.of([WARM])

    async def one(self, text: str) -> Vector | None:
        """The vector of one text."""
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
        return [Vector(found.model, _little(row)) for row in found.rows]


def _little(row: Sequence[float]) -> bytes:
    """32-bit floats, the lowest byte first."""
    found = array("f", row)
    if sys.byteorder == "big":
        found.byteswap()
    return found.tobytes()
