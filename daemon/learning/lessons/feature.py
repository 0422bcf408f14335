"""The memory: lessons from tasks that ended badly, brought back at similar ones (design/memory.md).

Off unless the person switched it on. Then each task whose verdict was bad is reflected on when it is over;
the episode with its lesson is stored, and given again for the tasks for which a model chooses it
(AC-2.6.1 to AC-2.6.3). Other jobs keep episodes in order, and exchange lessons with others.

Its routes (``/v1/features/memory/…``) are for the command line, MCP and the library. The form of a question
is a struct; one of another form is ``BadReply``, a store that can't be reached ``Unavailable``. ``import``
trusts nothing: each lesson belongs to the project that it is brought into and waits, since its proof is
elsewhere.

The jobs work only on judged turns that wait: they read no host and prompt nobody. Each step is stored before
the next one: the failure with its verdict, the answer as the job's cursor, then the episode, whose id follows
from the task. So kill -9 between any two of them loses nothing and stores nothing twice. Without a model or
over the limit on spending the failure waits, and lapses after seven days; so it does while the table of
episodes can't be used.
"""

from __future__ import annotations

import asyncio
import getpass
import secrets
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final

import msgspec
from msgspec import Meta, Struct, to_builtins
from msgspec.structs import asdict, replace

from ...core import events as ev
from ...core.errors import BadReply, Unavailable
from ...core.session import FINAL_FOR_TASK, Session
from ...engine.calls import OVER_LIMIT
from ...engine.feature import Feature, Heard, Route, route
from ...engine.jobs import UPKEEP, aged_ms
from ...store import jobs as job_rows
from ...store import ledger
from ...store.retention import old
from .. import tables
from ..texts import has_hidden, refusal
from .citations import cites
from .episodes import DAY_MS, LONGEST, SIMILAR, TOP_K, Episode, brought, checked, confirms, may_show, prune
from .questions import EVALUATION, REFLEXION, Failure, failure, identity, reflection, should_reflect
from .repositories import project_of
from .shared import SharedLessons
from .store import Episodes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ...core.verdict import Verdict
    from ...engine.engine import Engine
    from ...judge.case import Case
    from ...store.db import Statement
    from ...store.jobs import Job
    from .episodes import State

Json = dict[str, Any]
Text = Annotated[str, Meta(pattern=r"\S", max_length=LONGEST)]
Directory = Annotated[str, Meta(pattern=r"^[^\0]*\Z")]
WEEK_MS: Final = 7 * 86_400_000
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
_FOLDER: Final = f"{_TEXT} ->> '$.directory'"
_LAPSED: Final = f"kind = '{REFLECT}' AND " + old("jobs", f"{_TEXT} ->> '$.episode.at'")
MOST: Final = 1_000  # lessons that a person settles at once
MOST_FOUND: Final = 200
MOST_TAKEN: Final = 200
NAME: Final = 100
MOST_COUNTED: Final = 10**9


class Search(Struct):
    """For agents: nothing of others that the person did not confirm."""

    query: Text
    directory: Directory = ""
    min_similarity: Annotated[float, Meta(ge=-1, le=1)] = SIMILAR
    top_k: Annotated[int, Meta(ge=1, le=100)] = TOP_K


class Project(Struct):
    """``directory``: "" for all projects."""

    directory: Directory = ""


class Add(Struct):
    query: Text
    reflection: Text
    reward: float
    directory: Directory = ""


class Take(Struct):
    """``episodes`` as ``export`` writes them."""

    episodes: Annotated[list[Any], Meta(min_length=1, max_length=MOST_TAKEN)]
    directory: Directory = ""


class Settle(Struct):
    ids: Annotated[list[str], Meta(min_length=1, max_length=MOST)]
    yes: bool


class Withdraw(Struct):
    session: Text


class Memory(Feature):
    """Hears what ends badly, and keeps what it teaches."""

    name: ClassVar = "memory"
    job_kinds: ClassVar = frozenset({REFLECT, TIDY, SHARE})

    def __init__(self, parts: Engine) -> None:
        super().__init__(parts)
        self._world, self._asking, self._jobs = parts.world, parts.asking, parts.jobs
        world = parts.world
        file = world.settings.store.url_file
        self.store, self._author = Episodes(world.db), author()
        self._vectors = world.embeddings
        self._shared = SharedLessons(file, world.db, self.store, self._author) if file else None
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
        if s is None or verdict.state not in {"complete", "incomplete"} or not self.on(directory, s.host):
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
            "json_valid(CAST(jobs.body AS TEXT)) AND CAST(excluded.body AS TEXT) ->> '$.episode.reward' "
            "> CAST(jobs.body AS TEXT) ->> '$.episode.reward', jobs.body, excluded.body)"
        )
        return [(keep, [(REFLECT, key, LANE, due, msgspec.json.encode(found))])]

    def judged(self, verdict: Verdict, case: Case | None, *, sent: bool) -> None:  # noqa: ARG002 - the seam
        """A task that is over is reflected on now."""
        s = self._world.sessions.peek(verdict.session) if self._world.settings.memory.enabled else None
        if s is not None and s.task == verdict.task and s.phase in FINAL_FOR_TASK:
            self._task_over(s)

    def heard(self, before: Session | None, after: Session, event: Heard) -> None:
        """A new session: what waits for a model is tried again, and lessons are exchanged with others. A new
        task, or the end of the session: the task before is reflected on now.
        """
        if not self._world.settings.memory.enabled:
            return
        if before is None:
            if isinstance(event, ev.SessionSeen) and not after.judge:
                due = self._world.clock.now_ms() + SOON_MS
                again = tables.retry(REFLECT, after.directory, WAITS, due)
                self._world.spawn(self._stored(again, *self._share(after.directory)), "memory")
        elif before.task and (
            after.task != before.task or after.deleted or isinstance(event, ev.SessionEnded)
        ):
            self._task_over(before)

    def _task_over(self, s: Session) -> None:
        """Reflect on the session's task now, if it went badly."""
        due = self._world.clock.now_ms() + SOON_MS
        self._world.spawn(self._stored(job_rows.hasten(REFLECT, identity(s.id, s.task), due)), "memory")

    async def _stored(self, *statements: Statement) -> None:
        await self._world.db.commit(*statements)
        self._jobs.wake()

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
        episodes, unproven = dict[str, int](), 0
        with suppress(Unavailable):
            episodes, unproven = self.store.counts()
        return {
            "enabled": True,
            "episodes": episodes,
            "unproven": unproven,
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
        statements = tables.lapse("jobs", _LAPSED, now_ms - KEEP_DAYS * DAY_MS, "memory.lapsed", _FOLDER)
        if self._world.settings.memory.enabled and not self._begun:
            due = self._world.clock.now_ms() + TIDY_AFTER_MS
            tidy = self._jobs.statement(TIDY, "", lane=UPKEEP, due_ms=due)
            statements += [tidy, job_rows.hasten(TIDY, "", due)]
        self._begun = True
        return statements

    async def work(self, job: Job) -> None:
        steps = {REFLECT: self._reflect, TIDY: self._tidy, SHARE: self._exchange}
        await steps[job.kind](job)

    def _share(self, directory: str) -> list[Statement]:
        """Exchange the lessons of the project that a folder is in; nothing where no store is shared."""
        return [self._jobs.statement(SHARE, directory, lane=SHARED)] if self._shared is not None else []

    async def _changed(self, directories: Iterable[str]) -> None:
        """Lessons of these projects were added or settled: others hear of it, where a store is shared."""
        if statements := [put for directory in set(directories) for put in self._share(directory)]:
            await self._stored(*statements)

    # --- routes -------------------------------------------------------------------------------------

    def routes(self) -> Sequence[Route]:
        return (
            route("GET", "search", Search, self.search),
            route("GET", "stats", Project, self.stats),
            route("POST", "add", Add, self.add),
            route("POST", "import", Take, self.take),
            route("POST", "settle", Settle, self.settle),
            route("POST", "withdraw", Withdraw, self.withdraw),
            route("POST", "log", ledger.Entry, self.log),
        )

    async def search(self, asked: Search) -> Json:
        """``episodes``, best first: those with a similarity above ``min_similarity``."""
        project = await asyncio.to_thread(project_of, asked.directory)
        vector = await self._vectors.one(asked.query)
        near: list[Episode] = []
        if vector is not None:
            near = await self.store.search(vector, [project], MOST_FOUND)
        found = [e for e in near if (e.similarity or 0) > asked.min_similarity and not refusal(e.lesson)]
        return {
            "project": project,
            "model": self._vectors.model,
            "episodes": [_row(_for_agents(e), project) for e in found[: asked.top_k]],
        }

    async def stats(self, asked: Project) -> Json:
        """How many episodes, by state; ``chooses``: whether there is a model that chooses among them."""
        projects = [await asyncio.to_thread(project_of, asked.directory)] if asked.directory else None
        calls = self._world.calls
        episodes, _ = await asyncio.to_thread(self.store.counts, projects)
        return {
            "episodes": episodes,
            "enabled": self._world.settings.memory.enabled,
            "threshold": self._world.settings.memory.threshold,
            "chooses": any(map(calls.models, calls.judges)),
            "reflexion": tables.counts(self._world.db, "memory."),
            "costs": ledger.by_name(self._world.db),
        }

    async def add(self, asked: Add) -> Json:
        """Store an episode, kept apart until a person or another session confirms it."""
        said = reflection(asked.reflection)
        if said is None:
            raise BadReply("`reflection` has no `Lesson:`")
        project = await asyncio.to_thread(project_of, asked.directory)
        if not project:
            where = asked.directory or "no folder"
            raise BadReply(f"a lesson is about a project, and {where} is none; go to one, or name it")
        query, now = asked.query.strip(), self._world.clock.now_ms()
        given = Episode(
            secrets.token_hex(16), project, query, asked.reward, said.problem, said.lesson, said.full, at=now
        )
        made = await asyncio.to_thread(checked, given)
        made = await self._add(made, asked.directory) or made
        await self._changed([project])
        return {"episode": made.as_json()}

    async def take(self, asked: Take) -> Json:
        """Store those that are not here."""
        project = await asyncio.to_thread(project_of, asked.directory)
        found: dict[str, Episode] = {}
        refused = []
        for one in asked.episodes:
            try:
                made = await asyncio.to_thread(brought, one, project)
            except BadReply as error:
                id_ = one.get("id", "") if isinstance(one, dict) else ""
                refused.append({"id": str(id_)[:40], "why": str(error)})
            else:
                found.setdefault(made.id, made)
        # what another project has is taken over under an id of its own, the same each time; not what the
        # person dismissed there
        for e in await self.store.get(list(found)):
            if e.project != project and e.state != "dismissed":
                own = sha256(f"{e.id} {project}".encode()).hexdigest()[:32]
                found[own] = replace(found.pop(e.id), id=own)
        known = {e.id for e in await self.store.get(list(found))}
        new = [made for id_, made in found.items() if id_ not in known]
        for made in new:
            await self.store.add(made)
        return {"new": len(new), "known": len(known), "refused": refused}

    async def settle(self, asked: Settle) -> Json:
        found = await self.store.get(asked.ids)
        for e in found if asked.yes else []:
            if why := refusal(e.lesson):
                raise BadReply(f"{e.id} may not be offered to agents: {why}")
        state: State = "confirmed" if asked.yes else "dismissed"
        changed = await self.store.settle(asked.ids, state)
        await self._changed(e.project for e in found)
        return {"ids": asked.ids, "changed": changed, "yes": asked.yes, "said": state}

    async def withdraw(self, asked: Withdraw) -> Json:
        """A verdict of this session was wrong: dismiss its lessons, and drop what waits of it."""
        db, session = self._world.db, asked.session
        rows = db.read("SELECT DISTINCT task, directory FROM verdicts WHERE session = ?", (session,))
        ids = [identity(session, task) for task, _ in rows]
        drop = "DELETE FROM jobs WHERE kind = ? AND key = ?"
        await db.commit((drop, [(REFLECT, id_) for id_ in ids]), durable=True)
        gone = await self.store.settle(ids, "dismissed")
        await self._changed(directory for _, directory in rows)
        return {"session": session, "withdrawn": gone}

    async def log(self, asked: ledger.Entry) -> Json:
        """Write a call that a client of the library made into the ledger."""
        counts = (asked.input, asked.output, asked.ms, asked.attempt)
        if asked.purpose not in {EVALUATION, REFLEXION} or not all(0 <= n <= MOST_COUNTED for n in counts):
            raise BadReply(f"log: a call of {EVALUATION} or {REFLEXION}, with its tokens")
        if not (asked.currency.isalpha() and asked.currency.isupper() and len(asked.currency) == 3):
            raise BadReply("log: `currency` is a code of three letters, such as EUR")
        if asked.cost is not None and not 0 <= asked.cost <= MOST_COUNTED:
            raise BadReply("log: `cost` is no amount")
        entry = replace(asked, at=self._world.clock.now_ms(), session="", account="asked")
        await self._world.db.commit(ledger.add(entry))
        return {"logged": to_builtins(entry)}

    # --- a reflexion --------------------------------------------------------------------------------

    async def _reflect(self, job: Job) -> None:
        try:
            found = msgspec.convert(job.body, type=Failure)
        except msgspec.ValidationError as e:
            self._world.log.warning("a failure that waits is not understood", job=job.key, error=str(e))
            return
        answered = job if job.cursor.startswith(SAID) else await self._ask(job, found)
        if answered is not None:
            await self._keep_lesson(answered, found)

    async def _ask(self, job: Job, found: Failure) -> Job | None:
        """The job with the model's answer, stored. None when there is none (now)."""
        world, session = self._world, found.episode.session
        await world.projects.read(found.directory)
        s = world.sessions.get(session) or Session(id=session, host=found.host, directory=found.directory)
        off = s.off or s.judge or s.parent or world.sessions.is_off(found.directory)
        answers = "SELECT count(*) FROM ledger WHERE purpose = ? AND session = ? AND outcome = 'ok'"
        had = world.db.read(answers, (REFLEXION, session))[0][0]
        if off or not self.on(found.directory, found.host) or had >= PER_SESSION:
            why = f"its session had {PER_SESSION}" if had >= PER_SESSION else "switched off"
            await self._over(job, found, "skipped", why)
            return None
        answer = await self._asking.ask(found.question, s, FLOW_S)
        before, self._silent = self._degraded, "" if answer.replies or answer.bad else answer.why
        log = world.log.bind(session=session, fallback_mode_active=self._degraded)
        if self._degraded and not before:
            log.warning("reflexion is left out", reason=HAIKU_DOWN, error=answer.why)
        if before and not self._degraded:
            log.info("reflexion works again")
        if answer.reply is not None:
            return await self._jobs.keep(job, cursor=f"{SAID}{answer.reply}")
        if answer.bad:
            await self._over(job, found, "failed", answer.why)
            return None
        world.log.info("a reflexion waits", session=session, why=answer.why)
        await self._jobs.keep(job, cursor=WAITS, due_ms=world.clock.now_ms() + LATER_MS)
        return None

    async def _keep_lesson(self, job: Job, found: Failure) -> None:
        """Store the episode of the answer in the cursor, and what it confirms."""
        project = await asyncio.to_thread(project_of, found.directory)
        said = reflection(job.cursor.removeprefix(SAID))
        if said is None or not project:
            await self._over(job, found, "refused", "it is no project" if said else "it has no lesson")
            return
        try:
            made = checked(found.with_lesson(said, project, self._author))
        except BadReply as e:
            await self._over(job, found, "refused", str(e))
            return
        try:
            new = await self._add(made, found.directory, made.at) is not None
            confirmed = await self._confirm(made) if new else 0
        except Unavailable:
            await self._jobs.keep(job, cursor=job.cursor, due_ms=self._world.clock.now_ms() + LATER_MS)
            return
        self._world.log.info(
            "episode", id=made.id, session=made.session, reward=made.reward, new=new, confirmed=confirmed
        )
        stored = tables.count(project, "memory.stored", int(new))
        await self._jobs.finish(job, stored, *self._share(found.directory))

    async def _add(self, made: Episode, directory: str, before: int = 0) -> Episode | None:
        """Store an episode, with its cites in that folder, older than ``before``, and its task's vector. None
        when it is known.
        """
        made = replace(made, cites=await asyncio.to_thread(cites, made.lesson, directory, before))
        return made if await self.store.add(made, await self._vectors.one(made.query)) else None

    async def _confirm(self, made: Episode) -> int:
        """Earlier episodes of the project that this one shows to be right: the same went wrong again."""
        others = await self.store.page([made.project], state="quarantined", limit=LOOKED_AT)
        return await self.store.settle([e.id for e in others if confirms(made, e)], "confirmed")

    async def _over(self, job: Job, found: Failure, what: str, why: str) -> None:
        self._world.log.info("no lesson", session=found.episode.session, what=what, why=why)
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


def _row(e: Episode, project: str) -> Json:
    """The row of the requirements, ``query``, ``reward``, ``reflection``, ``similarity``, and more."""
    names = ("query", "reward", "reflection", "id", "problem", "lesson", "state", "project", "author", "at")
    similarity = None if e.similarity is None else round(e.similarity, 4)
    return {n: getattr(e, n) for n in names} | {"similarity": similarity, "shows": may_show(e, project)}


def _for_agents(e: Episode) -> Episode:
    """Of the texts only those that were looked at, without characters that nobody sees."""
    problem = "" if refusal(e.problem) else e.problem
    said = f"Problem: {problem}\nLesson: {e.lesson}" if problem else f"Lesson: {e.lesson}"
    query, author = _visible(e.query[:LONGEST]), _visible(e.author[:NAME])
    return replace(e, query=query, problem=problem, reflection=said, author=author)


def _visible(text: str) -> str:
    return "".join(c for c in " ".join(text.split()) if not has_hidden(c))


def author() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a process without a user in the machine's list
        return ""
