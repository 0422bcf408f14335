"""What is remembered of the models that somebody offers: looked up now and then, and refused lately.

A look-up that fails is nothing known, not an error, and soon tried again; at most one is under way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from daemon.core.errors import ReflectdError
from daemon.core.fast import first_offered
from daemon.core.transcript import Model

if TYPE_CHECKING:
    from collections.abc import Collection

KEEP_S: Final = 300.0
FAILED_S: Final = 30.0
MOST_REFUSED: Final = 100
Monotonic = Callable[[], float]
T = TypeVar("T")


class Fresh(Generic[T]):
    """One value that ``load`` gives; asked for again after ``KEEP_S``, after a failure in ``FAILED_S``."""

    def __init__(self, load: Callable[[], Awaitable[T]], monotonic: Monotonic) -> None:
        self._load = load
        self._monotonic = monotonic
        self._lock = asyncio.Lock()
        self._until: float | None = None
        self.value: T | None = None

    async def get(self) -> T | None:
        """The value, None while it cannot be had. Those who come meanwhile wait for the call under way; when
        the one who made it is cancelled, the next one makes its own.
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
    """Models that are offered and were refused all the same; forgotten as what is offered is."""

    def __init__(self, monotonic: Monotonic) -> None:
        self._monotonic = monotonic
        self._until: dict[Model, float] = {}

    def add(self, model: Model) -> None:
        """It is left out for a while."""
        self._until[model] = self._monotonic() + KEEP_S
        while len(self._until) > MOST_REFUSED:
            del self._until[next(iter(self._until))]

    @property
    def now(self) -> frozenset[Model]:
        """Those to leave out."""
        moment = self._monotonic()
        return frozenset(m for m, until in self._until.items() if moment < until)


class FastOfApi:
    """Which model of one API answers prompts of the tier ``fast``; ``own`` answers the others.

    ``load`` lists the API's models. ``official``: the vendor's own API, where a name of the list is likely
    there even when the listing failed; at another address nothing is likely, and ``own`` is asked.
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
        """List the models, unless that was done lately."""
        if self._wanted:
            await self._listed.get()

    @property
    def model(self) -> str:
        """The model, by what is known now."""
        refused = {m.model for m in self._refused.now}
        if self._listed.value is not None:
            return first_offered(self._wanted, _but(self._listed.value, refused)) or self._own
        likely = _but(self._wanted, refused) if self._official else ()
        return likely[0] if likely else self._own

    def refuse(self, model: str) -> None:
        """The API does not know it after all."""
        self._refused.add(Model("", model))


def _but(names: tuple[str, ...], refused: Collection[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name not in refused)
