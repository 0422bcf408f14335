"""All features as one: what is told or asked reaches each of them, whatever another one does."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from ...core.errors import ReflectdError
from .feature import Feature

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from ...core.offers import Moment, Offer
    from ...core.pending import Pending
    from ...core.session import Session
    from ...core.verdict import Verdict
    from ...judge.case import Case
    from ...store.db import Statement
    from ...store.jobs import Job
    from ..world import World
    from .feature import Heard, Page, Parts, Place, Route

T = TypeVar("T")


class Features:
    """Filled once, when the engine is put together. A failure of a feature is logged and ends there."""

    def __init__(self, world: World) -> None:
        self._features: tuple[Feature, ...] = ()
        self._hearing: tuple[Feature, ...] = ()
        self._reading: tuple[Feature, ...] = ()
        self._world = world

    def make(self, kinds: Sequence[Callable[[Parts], Feature]], parts: Parts) -> None:
        """Make each feature. One that can't be made is left out."""
        for kind in kinds:
            try:
                self._features += (kind(parts),)
            except ReflectdError:
                raise
            except Exception:
                self._world.log.exception("bug", feature=getattr(kind, "name", repr(kind)))
        self._hearing = tuple(f for f in self._features if type(f).heard is not Feature.heard)
        self._reading = tuple(
            f for f in self._features if type(f).prepare_context is not Feature.prepare_context
        )

    def __iter__(self) -> Iterator[Feature]:
        return iter(self._features)

    def named(self, name: str) -> Feature | None:
        """The feature of this name."""
        return next((f for f in self._features if f.name == name), None)

    def heard(self, before: Session | None, after: Session, event: Heard) -> None:
        """See ``Feature.heard``. It is on the way of every event, so only those who listen are called."""
        for f in self._hearing:
            try:
                f.heard(before, after, event)
            except Exception:
                self._world.log.exception("bug", feature=f.name)

    def judged(self, verdict: Verdict, case: Case | None, *, sent: bool) -> None:
        """See ``Feature.judged``."""
        self._each(lambda f: f.judged(verdict, case, sent=sent))

    def deciding(self, verdict: Verdict, case: Case, directory: str) -> list[Statement]:
        """See ``Feature.deciding``."""
        return [one for found in self._each(lambda f: f.deciding(verdict, case, directory)) for one in found]

    async def due(self, p: Pending) -> None:
        """Have a pending action done by the feature that it belongs to."""
        for f in self._features:
            if p.kind in f.timer_kinds:
                await f.due(p)
                return
        self._world.log.warning("no feature does this", timer=p.kind, session=p.session)

    async def work(self, job: Job) -> None:
        """Have a job done by the feature that it belongs to. What it raises is raised."""
        for f in self._features:
            if job.kind in f.job_kinds:
                await f.work(job)
                return
        self._world.log.warning("no feature does this", job=job.kind, key=job.key)

    def has_context(self, directory: str) -> dict[Place, int]:
        """See ``Feature.has_context``: the longest wait of each place."""
        found: dict[Place, int] = {}
        for places in self._each(lambda f: f.has_context(directory)):
            for place, ms in places.items():
                found[place] = max(ms, found.get(place, 0))
        return found

    async def prepare_context(self, s: Session, moment: Moment) -> None:
        """See ``Feature.prepare_context``."""

        async def prepare(f: Feature) -> None:
            try:
                await f.prepare_context(s, moment)
            except Exception:
                self._world.log.exception("bug", feature=f.name)

        if self._reading:
            await asyncio.gather(*(prepare(f) for f in self._reading))

    def context(self, s: Session, moment: Moment) -> list[Offer]:
        """See ``Feature.context``."""
        return [offer for found in self._each(lambda f: f.context(s, moment)) for offer in found]

    def routes(self) -> list[tuple[str, Route]]:
        """Name of the feature, and each of its routes, those that hosts ask too."""
        found = self._each(lambda f: [(f.name, route) for route in f.routes()])
        return [route for routes in found for route in routes]

    def pages(self) -> list[tuple[str, Page]]:
        """Name of the feature, and each of its pages."""
        found = self._each(lambda f: [(f.name, page) for page in f.pages()])
        return [page for pages in found for page in pages]

    def status(self) -> dict[str, Mapping[str, Any]]:
        """What each feature says of itself; those that say nothing are left out."""
        return {name: said for name, said in self._each(lambda f: (f.name, f.status())) if said}

    def says(self, feature: str) -> Mapping[str, Any]:
        """What one feature says of itself; nothing when there is none of that name."""
        told = self._each(lambda f: f.status() if f.name == feature else None)
        return next((said for said in told if said), {})

    def prune(self, now_ms: int) -> list[Statement]:
        """See ``Feature.prune``."""
        return [each for found in self._each(lambda f: f.prune(now_ms)) for each in found]

    def _each(self, call: Callable[[Feature], T]) -> list[T]:
        """What the call gives for each feature; one that fails gives nothing."""
        found = []
        for f in self._features:
            try:
                found.append(call(f))
            except Exception:
                self._world.log.exception("bug", feature=f.name)
        return found
