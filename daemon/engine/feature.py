"""The seam between the engine and its features.

A feature is a class that takes the engine's parts (``engine.Engine``) and overrides points of ``Feature``;
``app.FEATURES`` names it. ``Features`` calls every feature at each of these points, in the order of that
tuple. A feature that fails is logged and does no harm to the engine or to other features.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

import msgspec
from msgspec import Struct

from ..core.errors import BadReply, ReflectdError
from ..core.events import SessionEvent

if TYPE_CHECKING:
    from ..core.offers import Moment, Offer
    from ..core.session import Session
    from ..core.verdict import Verdict
    from ..judge.case import Case
    from ..log import Logger
    from ..store.db import Statement
    from ..store.jobs import Job
    from ..store.timers import Pending

T = TypeVar("T")
Place = Literal["context", "lessons", "late_lessons"]
"""Where a host may ask for context: when a session starts, with a prompt, behind a tool call."""


class Switched(Struct, frozen=True):
    """A person switched judging on or off for this session or its project."""

    on: bool


class Returned(Struct, frozen=True):
    """The host of this working session is connected again."""


Heard = SessionEvent | Switched | Returned
"""Events for features."""


class Route(Struct, frozen=True):
    """``GET`` or ``POST`` ``/v1/features/<feature>/<name>``, for our own clients. ``answer`` takes the query
    or body. ``clicked``: only a person's click in the dashboard may ask for it; the socket does not have it.
    ``ASK``: a host may ask it with ``POST /v1/ask``; the body then has the host's ``instance``.
    """

    method: Literal["GET", "POST", "ASK"]
    name: str
    answer: Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
    clicked: bool = False


def route(
    method: Literal["GET", "POST"],
    name: str,
    form: type[T],
    answer: Callable[[T], Awaitable[Mapping[str, Any]]],
) -> Route:
    """A route whose query or body has this form; another one is ``BadReply``."""

    async def answered(given: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            asked = msgspec.convert(given, form, strict=method == "POST")
        except (msgspec.ValidationError, RecursionError) as error:
            raise BadReply(f"{name}: {error}") from None
        return await answer(asked)

    return Route(method, name, answered)


class Page(Struct, frozen=True):
    """A page of the dashboard: ``/<name>``. ``read`` takes the query and gives data only, never markup, in
    the form that ``engine/page`` makes. A button posts to the feature's own ``POST`` route; the route may
    answer ``said``, for the person.
    """

    name: str
    title: str
    read: Callable[[Mapping[str, str]], Awaitable[Mapping[str, Any]]]


class Feature:
    """Does nothing; a feature overrides what it needs. Only what is ``async`` may wait."""

    name: ClassVar[str] = ""
    timer_kinds: ClassVar[frozenset[str]] = frozenset()
    job_kinds: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, parts: object) -> None:
        """``parts``: those of the engine (``engine.Engine``); a feature keeps what it uses."""

    def heard(self, before: Session | None, after: Session, event: Heard) -> None:
        """An event was folded. ``before``: None for a session that is new."""

    def judged(self, verdict: Verdict, case: Case | None, *, sent: bool) -> None:
        """A turn has its final verdict. ``case``: None when nobody judged. ``sent``: feedback went out."""

    def deciding(self, verdict: Verdict, case: Case, directory: str) -> Sequence[Statement]:  # noqa: ARG002 - for those that override it
        """A turn was judged. The returned statements are stored in one transaction with its verdict."""
        return ()

    async def due(self, p: Pending) -> None:
        """A pending action of its own is due."""

    async def work(self, job: Job) -> None:
        """A job of its own is due; see ``engine/jobs`` for how to store what it changes."""

    def has_context(self, directory: str) -> Mapping[Place, int]:  # noqa: ARG002 - as above
        """Where it may have context for sessions in this folder, and how many ms a host waits there."""
        return {}

    async def prepare_context(self, s: Session, moment: Moment) -> None:
        """Read what ``context`` needs. It is given a moment; then ``context`` is asked all the same."""

    def context(self, s: Session, moment: Moment) -> Sequence[Offer]:  # noqa: ARG002 - as above
        """Help for this agent now. Must read no file."""
        return ()

    def routes(self) -> Sequence[Route]:
        return ()

    def pages(self) -> Sequence[Page]:
        """Its pages of the dashboard. Asked once, when a person opens it."""
        return ()

    def status(self) -> Mapping[str, Any]:
        """Its part of `reflectd status --json`."""
        return {}

    def prune(self, now_ms: int) -> Sequence[Statement]:  # noqa: ARG002 - as above
        """Statements that delete old rows; soon after the start and about every hour."""
        return ()


class Features:
    """All features as one: what is told or asked reaches each of them, whatever another one does."""

    def __init__(self, log: Logger) -> None:
        self._all: tuple[Feature, ...] = ()
        self._hearing: tuple[Feature, ...] = ()
        self.log = log

    def make(self, kinds: Sequence[Callable[[], Feature]]) -> None:
        """Make each feature, once the engine is there. One that can't be made is left out."""
        for kind in kinds:
            try:
                self._all += (kind(),)
            except ReflectdError:
                raise
            except Exception:
                self.log.exception("bug", feature=repr(kind))
        self._hearing = tuple(f for f in self._all if type(f).heard is not Feature.heard)

    def __iter__(self) -> Iterator[Feature]:
        return iter(self._all)

    def named(self, name: str) -> Feature | None:
        return next((f for f in self._all if f.name == name), None)

    def heard(self, before: Session | None, after: Session, event: Heard) -> None:
        """See ``Feature.heard``. It is on the way of every event, so only those who listen are called."""
        for f in self._hearing:
            try:
                f.heard(before, after, event)
            except Exception:
                self.log.exception("bug", feature=f.name)

    def judged(self, verdict: Verdict, case: Case | None, *, sent: bool) -> None:
        self._each(lambda f: f.judged(verdict, case, sent=sent))

    def deciding(self, verdict: Verdict, case: Case, directory: str) -> list[Statement]:
        return _joined(self._each(lambda f: f.deciding(verdict, case, directory)))

    async def due(self, p: Pending) -> None:
        """Have a pending action done by the feature that it belongs to."""
        owner = next((f for f in self._all if p.kind in f.timer_kinds), None)
        if owner is None:
            self.log.warning("no feature does this", timer=p.kind, session=p.session)
        else:
            await owner.due(p)

    async def work(self, job: Job) -> None:
        """Have a job done by the feature that it belongs to. Its exceptions are raised."""
        owner = next((f for f in self._all if job.kind in f.job_kinds), None)
        if owner is None:
            self.log.warning("no feature does this", job=job.kind, key=job.key)
        else:
            await owner.work(job)

    def has_context(self, directory: str) -> dict[Place, int]:
        """See ``Feature.has_context``: the longest wait of each place."""
        waits: dict[Place, int] = {}
        for places in self._each(lambda f: f.has_context(directory)):
            for place, ms in places.items():
                waits[place] = max(ms, waits.get(place, 0))
        return waits

    async def prepare_context(self, s: Session, moment: Moment) -> None:
        """See ``Feature.prepare_context``; those that read do so at once."""

        async def prepare(f: Feature) -> None:
            try:
                await f.prepare_context(s, moment)
            except Exception:
                self.log.exception("bug", feature=f.name)

        reading = [f for f in self._all if type(f).prepare_context is not Feature.prepare_context]
        if reading:
            await asyncio.gather(*map(prepare, reading))

    def context(self, s: Session, moment: Moment) -> list[Offer]:
        return _joined(self._each(lambda f: f.context(s, moment)))

    def routes(self) -> list[tuple[str, Route]]:
        """Name of the feature, and each of its routes, those that hosts ask too."""
        return _joined(self._each(lambda f: [(f.name, route) for route in f.routes()]))

    def pages(self) -> list[tuple[str, Page]]:
        return _joined(self._each(lambda f: [(f.name, page) for page in f.pages()]))

    def status(self) -> dict[str, Mapping[str, Any]]:
        """The status of each feature; features without one are left out."""
        return {name: said for name, said in self._each(lambda f: (f.name, f.status())) if said}

    def prune(self, now_ms: int) -> list[Statement]:
        return _joined(self._each(lambda f: f.prune(now_ms)))

    def _each(self, call: Callable[[Feature], T]) -> list[T]:
        answers = []
        for f in self._all:
            try:
                answers.append(call(f))
            except Exception:
                self.log.exception("bug", feature=f.name)
        return answers


def _joined(answers: list[Sequence[T]]) -> list[T]:
    return [each for answer in answers for each in answer]
