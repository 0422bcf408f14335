"""Reflexion in the background: a task that ended badly, one question, one episode (AC-2.6.1 to AC-2.6.3).

Works only on what was judged and waits as a job: it reads no host and prompts nobody. Each step is stored
before the next one: the failure with its verdict, the answer as the job's cursor, then the episode, whose id
follows from the task. So kill -9 between any two of them loses nothing and stores nothing twice. Without a
model or over the limit on spending the failure waits, and lapses after seven days; so it does while the store
of episodes can't be reached, which is a named fault.
"""

from __future__ import annotations

import asyncio
import getpass
from typing import TYPE_CHECKING, Any, Final

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
    Reflection,
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
    from ...store.readonly import Reads
    from ..embed.vectors import Vectors
    from .episodes import Candidate, Episode, Episodes

# Tasks that went badly and wait for their reflexion: one job each, with the worst of their verdicts.

KEEP_DAYS: Final = 7
KEPT: Final = 500
BYTES: Final = 200_000  # of one
_encode = msgspec.json.Encoder().encode
_TEXT: Final = "iif(json_valid(CAST(body AS TEXT)), CAST(body AS TEXT), '{}')"
_AT: Final = f"coalesce({_TEXT} ->> '$.at', 0)"
_LAPSED: Final = (
    f"kind = ? AND ({_AT} < min(?, (SELECT min({_AT}) FROM jobs WHERE kind = ?) + {DAY_MS}) "
    "OR id <= coalesce("
    "(SELECT id FROM jobs WHERE kind = ? ORDER BY id DESC LIMIT 1 OFFSET ?), 0))"
)


def keep_failure(kind: str, key: str, lane: str, due: int, body: dict[str, Any]) -> Statement:
    """Store one, or put off the one of this task that waits; of two the lower ``reward`` stays, the later one
    of equals.
    """
    return (
        "INSERT INTO jobs (kind, key, lane, due, body) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (kind, key) DO UPDATE SET due = excluded.due, body = iif("
        "json_valid(CAST(jobs.body AS TEXT)) AND CAST(excluded.body AS TEXT) ->> '$.reward' "
        "> CAST(jobs.body AS TEXT) ->> '$.reward', jobs.body, excluded.body)",
        [(kind, key, lane, due, _encode(body))],
    )


def drop_failures(kind: str, session: str) -> Statement:
    """Those of this session: a person says that its verdict was wrong."""
    return (
        f"DELETE FROM jobs WHERE kind = ? AND {_TEXT} ->> '$.session' = ?",
        [(kind, session)],
    )


def judged_tasks(db: Reads, session: str) -> list[str]:
    """The tasks of a session that were judged."""
    return [task for (task,) in db.read("SELECT DISTINCT task FROM verdicts WHERE session = ?", (session,))]


def answers(db: Reads, purpose: str, session: str) -> int:
    """How many calls of this purpose were answered for the session."""
    ((count,),) = db.read(
        "SELECT count(*) FROM ledger WHERE purpose = ? AND session = ? AND outcome = 'ok'",
        (purpose, session),
    )
    return int(count)


def lapse(kind: str, now: int) -> list[Statement]:
    """Those of seven days, and those beyond the newest 500, lapse and are counted."""
    row = (kind, now - KEEP_DAYS * DAY_MS, kind, kind, KEPT)
    return [
        (
            "INSERT INTO learned_counts (directory, what, count) "
            f"SELECT coalesce({_TEXT} ->> '$.directory', ''), 'memory.lapsed', count(*) FROM jobs "
            f"WHERE {_LAPSED} GROUP BY 1 "
            "ON CONFLICT (directory, what) DO UPDATE SET count = count + excluded.count",
            [row],
        ),
        (f"DELETE FROM jobs WHERE {_LAPSED}", [row]),
    ]


REFLECT: Final = "memory.reflect"
TIDY: Final = "memory.tidy"
LANE: Final = "memory"
IDLE_MS: Final = 3_600_000  # a bad turn that nothing follows for so long is over
SOON_MS: Final = 1_000
LATER_MS: Final = 3_600_000  # no model, no money, no store: the next try
FLOW_S: Final = 180.0  # five tries and their pauses
PER_SESSION: Final = 2
WAITS: Final = "waits:"
SAID: Final = "said:"
HAIKU_DOWN: Final = "haiku_api_unavailable"
NOBODY: Final = "nobody is set up to be asked"
CONFIRMED_AT_ONCE: Final = 20
TIDY_AFTER_MS: Final = 60_000
AT_ONCE: Final = 32  # texts that are embedded together
ROUNDS: Final = 2_000
PAGE: Final = 500
LOOKED_AT: Final = 1_000


class Reflexions:
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
        """What is stored with a bad verdict, so that its task can be reflected on when it is over."""
        if not should_reflect(verdict.reward, self._world.settings.memory.threshold):
            return []
        found = failure(
            verdict,
            requests=case.requests,
            final=case.final,
            evidence=case.evidence,
            directory=directory,
            host=host,
            rounds=case.rounds,
            model=case.model,
        )
        if found is None:
            return []
        body: dict[str, Any] = msgspec.to_builtins(found)
        if len(msgspec.json.encode(body)) > BYTES:
            return [tables.count(directory, "memory.too_large")]
        key = identity(verdict.session, verdict.task)
        return [keep_failure(REFLECT, key, LANE, self._world.clock.now_ms() + IDLE_MS, body)]

    def soon(self, session: str, task: str) -> Statement:
        """The task is over: reflect on it, if it went badly."""
        return job_rows.hasten(REFLECT, identity(session, task), self._world.clock.now_ms() + SOON_MS)

    def retry(self, directory: str) -> Statement:
        """A session began in this folder: what waits there for a model is tried again."""
        return tables.retry(REFLECT, directory, WAITS, self._world.clock.now_ms() + SOON_MS)

    async def work(self, job: Job) -> None:
        """Do the next steps of a reflexion. Raises ``Unavailable`` when the database can't be written."""
        try:
            found = msgspec.convert(job.body, type=Failure)
        except msgspec.ValidationError as e:
            self._world.log.warning("a failure that waits is not understood", job=job.key, error=str(e))
            return
        said = _said(job.cursor)
        if said is None:
            answer = await self._ask(job, found)
            if answer is None:
                return
            job, said = answer
        await self._settle(job, found, said)

    async def _ask(self, job: Job, found: Failure) -> tuple[Job, Reflection] | None:
        """The model's answer, stored. None when there is none (now)."""
        world = self._world
        await world.projects.read(found.directory)
        s = world.sessions.get(found.session) or Session(
            id=found.session, host=found.host, directory=found.directory
        )
        off = s.off or s.judge or s.parent or world.sessions.is_off(found.directory)
        if off or not self.on(found.directory, found.host):
            await self._over(job, found, "skipped", why="switched off")
            return None
        if answers(world.db, REFLEXION, found.session) >= PER_SESSION:
            await self._over(job, found, "skipped", why="its session had two")
            return None
        texts, memory = await asyncio.to_thread(world.prompt_texts, found.directory), world.settings.memory
        wanted = Settings(memory.model, memory.temperature_percent / 100, memory.max_tokens)
        case = asked(found, texts, wanted, world.nonce())
        outcome = await self._asking.run(reflect(case), s, FLOW_S, None, lambda _no: None)
        self.over_limit = OVER_LIMIT in outcome.why
        if outcome.found is None:
            if outcome.bad:
                await self._over(job, found, "failed", why=outcome.why)
            else:
                self._fall(found, outcome.why)
                await self._wait(job, found, outcome.why)
            return None
        self._recover()
        job = await self._jobs.keep(job, cursor=f"{SAID}{outcome.found.full}")
        return job, outcome.found

    async def _settle(self, job: Job, found: Failure, said: Reflection) -> None:
        """Store the episode, and what it confirms."""
        project = await asyncio.to_thread(project_of, found.directory, self._home)
        names = await asyncio.to_thread(cites, said.lesson, lambda name: is_there(found.directory, name))
        made = episode(found, said, project=project, author=author(), cites=names)
        if not project or isinstance(made, str):
            await self._over(job, found, "refused", why=str(made) if project else "it is no project")
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

    async def _wait(self, job: Job, found: Failure, why: str) -> None:
        """Try again in an hour, or when a session begins in the folder; it lapses after seven days."""
        self._world.log.info("a reflexion waits", session=found.session, why=why)
        await self._jobs.keep(job, cursor=WAITS, due_ms=self._world.clock.now_ms() + LATER_MS)

    def _fall(self, found: Failure, why: str) -> None:
        """Nobody answers: judging goes on, lessons wait. Said once."""
        if self.over_limit or NOBODY in why:
            return
        if not self.degraded:
            self._world.log.warning(
                "reflexion is left out",
                fallback_mode_active=True,
                reason=HAIKU_DOWN,
                session=found.session,
                error=why,
            )
        self.degraded = why

    def _recover(self) -> None:
        if self.degraded:
            self._world.log.info("reflexion works again", fallback_mode_active=False)
        self.degraded = ""


class EpisodeUpkeep:
    """Keeps the memory in order, once a day and after a start: vectors of another model are made anew, and
    what says the same, was contradicted or is of no use goes. One for the daemon.

    It works in small steps; what a kill interrupts is gone on with at the next start. What can't be done now,
    without a model or a store, is left for the next time.
    """

    def __init__(self, world: World, jobs: Jobs, store: Episodes, vectors: Vectors) -> None:
        self._world = world
        self._jobs = jobs
        self._store = store
        self._vectors = vectors

    def first_jobs(self) -> list[Statement]:
        """It is due a minute after each start."""
        due = self._world.clock.now_ms() + TIDY_AFTER_MS
        return [self._jobs.statement(TIDY, "", lane=UPKEEP, due_ms=due), job_rows.hasten(TIDY, "", due)]

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


def _said(cursor: str) -> Reflection | None:
    return reflection(cursor.removeprefix(SAID)) if cursor.startswith(SAID) else None


def author() -> str:
    """Who learns here, for others."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a process without a user in the machine's list
        return ""
