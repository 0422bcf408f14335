"""What the memory does in the background: reflexions on tasks that ended badly, and keeping order (AC-2.6.1
to AC-2.6.3).

Works only on what was judged and waits as a job: it reads no host and prompts nobody. Each step is stored
before the next one: the failure with its verdict, the answer as the job's cursor, then the episode, whose id
follows from the task. So kill -9 between any two of them loses nothing and stores nothing twice. Without a
model or over the limit on spending the failure waits, and lapses after seven days; so it does while the store
of episodes can't be reached, which is a named fault.
"""

from __future__ import annotations

import asyncio
import getpass
from typing import TYPE_CHECKING, Final

import msgspec

from ...core.errors import Unavailable
from ...core.session import Session
from ...engine.calls import OVER_LIMIT
from ...engine.jobs import UPKEEP
from ...engine.repositories import project_of
from ...engine.upkeep import aged_ms
from ...learning import tables
from ...store import jobs as job_rows
from .episodes import DAY_MS, cites, prune
from .give import FAULT, is_there
from .reflexion import (
    REFLEXION,
    Failure,
    Settings,
    asked,
    confirms,
    episode,
    failure,
    identity,
    reflect,
    reflection,
    should_reflect,
)

if TYPE_CHECKING:
    from ...core.verdict import Verdict
    from ...engine.asking import Asking
    from ...engine.jobs import Jobs
    from ...engine.world import World
    from ...judge.case import Case
    from ...store.db import Statement
    from ...store.jobs import Job
    from ..embed.vectors import Vectors
    from .episodes import Candidate, Episode
    from .sqlite import Episodes

REFLECT: Final = "memory.reflect"
TIDY: Final = "memory.tidy"
LANE: Final = "memory"
IDLE_MS: Final = 3_600_000  # a bad turn that nothing follows for so long is over
SOON_MS: Final = 1_000
LATER_MS: Final = 3_600_000  # no model, no money, no store: the next try
TIDY_AFTER_MS: Final = 60_000
FLOW_S: Final = 180.0  # five tries and their pauses
PER_SESSION: Final = 2
PER_PROJECT: Final = 500  # lessons that are kept; beyond that the least useful go
KEPT: Final = 500  # failures that wait, for ``KEEP_DAYS``
KEEP_DAYS: Final = 7
BYTES: Final = 200_000  # of one failure
CONFIRMED_AT_ONCE: Final = 20
LOOKED_AT: Final = 1_000
EMBEDDED_AT_ONCE: Final = 32
PAGE: Final = 500
ROUNDS: Final = 2_000
WAITS: Final = "waits:"  # cursors of a reflexion
SAID: Final = "said:"
HAIKU_DOWN: Final = "haiku_api_unavailable"
NOBODY: Final = "nobody is set up to be asked"
_TEXT: Final = "iif(json_valid(CAST(body AS TEXT)), CAST(body AS TEXT), '{}')"
_AT: Final = f"coalesce({_TEXT} ->> '$.at', 0)"
_LAPSED: Final = (
    f"kind = '{REFLECT}' AND ({_AT} < min(?, (SELECT min({_AT}) FROM jobs WHERE kind = '{REFLECT}') + "
    f"{DAY_MS}) OR id <= coalesce((SELECT id FROM jobs WHERE kind = '{REFLECT}' "
    f"ORDER BY id DESC LIMIT 1 OFFSET {KEPT}), 0))"
)


class EpisodeJobs:
    """One for the daemon. ``store``: where episodes go. ``home``: a folder that is no project."""

    def __init__(
        self, world: World, asking: Asking, jobs: Jobs, store: Episodes, vectors: Vectors, home: str
    ) -> None:
        self._world = world
        self._asking = asking
        self._jobs = jobs
        self._store = store
        self._vectors = vectors
        self._home = home
        self.over_limit = False  # when it last asked
        self.degraded = ""  # why nobody answered when it last asked

    def on(self, directory: str, host: str) -> bool:
        """Whether sessions of this host teach anything here. A project may only switch it off."""
        if not self._world.settings.memory.enabled:
            return False
        settings = self._world.project(directory)
        return settings.enabled and settings.memory.enabled and self._world.calls.models(host)

    def keep(self, verdict: Verdict, case: Case, directory: str, host: str) -> list[Statement]:
        """What is stored with a bad verdict, so that its task can be reflected on when it is over: one job a
        task, with the lowest reward of its verdicts, the later one of equals.
        """
        low = should_reflect(verdict.reward, self._world.settings.memory.threshold)
        found = failure(verdict, case, directory, host) if low else None
        if found is None:
            return []
        body = msgspec.json.encode(found)
        if len(body) > BYTES:
            return [tables.count(directory, "memory.too_large")]
        key, due = identity(verdict.session, verdict.task), self._world.clock.now_ms() + IDLE_MS
        keep = (
            "INSERT INTO jobs (kind, key, lane, due, body) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (kind, key) DO UPDATE SET due = excluded.due, body = iif("
            "json_valid(CAST(jobs.body AS TEXT)) AND CAST(excluded.body AS TEXT) ->> '$.reward' "
            "> CAST(jobs.body AS TEXT) ->> '$.reward', jobs.body, excluded.body)"
        )
        return [(keep, [(REFLECT, key, LANE, due, body)])]

    def soon(self, session: str, task: str) -> Statement:
        """The task is over: reflect on it, if it went badly."""
        return job_rows.hasten(REFLECT, identity(session, task), self._world.clock.now_ms() + SOON_MS)

    def retry(self, directory: str) -> Statement:
        """A session began in this folder: what waits there for a model is tried again."""
        return tables.retry(REFLECT, directory, WAITS, self._world.clock.now_ms() + SOON_MS)

    def first(self) -> list[Statement]:
        """Keeping order is due a minute after each start."""
        due = self._world.clock.now_ms() + TIDY_AFTER_MS
        return [self._jobs.statement(TIDY, "", lane=UPKEEP, due_ms=due), job_rows.hasten(TIDY, "", due)]

    async def work(self, job: Job) -> None:
        """Do the next steps. Raises ``Unavailable`` when the database can't be written."""
        if job.kind == TIDY:
            await self._tidy(job)
            return
        try:
            found = msgspec.convert(job.body, type=Failure)
        except msgspec.ValidationError as e:
            self._world.log.warning("a failure that waits is not understood", job=job.key, error=str(e))
            return
        if not job.cursor.startswith(SAID):
            answered = await self._ask(job, found)
            if answered is None:
                return
            job = answered
        await self._settle(job, found)

    async def withdraw(self, session: str) -> int:
        """A verdict of this session was wrong: dismiss its lessons, and drop what waits of it. How many there
        were. Raises ``Unavailable``.
        """
        db = self._world.db
        drop = f"DELETE FROM jobs WHERE kind = ? AND {_TEXT} ->> '$.session' = ?"
        await db.commit((drop, [(REFLECT, session)]), durable=True)
        tasks = db.read("SELECT DISTINCT task FROM verdicts WHERE session = ?", (session,))
        ids = [identity(session, task) for (task,) in tasks]
        return await self._store.settle(ids, "dismissed") if ids else 0

    # --- a reflexion --------------------------------------------------------------------------------

    async def _ask(self, job: Job, found: Failure) -> Job | None:
        """The job with the model's answer, stored. None when there is none (now)."""
        world = self._world
        await world.projects.read(found.directory)
        s = world.sessions.get(found.session) or Session(
            id=found.session, host=found.host, directory=found.directory
        )
        off = s.off or s.judge or s.parent or world.sessions.is_off(found.directory)
        if off or not self.on(found.directory, found.host):
            await self._over(job, found, "skipped", why="switched off")
            return None
        answers = "SELECT count(*) FROM ledger WHERE purpose = ? AND session = ? AND outcome = 'ok'"
        if world.db.read(answers, (REFLEXION, found.session))[0][0] >= PER_SESSION:
            await self._over(job, found, "skipped", why="its session had two")
            return None
        texts = await asyncio.to_thread(world.prompt_texts, found.directory)
        case = asked(found, texts, Settings(), world.nonce())
        outcome = await self._asking.run(reflect(case), s, FLOW_S, None, lambda _no: None)
        self.over_limit = OVER_LIMIT in outcome.why
        if outcome.found is not None:
            if self.degraded:
                world.log.info("reflexion works again", fallback_mode_active=False)
            self.degraded = ""
            return await self._jobs.keep(job, cursor=f"{SAID}{outcome.found.full}")
        if outcome.bad:
            await self._over(job, found, "failed", why=outcome.why)
            return None
        if not self.over_limit and NOBODY not in outcome.why:
            if not self.degraded:
                world.log.warning(
                    "reflexion is left out",
                    fallback_mode_active=True,
                    reason=HAIKU_DOWN,
                    session=found.session,
                    error=outcome.why,
                )
            self.degraded = outcome.why
        world.log.info("a reflexion waits", session=found.session, why=outcome.why)
        await self._jobs.keep(job, cursor=WAITS, due_ms=world.clock.now_ms() + LATER_MS)
        return None

    async def _settle(self, job: Job, found: Failure) -> None:
        """Store the episode of the answer in the cursor, and what it confirms."""
        project = await asyncio.to_thread(project_of, found.directory, self._home)
        said = reflection(job.cursor.removeprefix(SAID))
        if said is None or not project:
            await self._over(job, found, "refused", why="it is no project" if said else "it has no lesson")
            return
        names = await asyncio.to_thread(cites, said.lesson, lambda name: is_there(found.directory, name))
        made = episode(found, said, project=project, author=author(), cites=names)
        if isinstance(made, str):
            await self._over(job, found, "refused", why=made)
            return
        try:
            new = await self._store.add(made, await self._vectors.one(made.query))
            confirmed = await self._confirm(made) if new else 0
        except Unavailable as e:
            self._world.health.failed(FAULT, str(e))
            await self._jobs.keep(job, cursor=job.cursor, due_ms=self._world.clock.now_ms() + LATER_MS)
            return
        self._world.health.works(FAULT)
        self._world.log.info(
            "episode",
            id=made.id,
            session=found.session,
            reward=found.reward,
            proof=bool(found.proof),
            triggers=len(found.triggers),
            new=new,
            confirmed=confirmed,
        )
        await self._jobs.finish(job, tables.count(project, "memory.stored", int(new)))

    async def _confirm(self, made: Episode) -> int:
        """Earlier episodes of the project that this one shows to be right: the same went wrong again."""
        if not made.proof or not made.triggers:
            return 0
        others = await self._store.page([made.project], state="quarantined", limit=LOOKED_AT)
        ids = [c.episode.id for c in others if c.vouched and confirms(made, c.episode)]
        return await self._store.settle(ids[:CONFIRMED_AT_ONCE], "confirmed") if ids else 0

    async def _over(self, job: Job, found: Failure, what: str, *, why: str) -> None:
        self._world.log.info("no lesson", session=found.session, what=what, why=why)
        await self._jobs.finish(job, tables.count(found.directory, f"memory.{what}"))

    # --- order, once a day --------------------------------------------------------------------------

    async def _tidy(self, job: Job) -> None:
        """In small steps; a kill, a model or a store that is gone leaves the rest for the next time."""
        if self._world.settings.memory.enabled:
            try:
                embedded, gone = await self._embed(), await self._prune()
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
            found = await self._store.unembedded(model, EMBEDDED_AT_ONCE) if model else []
            vectors = await self._vectors.of([e.query for e in found])
            if not vectors:
                break
            await self._store.embed({e.id: v for e, v in zip(found, vectors, strict=True)})
            done += len(found)
        return done

    async def _prune(self) -> int:
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
            forget, dismiss = prune(found, now, PER_PROJECT)
            gone += await self._store.forget(forget) if forget else 0
            gone += await self._store.settle(dismiss, "dismissed") if dismiss else 0
        return gone


def lapse(now: int) -> list[Statement]:
    """Failures of seven days, and those beyond the newest 500, go and are counted."""
    row = (now - KEEP_DAYS * DAY_MS,)
    count = (
        "INSERT INTO learned_counts (directory, what, count) "
        f"SELECT coalesce({_TEXT} ->> '$.directory', ''), 'memory.lapsed', count(*) FROM jobs "
        f"WHERE {_LAPSED} GROUP BY 1 "
        "ON CONFLICT (directory, what) DO UPDATE SET count = count + excluded.count"
    )
    return [(count, [row]), (f"DELETE FROM jobs WHERE {_LAPSED}", [row])]


def author() -> str:
    """Who learns here, for others."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a process without a user in the machine's list
        return ""
