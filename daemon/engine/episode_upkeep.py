"""Keeps the memory in order, once a day and after a start: vectors of another model are made anew, and what
says the same, was contradicted or is of no use goes.

It works in small steps beside everything else; what a kill interrupts is gone on with at the next start. What
can't be done now, without a model or a store, is left for the next time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..core.errors import Unavailable
from ..memory.stale import prune
from ..store import jobs as rows
from .find_lessons import FAULT
from .jobs import UPKEEP
from .upkeep import aged_ms

if TYPE_CHECKING:
    from ..core.episodes import Candidate, Episodes
    from ..store.db import Statement
    from ..store.jobs import Job
    from .jobs import Jobs
    from .vectors import Vectors
    from .world import World

TIDY: Final = "memory.tidy"
DAY_MS: Final = 86_400_000
SOON_MS: Final = 60_000
AT_ONCE: Final = 32  # texts that are embedded together
ROUNDS: Final = 2_000
PAGE: Final = 500


class EpisodeUpkeep:
    """One for the daemon."""

    def __init__(self, world: World, jobs: Jobs, store: Episodes, vectors: Vectors) -> None:
        self._world = world
        self._jobs = jobs
        self._store = store
        self._vectors = vectors

    def first_jobs(self) -> list[Statement]:
        """It is due a minute after each start."""
        due = self._world.clock.now_ms() + SOON_MS
        return [self._jobs.statement(TIDY, "", lane=UPKEEP, due_ms=due), rows.hasten(TIDY, "", due)]

    async def work(self, job: Job) -> None:
        """Do it, and again in a day."""
        if self._world.settings.memory.enabled:
            try:
                embedded, gone = await self._embed(), await self._tidy()
            except Unavailable as e:
                self._world.health.failed(FAULT, str(e))
            else:
                self._world.health.works(FAULT)
                if embedded or gone:
                    self._world.log.info("episodes tidied", embedded=embedded, gone=gone)
        await self._jobs.keep(job, due_ms=self._world.clock.now_ms() + DAY_MS)

    async def _embed(self) -> int:
        """Give each episode a vector of the model of today. How many got one."""
        if not await self._store.page(None, limit=1):
            return 0
        await self._vectors.warm()
        done = 0
        for _ in range(ROUNDS):
            model = self._vectors.model
            found = await self._store.unembedded(model, AT_ONCE) if model else []
            vectors = await self._vectors.of([e.query for e in found])
            if not vectors:
                return done
            await self._store.embed({e.id: v for e, v in zip(found, vectors, strict=True)})
            done += len(found)
        return done

    async def _tidy(self) -> int:
        """What each project's episodes come to: those that this daemon vouches for. How many went."""
        projects: dict[str, list[Candidate]] = {}
        after = ""
        for _ in range(ROUNDS):
            page = await self._store.page(None, after=after, limit=PAGE)
            if not page:
                break
            after = page[-1].episode.id
            for one in page:
                if one.vouched:
                    projects.setdefault(one.episode.project, []).append(one)
        gone, now = 0, await aged_ms(self._world, "lessons")
        for found in projects.values():
            fates = prune(found, now, self._world.settings.memory.per_project)
            forget = [f.id for f in fates if f.what != "dismiss"]
            dismiss = [f.id for f in fates if f.what == "dismiss"]
            gone += await self._store.forget(forget) if forget else 0
            gone += await self._store.settle(dismiss, "dismissed") if dismiss else 0
        return gone
