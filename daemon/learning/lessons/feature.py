"""The memory: lessons from tasks that ended badly, brought back at similar ones (design/memory.md).

Off unless the person switched it on. Then each task whose verdict was bad is reflected on when it is over;
the episode with its lesson is stored, and given again for the tasks for which a model chooses it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Final

from msgspec import to_builtins

from ...core import events as ev
from ...core.errors import Unavailable
from ...core.session import FINAL_FOR_TASK
from ...engine.feature import Feature, Heard, Route
from ...learning import tables
from ...store import injections
from .give import FindLessons, GiveLessons, remove_old
from .jobs import REFLECT, SHARE, TIDY, EpisodeJobs, lapse
from .questions import should_reflect
from .routes import EpisodeRoutes
from .store import Episodes, forget_uses

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...core.offers import Moment, Offer
    from ...core.session import Session
    from ...core.verdict import Verdict
    from ...engine.engine import Engine
    from ...engine.feature import Place
    from ...judge.case import Case
    from ...store.db import Statement
    from ...store.jobs import Job

WEEK_MS: Final = 7 * 86_400_000
JUDGED: Final = frozenset({"complete", "incomplete"})


class Memory(Feature):
    """Hears what ends badly, and keeps what it teaches."""

    name: ClassVar = "memory"
    job_kinds: ClassVar = frozenset({REFLECT, TIDY, SHARE})

    def __init__(self, parts: Engine) -> None:
        super().__init__(parts)
        self.parts = parts
        self._world = world = parts.world
        self.store = Episodes(world.db, shared=bool(world.settings.store.url_file))
        self._vectors = world.embeddings
        self.find = FindLessons(world, self.store, self._vectors)
        self._jobs = EpisodeJobs(world, parts.asking, parts.jobs, self.store, self._vectors, self.find)
        self._give = GiveLessons(world, parts.asking, self.find)
        self._routes = EpisodeRoutes(world, self.store, self._vectors, self.find, self._jobs)
        self._counts: Mapping[str, int] = {}
        self._begun = False

    @property
    def enabled(self) -> bool:
        """Says whether the person switched it on."""
        return self._world.settings.memory.enabled

    def deciding(self, verdict: Verdict, case: Case, directory: str) -> Sequence[Statement]:
        """A bad turn is stored with its verdict."""
        s = self._world.sessions.get(verdict.session)
        if s is None or verdict.state not in JUDGED or not self._jobs.on(directory, s.host):
            return ()
        return self._jobs.keep(verdict, case, directory, s.host)

    def judged(self, verdict: Verdict, case: Case | None, *, sent: bool) -> None:  # noqa: ARG002 - the seam
        """The first verdict after lessons were given says whether they helped. A task that is over is
        reflected on now.
        """
        if not self.enabled:
            return
        s = self._world.sessions.peek(verdict.session)
        if s is not None and s.task == verdict.task and s.phase in FINAL_FOR_TASK:
            self._soon(self._jobs.task_over(s.id, s.task))
        if verdict.state not in JUDGED or verdict.reward is None:
            return
        bad = should_reflect(verdict.reward, self._world.settings.memory.threshold)
        given = injections.first_after(self._world.db, verdict.session)
        if given:
            done = self.find.counted(given, verdict.session, "failed" if bad else "helped")
            self._world.spawn(done, "memory")

    def heard(self, before: Session | None, after: Session, event: Heard) -> None:
        """A new session: what waits for a model is tried again. A new task, or the end of the session: the
        task before is reflected on now.
        """
        if not self.enabled:
            return
        self._give.heard(after, event)
        if before is None:
            if isinstance(event, ev.SessionSeen) and not after.judge:
                self._soon(*self._jobs.session_began(after.directory))
        elif before.task and (after.task != before.task or after.deleted):
            self._soon(self._jobs.task_over(before.id, before.task))

    def has_context(self, directory: str) -> Mapping[Place, int]:
        """With a prompt and behind a tool call, where lessons are given there."""
        return self._give.places(directory)

    async def prepare_context(self, s: Session, moment: Moment) -> None:
        """Choose lessons."""
        await self._give.ready(s, moment)

    def context(self, s: Session, moment: Moment) -> Sequence[Offer]:
        """The lessons that were chosen."""
        return self._give.offers(s, moment)

    async def work(self, job: Job) -> None:
        """Reflect, exchange lessons, or keep them in order."""
        await self._jobs.work(job)
        with suppress(Unavailable):
            self._counts = await self.find.asked(self.store.counts(None))

    def routes(self) -> Sequence[Route]:
        """For `reflectd memory`, MCP and the library."""
        return self._routes.all()

    def status(self) -> Mapping[str, Any]:
        """The stored and waiting lessons and their cost; nothing while it is off."""
        world = self._world
        if not self.enabled:
            return {}
        return {
            "enabled": True,
            "episodes": dict(self._counts),
            "waiting": self.parts.jobs.waiting().get(REFLECT, 0),
            **tables.counts(world.db, "memory."),
            "over_limit": self._jobs.over_limit,
            "fallback_mode_active": self._jobs.degraded,
            "spent": to_builtins(world.ledger.spent("", world.clock.now_ms() - WEEK_MS, "learning")),
            "embedding": self._vectors.model,
            "embedding_loaded": self._vectors.loaded,
        }

    def prune(self, now_ms: int) -> Sequence[Statement]:
        """Failures that lapsed; and from the first time on the memory is kept in order."""
        first = self._jobs.first() if self.enabled and not self._begun else []
        self._begun = True
        state_dir = self._world.db.path.parent
        self._world.spawn(asyncio.to_thread(remove_old, state_dir), "marks for hooks")
        return [*first, *lapse(now_ms), forget_uses(now_ms)]

    def _soon(self, *statements: Statement) -> None:
        async def store() -> None:
            await self._world.db.commit(*statements)
            self.parts.jobs.wake()

        self._world.spawn(store(), "memory")
