"""The seam: what the engine tells a feature, what it asks one, and what it gives one to work with.

A feature is a class that takes ``Parts`` and overrides what it needs of ``Feature``; ``app.FEATURES`` names
it. The engine calls every feature at each of these points, in the order of that tuple. A feature that fails
is logged and does no harm to the engine or to other features.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from ...core.events import SessionEvent
from ..commit import Judged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...core.offers import Moment, Offer
    from ...core.pending import Pending
    from ...core.session import Session
    from ...core.verdict import Verdict
    from ...judge.case import Case
    from ...store.db import Statement
    from ...store.jobs import Job
    from ..asking import Asking
    from ..commit import Commit
    from ..delivery import Delivery
    from ..filing import Filing
    from ..instances import Instances
    from ..jobs import Jobs
    from ..messages import Messages
    from ..nudges import Nudges
    from ..timers import Timers
    from ..world import World


Place = Literal["context", "lessons", "late_lessons"]
"""Where a host may ask for context: when a session starts, with a prompt, behind a tool call."""


@dataclass(frozen=True, slots=True)
class Switched:
    """A person switched judging on or off for this session or its project."""

    on: bool


@dataclass(frozen=True, slots=True)
class Returned:
    """The host of this working session is connected again."""


Heard = SessionEvent | Switched | Returned
"""What a feature hears of."""


class Others(Judged, Protocol):
    """All features together, as one of them may see them."""

    def named(self, name: str) -> Feature | None:
        """The feature of this name."""
        ...


@dataclass(frozen=True, slots=True)
class Parts:
    """What a feature may use."""

    world: World
    instances: Instances
    messages: Messages
    asking: Asking
    commit: Commit
    delivery: Delivery
    filing: Filing
    nudges: Nudges
    timers: Timers
    jobs: Jobs
    features: Others


@dataclass(frozen=True, slots=True)
class Route:
    """``GET`` or ``POST`` ``/v1/features/<feature>/<name>``, for our own clients. ``answer`` takes the query
    or body. ``clicked``: only a person's click in the dashboard may ask for it; the socket does not have it.
    ``ASK``: a host may ask it with ``POST /v1/ask``; the body then has the host's ``instance``.
    """

    method: Literal["GET", "POST", "ASK"]
    name: str
    answer: Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
    clicked: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the dashboard: ``/<name>``. ``read`` takes the query and gives data only, never markup:
    ``{"sections": [{"title", "text", "columns", "rows", "more"}]}``.

    ``rows``: ``[{"cells": […], "actions": […]}]``. A cell is a text, a number, None, ``{"at": epoch ms}``,
    ``{"text", "session", "round"}`` (a link to that verdict), ``{"text", "query"}`` (a link to this page with
    another query) or ``{"share", "low", "high"}`` (from 0 to 1; a
    share with its interval). An action is ``{"label", "route", "body", "key"}``: a button that posts ``body``
    to the feature's own ``POST`` route of that name; ``key`` presses it in the row that has the focus;
    ``confirm`` (for what no page takes back) is asked before. The route may answer ``said``, for the person.
    Pages of one name are shown as one, each feature's part below that of the one before.
    ``more``: the query of the page that follows, as ``{"before": "…"}``. All but ``rows`` may be missing.
    """

    name: str
    title: str
    read: Callable[[Mapping[str, str]], Awaitable[Mapping[str, Any]]]


class Feature:
    """Does nothing; a feature overrides what it needs.

    ``timers``: kinds of pending actions that are its own. ``jobs``: kinds of background work that are its
    own.
    """

    name: ClassVar[str] = ""
    timer_kinds: ClassVar[frozenset[str]] = frozenset()
    job_kinds: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, parts: Parts) -> None:
        """``parts``: what the feature may use. Nothing may be asked or stored yet."""
        self.parts = parts

    def heard(
        self, before: Session | None, after: Session, event: SessionEvent | Switched | Returned
    ) -> None:
        """An event was folded. ``before``: None for a session that is new. Must not wait."""

    def judged(self, verdict: Verdict, case: Case | None, *, sent: bool) -> None:
        """A turn has its final verdict, and it is stored. ``sent``: feedback was carried out.

        ``case``: what was judged; None when a guard, a fault or the person ended the turn.
        """

    def deciding(self, verdict: Verdict, case: Case, directory: str) -> Sequence[Statement]:  # noqa: ARG002 - for those that override it
        """A turn was judged. What this returns is stored in one transaction with its verdict.

        Must not wait.
        """
        return ()

    async def due(self, p: Pending) -> None:
        """A pending action of its own is due."""

    async def work(self, job: Job) -> None:
        """A job of its own is due; see ``engine/jobs`` for how to store what it changes."""

    def has_context(self, directory: str) -> Mapping[Place, int]:  # noqa: ARG002 - as above
        """Where it may have context for sessions in this folder, and how many ms a host waits there at most.

        Must not wait.
        """
        return {}

    async def prepare_context(self, s: Session, moment: Moment) -> None:
        """Read what ``context`` needs. It is given a moment; then ``context`` is asked all the same."""

    def context(self, s: Session, moment: Moment) -> Sequence[Offer]:  # noqa: ARG002 - as above
        """What would help this agent now. Must not wait, and read no file."""
        return ()

    def routes(self) -> Sequence[Route]:
        """What our own clients and hosts may ask of it."""
        return ()

    def pages(self) -> Sequence[Page]:
        """Its pages of the dashboard. Asked once, when a person opens it."""
        return ()

    def status(self) -> Mapping[str, Any]:
        """What `reflectd status --json` says of it."""
        return {}

    def prune(self, now_ms: int) -> Sequence[Statement]:  # noqa: ARG002 - as above
        """What is too old to keep; soon after the start and about every hour."""
        return ()
