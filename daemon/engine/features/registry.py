"""All features as one: what is told or asked reaches each of them, whatever another one does."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from ...core.errors import ReflectdError
from .feature import Feature

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from ...core.events import SessionEvent
    from ...core.offers import Moment, Offer
    from ...core.pending import Pending
    from ...core.session import Session
    from ...core.task import ClosedTask
    from ...core.verdict import Verdict
    from ...judge.case import Case
    from ...store.db import Statement
    from ...store.jobs import Job
    from ..world import World
    from .feature import Page, Parts, Question, Route

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
        self._reading = tuple(f for f in self._features if type(f).ready is not Feature.ready)

    def __iter__(self) -> Iterator[Feature]:
        return iter(self._features)

    def named(self, name: str) -> Feature | None:
        """The feature of this name."""
        return next((f for f in self._features if f.name == name), None)

    def heard(self, before: Session | None, after: Session, event: SessionEvent) -> None:
        """See ``Feature.heard``. It is on the way of every event, so only those who listen are called."""
        for f in self._hearing:
            try:
                f.heard(before, after, event)
            except Exception:
                self._world.log.exception("bug", feature=f.name)

    def switched(self, s: Session, *, on: bool) -> None:
        """See ``Feature.switched``."""
        self._each(lambda f: f.switched(s, on=on))

    def returned(self, s: Session) -> None:
        """See ``Feature.returned``."""
        self._each(lambda f: f.returned(s))

    def judged(self, verdict: Verdict, case: Case | None, *, sent: bool) -> None:
        """See ``Feature.judged``."""
        self._each(lambda f: f.judged(verdict, case, sent=sent))

    def deciding(self, verdict: Verdict, case: Case, directory: str) -> list[Statement]:
        """See ``Feature.deciding``."""
        return [one for found in self._each(lambda f: f.deciding(verdict, case, directory)) for one in found]

    def closed(self, name: str, task: ClosedTask) -> Sequence[Statement]:
        """Tell the feature of this name; see ``Feature.closed``. What it raises is raised."""
        feature = self.named(name)
        return feature.closed(task) if feature is not None else ()

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

    def gives(self, directory: str) -> bool:
        """See ``Feature.gives``."""
        return any(self._each(lambda f: f.gives(directory)))

    def places(self, directory: str) -> dict[str, int]:
        """See ``Feature.places``."""
        found = self._each(lambda f: f.places(directory))
        return {place: ms for places in found for place, ms in places.items()}

    async def ready(self, s: Session, moment: Moment) -> None:
        """See ``Feature.ready``."""

        async def ready(f: Feature) -> None:
            try:
                await f.ready(s, moment)
            except Exception:
                self._world.log.exception("bug", feature=f.name)

        if self._reading:
            await asyncio.gather(*(ready(f) for f in self._reading))

    def offers(self, s: Session, moment: Moment) -> list[Offer]:
        """See ``Feature.offers``."""
        return [offer for found in self._each(lambda f: f.offers(s, moment)) for offer in found]

    def gave(self, s: Session, offers: Sequence[Offer]) -> None:
        """See ``Feature.gave``."""
        self._each(lambda f: f.gave(s, offers))

    def routes(self) -> list[tuple[str, Route]]:
        """Name of the feature, and each of its routes."""
        found = self._each(lambda f: [(f.name, route) for route in f.routes()])
        return [route for routes in found for route in routes]

    def questions(self) -> dict[str, Question]:
        """What hosts may ask, by name."""
        return {q.what: q for found in self._each(lambda f: f.questions()) for q in found}

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

    def first_jobs(self) -> list[Statement]:
        """See ``Feature.first_jobs``."""
        return [job for found in self._each(lambda f: f.first_jobs()) for job in found]

    def prune(self, now_ms: int) -> list[Statement]:
        """See ``Feature.prune``."""
        return [each for found in self._each(lambda f: f.prune(now_ms)) for each in found]

    async def drain(self) -> None:
        """See ``Feature.drain``."""

        async def drain(f: Feature) -> None:
            try:
                await f.drain()
            except Exception:
                self._world.log.exception("bug", feature=f.name)

        await asyncio.gather(*(drain(f) for f in self._features))

    def _each(self, call: Callable[[Feature], T]) -> list[T]:
        """What the call gives for each feature; one that fails gives nothing."""
        found = []
        for f in self._features:
            try:
                found.append(call(f))
            except Exception:
                self._world.log.exception("bug", feature=f.name)
        return found
