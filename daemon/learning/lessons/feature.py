"""The memory: lessons from tasks that ended badly, brought back at similar ones (design/memory.md).

Off unless the person switched it on. Then each task whose verdict was bad is reflected on when it is over;
the episode with its lesson is stored, and given again for the tasks for which a model chooses it
(AC-2.6.1 to AC-2.6.3). Other jobs keep episodes in order, and exchange lessons with others.

The jobs work only on judged turns that wait: they read no host and prompt nobody. Each step is stored before
the next one: the failure with its verdict, the answer as the job's cursor, then the episode, whose id follows
from the task. So kill -9 between any two of them loses nothing and stores nothing twice. Without a model or
over the limit on spending the failure waits, and lapses after seven days; so it does while the table of
episodes can't be used.
"""

from __future__ import annotations

import asyncio
import getpass
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec
from msgspec.structs import asdict, replace

from ...core import events as ev
from ...core.errors import BadReply, Unavailable
from ...core.session import FINAL_FOR_TASK, Session
from ...engine.calls import OVER_LIMIT
from ...engine.feature import Feature, Heard, Route
from ...engine.jobs import UPKEEP
from ...engine.upkeep import aged_ms
from ...store import injections
from ...store import jobs as job_rows
from .. import tables
from .citations import cites
from .episodes import DAY_MS, checked, confirms, prune
from .give import GiveLessons, remove_old
from .questions import REFLEXION, Failure, failure, identity, reflection, should_reflect
from .repositories import project_of
from .routes import EpisodeRoutes
from .shared import SharedLessons
from .store import Episodes, forget_uses

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ...core.offers import Moment, Offer
    from ...core.verdict import Verdict
    from ...engine.engine import Engine
    from ...engine.feature import Place
    from ...judge.case import Case
    from ...store.db import Statement
    from ...store.jobs import Job
    from .episodes import Episode

WEEK_MS: Final = 7 * 86_400_000
JUDGED: Final = frozenset({"complete", "incomplete"})
REFLECT: Final = "memory.reflect"
TIDY: Final = "memory.tidy"
SHARE: Final = "memory.share"
LANE: Final = "memory"
SHARED: Final = "shared lessons"  # a lane and a fault
IDLE_MS: Final = 3_600_000  # a bad turn that nothing follows for so long is over
SOON_MS: Final = 1_000
LATER_MS: Final = 3_600_000  # no model, no money, no store: the next try
TIDY_AFTER_MS: Final = 60_000
FLOW_S: Final = 180.0  # five tries and their pauses
PER_SESSION: Final = 2
PER_PROJECT: Final = 500  # lessons that are kept
KEPT: Final = 500  # failures that wait, for ``KEEP_DAYS``
KEEP_DAYS: Final = 7
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
_OLDEST: Final = f"(SELECT min({_AT}) FROM jobs WHERE kind = '{REFLECT}')"
_LAPSED: Final = f"kind = '{REFLECT}' AND {_AT} < min(?, {_OLDEST} + {DAY_MS})"


class Memory(Feature):
    """Hears what ends badly, and keeps what it teaches."""

    name: ClassVar = "memory"
    job_kinds: ClassVar = frozenset({REFLECT, TIDY, SHARE})

    def __init__(self, parts: Engine) -> None:
        super().__init__(parts)
        self._world, self._asking, self._jobs = parts.world, parts.asking, parts.jobs
        world = parts.world
        file = world.settings.store.url_file
        self.store, self._author = Episodes(world.db, shared=bool(file)), author()
        self._vectors = world.embeddings
        self._shared = SharedLessons(file, world.db, self.store, self._author) if file else None
        self.give = GiveLessons(world, parts.asking, self.store)
        self._routes = EpisodeRoutes(world, self.store, self._changed, self._withdraw)
        self._begun = False
        self._silent = ""  # why nobody answered when it last asked

    def on(self, directory: str, host: str) -> bool:
        """Says whether sessions of this host teach anything here. A project may only switch it off."""
        settings = self._world.project(directory)
        on = self._world.settings.memory.enabled and settings.enabled and settings.memory.enabled
        return on and self._world.calls.models(host)

    def deciding(self, verdict: Verdict, case: Case, directory: str) -> Sequence[Statement]:
        """The statements for a bad verdict's transaction, so that its task can be reflected on when it is
        over: one job a task, with the lowest reward of its verdicts, the later one of equals.
        """
        s = self._world.sessions.get(verdict.session)
        if s is None or verdict.state not in JUDGED or not self.on(directory, s.host):
            return ()
        low = should_reflect(verdict.reward, self._world.settings.memory.threshold)
        found = failure(verdict, case, directory, s.host) if low else None
        if found is None:
            return ()
        if self._jobs.waiting().get(REFLECT, 0) >= KEPT:
            return [tables.count(directory, "memory.lapsed")]
        key, due = identity(verdict.session, verdict.task), self._world.clock.now_ms() + IDLE_MS
        keep = (
            "INSERT INTO jobs (kind, key, lane, due, body) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (kind, key) DO UPDATE SET due = excluded.due, body = iif("
            "json_valid(CAST(jobs.body AS TEXT)) AND CAST(excluded.body AS TEXT) ->> '$.reward' "
            "> CAST(jobs.body AS TEXT) ->> '$.reward', jobs.body, excluded.body)"
        )
        return [(keep, [(REFLECT, key, LANE, due, msgspec.json.encode(found))])]

    def judged(self, verdict: Verdict, case: Case | None, *, sent: bool) -> None:  # noqa: ARG002 - the seam
        """The first verdict after lessons were given says whether they helped. A task that is over is
        reflected on now.
        """
        world = self._world
        if not world.settings.memory.enabled:
            return
        s = world.sessions.peek(verdict.session)
        if s is not None and s.task == verdict.task and s.phase in FINAL_FOR_TASK:
            self._task_over(s)
        if verdict.state not in JUDGED or verdict.reward is None:
            return
        given = injections.first_after(world.db, verdict.session)
        if given:
            bad = should_reflect(verdict.reward, world.settings.memory.threshold)
            done = self.give.counted(given, verdict.session, "failed" if bad else "helped")
            world.spawn(done, "memory")

    def heard(self, before: Session | None, after: Session, event: Heard) -> None:
        """A new session: what waits for a model is tried again, and lessons are exchanged with others. A new
        task, or the end of the session: the task before is reflected on now.
        """
        if not self._world.settings.memory.enabled:
            return
        if isinstance(event, ev.SessionEnded | ev.SessionDeleted):
            self.give.drop(after)
        if before is None:
            if isinstance(event, ev.SessionSeen) and not after.judge:
                due = self._world.clock.now_ms() + SOON_MS
                again = tables.retry(REFLECT, after.directory, WAITS, due)
                self._world.spawn(self._stored(again, *self._share(after.directory)), "memory")
        elif before.task and (after.task != before.task or after.deleted):
            self._task_over(before)

    def _task_over(self, s: Session) -> None:
        """Reflect on the session's task now, if it went badly."""
        due = self._world.clock.now_ms() + SOON_MS
        self._world.spawn(self._stored(job_rows.hasten(REFLECT, identity(s.id, s.task), due)), "memory")

    async def _stored(self, *statements: Statement) -> None:
        await self._world.db.commit(*statements)
        self._jobs.wake()

    def has_context(self, directory: str) -> Mapping[Place, int]:
        """With a prompt and behind a tool call, where lessons are given there."""
        return self.give.places(directory)

    async def prepare_context(self, s: Session, moment: Moment) -> None:
        """Choose lessons."""
        await self.give.ready(s, moment)

    def context(self, s: Session, moment: Moment) -> Sequence[Offer]:
        """The lessons that were chosen."""
        return self.give.offers(s, moment)

    def routes(self) -> Sequence[Route]:
        """For `reflectd memory`, MCP and the library."""
        return self._routes.all()

    @property
    def _over_limit(self) -> bool:
        return OVER_LIMIT in self._silent

    @property
    def _degraded(self) -> bool:
        """Says whether a model that is set up did not answer when it last asked."""
        return bool(self._silent) and not self._over_limit and NOBODY not in self._silent

    def status(self) -> Mapping[str, Any]:
        """The stored and waiting lessons and their cost; nothing while it is off."""
        world = self._world
        if not world.settings.memory.enabled:
            return {}
        episodes: dict[str, int] = {}
        with suppress(Unavailable):
            episodes = self.store.counts()
        return {
            "enabled": True,
            "episodes": episodes,
            "waiting": self._jobs.waiting().get(REFLECT, 0),
            **tables.counts(world.db, "memory."),
            "over_limit": self._over_limit,
            "fallback_mode_active": self._degraded,
            "spent": asdict(world.ledger.spent("", world.clock.now_ms() - WEEK_MS, "learning")),
            "embedding": self._vectors.model,
            "embedding_loaded": self._vectors.loaded,
        }

    def prune(self, now_ms: int) -> Sequence[Statement]:
        """Failures that lapsed; and a minute after each start the memory is kept in order."""
        statements = [*lapse(now_ms), forget_uses(now_ms)]
        if self._world.settings.memory.enabled and not self._begun:
            due = self._world.clock.now_ms() + TIDY_AFTER_MS
            tidy = self._jobs.statement(TIDY, "", lane=UPKEEP, due_ms=due)
            statements += [tidy, job_rows.hasten(TIDY, "", due)]
        self._begun = True
        self._world.spawn(asyncio.to_thread(remove_old, self._world.db.path.parent), "marks for hooks")
        return statements

    async def work(self, job: Job) -> None:
        """Do the next steps. Raises ``Unavailable`` when the database can't be written."""
        steps = {REFLECT: self._reflect, TIDY: self._tidy, SHARE: self._exchange}
        await steps[job.kind](job)

    def _share(self, directory: str) -> list[Statement]:
        """Exchange the lessons of the project that a folder is in; nothing where no store is shared."""
        return [self._jobs.statement(SHARE, directory, lane=SHARED)] if self._shared is not None else []

    async def _withdraw(self, session: str) -> int:
        """A verdict of this session was wrong: dismiss its lessons, and drop what waits of it. How many there
        were. Raises ``Unavailable``.
        """
        db = self._world.db
        drop = f"DELETE FROM jobs WHERE kind = ? AND {_TEXT} ->> '$.session' = ?"
        await db.commit((drop, [(REFLECT, session)]), durable=True)
        rows = db.read("SELECT DISTINCT task, directory FROM verdicts WHERE session = ?", (session,))
        gone = await self.store.settle([identity(session, task) for task, _ in rows], "dismissed")
        await self._changed(directory for _, directory in rows)
        return gone

    async def _changed(self, directories: Iterable[str]) -> None:
        """Lessons of these projects were added or settled: others hear of it, where a store is shared."""
        if statements := [put for directory in set(directories) for put in self._share(directory)]:
            await self._stored(*statements)

    # --- a reflexion --------------------------------------------------------------------------------

    async def _reflect(self, job: Job) -> None:
        try:
            found = msgspec.convert(job.body, type=Failure)
        except msgspec.ValidationError as e:
            self._world.log.warning("a failure that waits is not understood", job=job.key, error=str(e))
            return
        answered = job if job.cursor.startswith(SAID) else await self._ask(job, found)
        if answered is not None:
            await self._settle(answered, found)

    async def _ask(self, job: Job, found: Failure) -> Job | None:
        """The job with the model's answer, stored. None when there is none (now)."""
        world = self._world
        await world.projects.read(found.directory)
        s = world.sessions.get(found.session) or Session(
            id=found.session, host=found.host, directory=found.directory
        )
        off = s.off or s.judge or s.parent or world.sessions.is_off(found.directory)
        answers = "SELECT count(*) FROM ledger WHERE purpose = ? AND session = ? AND outcome = 'ok'"
        had = world.db.read(answers, (REFLEXION, found.session))[0][0]
        if off or not self.on(found.directory, found.host) or had >= PER_SESSION:
            why = f"its session had {PER_SESSION}" if had >= PER_SESSION else "switched off"
            await self._over(job, found, "skipped", why=why)
            return None
        answer = await self._asking.ask(found.question, s, FLOW_S)
        before, self._silent = self._degraded, "" if answer.replies or answer.bad else answer.why
        log = world.log.bind(session=found.session, fallback_mode_active=self._degraded)
        if self._degraded and not before:
            log.warning("reflexion is left out", reason=HAIKU_DOWN, error=answer.why)
        if before and not self._degraded:
            log.info("reflexion works again")
        if answer.reply is not None:
            return await self._jobs.keep(job, cursor=f"{SAID}{answer.reply}")
        if answer.bad:
            await self._over(job, found, "failed", why=answer.why)
            return None
        world.log.info("a reflexion waits", session=found.session, why=answer.why)
        await self._jobs.keep(job, cursor=WAITS, due_ms=world.clock.now_ms() + LATER_MS)
        return None

    async def _settle(self, job: Job, found: Failure) -> None:
        """Store the episode of the answer in the cursor, and what it confirms."""
        project = await asyncio.to_thread(project_of, found.directory)
        said = reflection(job.cursor.removeprefix(SAID))
        if said is None or not project:
            await self._over(job, found, "refused", why="it is no project" if said else "it has no lesson")
            return
        try:
            made = checked(found.episode(said, project, self._author))
        except BadReply as e:
            await self._over(job, found, "refused", why=str(e))
            return
        made = replace(made, cites=await asyncio.to_thread(cites, made.lesson, found.directory))
        try:
            new = await self.store.add(made, await self._vectors.one(made.query))
            confirmed = await self._confirm(made) if new else 0
        except Unavailable:
            await self._jobs.keep(job, cursor=job.cursor, due_ms=self._world.clock.now_ms() + LATER_MS)
            return
        self._world.log.info(
            "episode", id=made.id, session=found.session, reward=found.reward, new=new, confirmed=confirmed
        )
        stored = tables.count(project, "memory.stored", int(new))
        await self._jobs.finish(job, stored, *self._share(found.directory))

    async def _confirm(self, made: Episode) -> int:
        """Earlier episodes of the project that this one shows to be right: the same went wrong again."""
        others = await self.store.page([made.project], state="quarantined", limit=LOOKED_AT)
        return await self.store.settle([e.id for e in others if confirms(made, e)], "confirmed")

    async def _over(self, job: Job, found: Failure, what: str, *, why: str) -> None:
        self._world.log.info("no lesson", session=found.session, what=what, why=why)
        await self._jobs.finish(job, tables.count(found.directory, f"memory.{what}"))

    # --- with others --------------------------------------------------------------------------------

    async def _exchange(self, job: Job) -> None:
        """The job stays, and is tried again in an hour, while the server does not answer."""
        world, project = self._world, await asyncio.to_thread(project_of, job.key)
        if self._shared is None or not project or not world.settings.memory.enabled:
            return
        try:
            new = await self._shared.sync(project, world.clock.now_ms())
        except Unavailable as e:
            world.health.failed(SHARED, str(e))
            await self._jobs.keep(job, due_ms=world.clock.now_ms() + LATER_MS)
            return
        world.health.works(SHARED)
        world.log.info("lessons shared", project=project, new=new)
        if new:
            await self._embed()

    # --- order, once a day --------------------------------------------------------------------------

    async def _tidy(self, job: Job) -> None:
        """In small steps; a kill, a model or a store that is gone leaves the rest for the next time."""
        if self._world.settings.memory.enabled:
            try:
                await self._embed()
                await self._prune()
            except Unavailable as e:
                self._world.log.info("episodes are not tidied", error=str(e))
        await self._jobs.keep(job, due_ms=self._world.clock.now_ms() + DAY_MS)

    async def _embed(self) -> None:
        """Give each episode a vector of the model of today."""
        if not await self.store.page(None, limit=1):
            return
        await self._vectors.warm()
        for _ in range(ROUNDS):
            model = self._vectors.model
            found = await self.store.unembedded(model, EMBEDDED_AT_ONCE) if model else []
            vectors = await self._vectors.of([e.query for e in found])
            if not vectors:
                break
            await self.store.embed({e.id: v for e, v in zip(found, vectors, strict=True)})

    async def _prune(self) -> None:
        """Dismiss and forget what each project's episodes come to: those that this person vouches for."""
        projects: dict[str, list[Episode]] = {}
        after = ""
        while page := await self.store.page(None, after=after, limit=PAGE):
            after = page[-1].id
            for e in page:
                if e.vouched:
                    projects.setdefault(e.project, []).append(e)
        now = await aged_ms(self._world, "lessons")
        for found in projects.values():
            forget, dismiss = prune(found, now, PER_PROJECT)
            await self.store.forget(forget)
            await self.store.settle(dismiss, "dismissed")


def lapse(now: int) -> list[Statement]:
    """Failures that waited for ``KEEP_DAYS`` go and are counted."""
    row = (now - KEEP_DAYS * DAY_MS,)
    count = (
        "INSERT INTO learned_counts (directory, what, count) "
        f"SELECT coalesce({_TEXT} ->> '$.directory', ''), 'memory.lapsed', count(*) FROM jobs "
        f"WHERE {_LAPSED} GROUP BY 1 "
        "ON CONFLICT (directory, what) DO UPDATE SET count = count + excluded.count"
    )
    return [(count, [row]), (f"DELETE FROM jobs WHERE {_LAPSED}", [row])]


def author() -> str:
    """The name of this person, for others."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a process without a user in the machine's list
        return ""
