"""Remembers the models that a server or a host offers, and those that it refused lately.

A failed look-up is no error: nothing is known then, and it is soon tried again. At most one runs at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from ..core.errors import ReflectdError
from ..core.fast import first_offered
from ..core.transcript import Model

if TYPE_CHECKING:
    from collections.abc import Collection

KEEP_S: Final = 300.0
FAILED_S: Final = 30.0
MOST_REFUSED: Final = 100
Monotonic = Callable[[], float]
T = TypeVar("T")


class Fresh(Generic[T]):
    """One value that ``load`` gives. It is loaded again after ``KEEP_S``, or after ``FAILED_S`` if that
    failed.
    """

    def __init__(self, load: Callable[[], Awaitable[T]], monotonic: Monotonic) -> None:
        self._load = load
        self._monotonic = monotonic
        self._lock = asyncio.Lock()
        self._until: float | None = None
        self.value: T | None = None

    async def get(self) -> T | None:
        """The value, None while it can't be loaded. Callers who come during a load wait for it; if the caller
        who began it is cancelled, the next one loads.
        """
        async with self._lock:
            if self._until is None or self._monotonic() >= self._until:
                try:
                    self.value = await self._load()
                except ReflectdError:
                    self.value = None
                self._until = self._monotonic() + (FAILED_S if self.value is None else KEEP_S)
        return self.value


class Refused:
    """Models that were refused although they are offered. Each is forgotten after ``KEEP_S``."""

    def __init__(self, monotonic: Monotonic) -> None:
        self._monotonic = monotonic
        self._until: dict[Model, float] = {}

    def add(self, model: Model) -> None:
        """Remember that ``model`` was refused."""
        self._until[model] = self._monotonic() + KEEP_S
        while len(self._until) > MOST_REFUSED:
            del self._until[next(iter(self._until))]

    @property
    def now(self) -> frozenset[Model]:
        """The models that are left out at this moment."""
        moment = self._monotonic()
        return frozenset(m for m, until in self._until.items() if moment < until)


class FastOfApi:
    """Chooses the model of one API for prompts of the tier ``fast``; ``own`` answers the others.

    ``wanted``: the person's list. ``load`` lists the API's models. ``official``: it is the vendor's own API.
    When listing fails there, the first wanted model is asked, as it is likely there; elsewhere ``own`` is
    asked.
    """

    def __init__(
        self,
        wanted: tuple[str, ...],
        own: str,
        load: Callable[[], Awaitable[tuple[str, ...]]],
        monotonic: Monotonic,
        *,
        official: bool,
    ) -> None:
        self._wanted, self._own, self._official = wanted, own, official
        self._listed = Fresh(load, monotonic)
        self._refused = Refused(monotonic)

    async def look(self) -> None:
        """List the API's models, unless that was done lately."""
        if self._wanted:
            await self._listed.get()

    @property
    def model(self) -> str:
        """The model to ask, by what is known now."""
        return self.after("")

    def after(self, first: str) -> str:
        """The model to ask where ``first`` goes before the person's list."""
        refused = {m.model for m in self._refused.now}
        wanted = (first, *self._wanted) if first else self._wanted
        if self._listed.value is not None:
            return first_offered(wanted, _without(self._listed.value, refused)) or self._own
        likely = _without(wanted, refused) if self._official else ()
        return likely[0] if likely else self._own

    def refuse(self, model: str) -> None:
        """Remember that the API does not know ``model``."""
        self._refused.add(Model("", model))


def _without(names: tuple[str, ...], refused: Collection[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name not in refused)
