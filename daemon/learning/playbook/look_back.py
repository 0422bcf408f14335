"""Looks back on each stretch of a session that was judged here, in the background: a reflector, a curator,
and what follows from both for a project's playbook.

Works only on what was judged and waits in the store: it reads no host, prompts nobody and makes no session
busy. ``Bootstrap`` has sessions of the past looked back on by the same steps, one at a time (``alone``).
Each step is stored before the next one: the reflector's answer as the job's cursor; then, in one transaction,
what is to change and which texts are kept apart (``decide``); then the file (``put``). So kill -9 between
any two of them loses nothing and does nothing twice. Whatever fails leaves the playbook as it was. Without a
model, or over the limit on spending, the cases wait, and lapse after seven days.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from operator import mul
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ...core.errors import ReflectdError, Unavailable, UserError
from ...core.guards import Limits, Skip
from ...core.session import Session
from ...engine.calls import OVER_LIMIT
from ...learning import tables
from ...store import injections
from ...store import jobs as job_rows
from ...store.jobs import Job
from ..texts import Origin, refusal
from .curator import CURATOR_TOKENS, curate, curation, shown
from .learn import Change, Confirmed, Judged, Stretch, Tag, counted, ended, proposed, stretch_of  # fmt: skip
from .playbooks import View
from .points import apply_tags, copy, each
from .reflector import Question, of_task, reflect

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ...core.verdict import Verdict
    from ...engine.asking import Asking
    from ...engine.jobs import Jobs
    from ...engine.world import World
    from ...judge.case import Case
    from ...learning.tables import Text
    from ...log import Logger
    from ...store.db import Statement
    from ..embed.vectors import Row, SharedEmbedder
    from .playbooks import Playbooks
    from .points import Point
    from .reflector import Flow, Outcome

LEARN: Final = "playbook.learn"
LANE: Final = "learning"
IDLE_MS: Final = 3_600_000  # a session that is silent for so long is looked back on
SOON_MS: Final = 1_000
LATER_MS: Final = 3_600_000  # no model, no money: the next try
RETRY_MS: Final = 30_000  # after a session began in the project: its host may lend a model again
WAITS: Final = "waits:"
SIMILAR: Final = 0.85  # how close the meanings of two points must be to be shown as a pair
PAST: Final = "past"
WHYS: Final = {"approved": "a person approved it", "disputed": "a person disputed the verdict behind it"}
FLOW_S: Final = 120.0
EMBED_S: Final = 120.0
WAITING_SHOWN: Final = 20  # texts that are kept apart, in one question
_ROUNDING: Final = 1e-9
_encode = msgspec.json.Encoder().encode


class _Answered(msgspec.Struct):
    """What the reflector said, as the job's cursor keeps it."""

    turns: list[str]
    output: dict[str, Any]
    confirmed: list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Look:
    """What is looked back on, and what is known about it. ``limits``: given when a person asked for it; then
    it is paid from that account, and only sessions' own judges that need no session are asked. ``texts``: the
    prompts in force, by name.
    """

    session: Session
    stretch: Stretch
    project: str
    view: View
    texts: Mapping[str, str]
    limits: Limits | None = None


@dataclass(frozen=True, slots=True)
class Decided:
    """What follows from both answers; it is stored, and reaches the file by ``put``."""

    job: Job
    change: Change


@dataclass(frozen=True, slots=True)
class Silent:
    """There is no answer. ``bad``: one came and was paid for, but could not be used. ``no``: the limit on
    spending that forbade the call, when a person asked for it.
    """

    job: Job
    why: str
    bad: bool
    no: Skip | None = None


class Lookback:
    """One for the daemon."""

    def __init__(self, world: World, asking: Asking, jobs: Jobs, books: Playbooks) -> None:
        self._world = world
        self._asking = asking
        self._jobs = jobs
        self._books = books
        self.alone = asyncio.Lock()
        self.over_limit = False  # when it last asked
        self.waits = ""  # why, when it last had to wait

    # --- sessions that were judged here ---------------------------------------------------------------------

    def gives(self, directory: str) -> bool:
        """Whether sessions in this project are given points, whoever judges: that needs no model."""
        if not self._world.settings.playbook.enabled:  # a project may only switch it off
            return False
        settings = self._world.project(directory)
        return settings.enabled and settings.playbook.enabled

    def on(self, directory: str, host: str) -> bool:
        """Whether sessions of this host teach anything about this project."""
        return self.gives(directory) and self.asks(host)

    def asks(self, host: str) -> bool:
        """Whether there is a model to ask: the rules can't learn."""
        return self._world.calls.models(host)

    def keep(self, verdict: Verdict, case: Case, directory: str) -> list[Statement]:
        """What is stored with a verdict so that its session can be looked back on: the case, and the job that
        is due when the session was silent for an hour.
        """
        s = self._world.sessions.get(verdict.session)
        host = s.host if s is not None else ""
        body = _encode(_judged(verdict, case, directory, host))
        if len(body) > tables.CASE_BYTES:
            return [tables.count(directory, "too_large")]
        now = self._world.clock.now_ms()
        return [
            tables.keep_case(verdict.session, verdict.turn, directory, now, body),
            job_rows.postpone(
                LEARN, verdict.session, LANE, now + IDLE_MS, {"directory": directory, "host": host}
            ),
        ]

    def soon(self, session: str) -> Statement:
        """The session is over, or its context was compacted: look back as soon as its last turn is judged."""
        return job_rows.hasten(LEARN, session, self._world.clock.now_ms() + SOON_MS)

    def retry(self, directory: str) -> Statement:
        """A session began in this folder: what waits there for a model is tried again."""
        return tables.retry(LEARN, directory, WAITS, self._world.clock.now_ms() + RETRY_MS)

    async def settle(self, text: Text, *, yes: bool, word: str = "a person's word") -> None:
        """A person says whether a text that is kept apart counts. ``word``: what proves it, as its origin is
        told. Raises ``Unavailable``.

        A yes is written by a job, as what a session confirmed is.
        """
        now, origin = self._world.clock.now_ms(), replace(text.origin, proof=word, confirmed_in="")
        if not yes:
            await self._world.db.commit(tables.settle(text, "dismissed", now, origin), durable=True)
            return
        await asyncio.to_thread(self._books.approve, text.directory, text.text)
        change = Change(confirmed=(Confirmed(text.section, text.text, text.replaces),))
        key = f"approved {text.id}"
        await self._world.db.commit(
            tables.settle(text, "confirmed", now, origin),
            tables.begin_write(text.directory, key, now, _encode(change)),
            self._jobs.statement(LEARN, key, {"directory": text.directory}, lane=LANE),
            durable=True,
        )
        self._jobs.wake()

    async def forget(self, session: str) -> tuple[int, int]:
        """A person says that a verdict of this session was wrong: what it taught is taken back. Returns how
        many counts, and how many texts that were kept apart. Raises ``Unavailable``.

        What it confirmed stays: that rests on a row or on the person's words, not on the verdict.
        """
        db, now = self._world.db, self._world.clock.now_ms()
        tags, texts = tables.tags_of(db, session), tables.taught(db, session)
        statements = tables.forget(session)
        for project in dict.fromkeys(directory for directory, *_ in tags):
            change = Change(taken_back=tuple(Tag(n, t) for d, n, t in tags if d == project))
            key = f"disputed {session} {now} {project}"
            statements += [
                tables.begin_write(project, key, now, _encode(change)),
                self._jobs.statement(LEARN, key, {"directory": project}, lane=LANE),
            ]
        await db.commit(*statements, durable=True)
        self._jobs.wake()
        return len(tags), texts

    async def work(self, job: Job) -> None:
        """Do the next steps of a look back. Raises ``Unavailable`` when the database can't be written."""
        async with self.alone:
            if tables.unwritten(self._world.db, job.key) is None:
                found = await self._decide(job)
                if found is None:
                    return
                job = found.job
            if why := await self.put(job):
                await self._wait(job, why)

    async def _decide(self, job: Job) -> Decided | None:
        """Ask, and store what follows. None when nothing is to be written (now)."""
        world, stretch = self._world, self._stretch(job.key)
        if stretch is None:
            await self._done(job)
            return None
        s = world.sessions.get(job.key) or Session(
            id=job.key, host=str(job.body.get("host", "")), directory=stretch.directory
        )
        dropped = tables.drop_cases(job.key, stretch.turns)
        project = await asyncio.to_thread(self._books.project, stretch.directory)
        await world.projects.read(stretch.directory)
        off = not project or s.off or s.judge or s.parent or world.sessions.is_off(stretch.directory)
        if off or not self.on(stretch.directory, s.host) or not stretch.teaches:
            why = "switched off" if stretch.teaches else "too little happened"
            world.log.info("not looked back", session=job.key, why=why)
            await self._done(job, dropped, tables.count(project, "skipped", len(stretch.turns)))
            return None
        view = await asyncio.to_thread(self._books.view, project)
        if view.problem:
            await self._wait(job, view.problem)
            return None
        texts = await asyncio.to_thread(world.prompt_texts, stretch.directory)
        found = await self.decide(job, Look(s, stretch, project, view, texts))
        self.over_limit = isinstance(found, Silent) and OVER_LIMIT in found.why
        self.waits = ""
        if isinstance(found, Decided):
            return found
        if found.bad:
            await self._done(found.job, dropped, tables.count(project, "failed", len(stretch.turns)))
        else:
            await self._wait(found.job, found.why)
        return None

    async def _wait(self, job: Job, why: str) -> None:
        """Try again in an hour, or when a session begins in the project. The cases lapse after seven days."""
        self._world.log.info("learning waits", session=job.key, why=why)
        self.waits = why
        due = self._world.clock.now_ms() + LATER_MS
        await self._jobs.keep(job, cursor=f"{WAITS}{job.cursor.removeprefix(WAITS)}", due_ms=due)

    async def _done(self, job: Job, *statements: Statement) -> None:
        """The stretch is over. Turns that were judged meanwhile begin the next one."""
        due = self._world.clock.now_ms() + IDLE_MS
        again = tables.look_again(LEARN, job.key, LANE, due, _encode(job.body))
        await self._jobs.finish(job, *statements, again)

    def _stretch(self, session: str) -> Stretch | None:
        """What waits of this session. A case that this version can't read is left out, and lapses."""
        found = []
        for _, _, body in tables.cases(self._world.db, session):
            try:
                found.append(msgspec.json.decode(body, type=Judged))
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as e:
                self._world.log.warning("a case that waits is not understood", session=session, error=str(e))
        return stretch_of(found)

    # --- one look back --------------------------------------------------------------------------------------

    async def decide(self, job: Job, look: Look) -> Decided | Silent:
        """Ask both, and store what follows in one transaction; of an answer that failed nothing is stored.
        Raises ``Unavailable``.
        """
        world, s, stretch, project = self._world, look.session, look.stretch, look.project
        names = {g.name for g in injections.given(world.db, s.id) if g.kind == "point"}
        given = [p for _, p in each(look.view.known) if p["name"] in names]
        blocked = await asyncio.to_thread(self._books.blocked, project)
        waiting = {
            f"new-{t.id}": t
            for t in tables.texts(world.db, project)[-WAITING_SHOWN:]
            if t.session != s.id and not refusal(t.text) and not blocked(t.text)
        }
        cited, asked = [name for name in stretch.cited if name in names], look.limits is not None
        answered = _answered(job.cursor)
        question = Question(world.nonce(), look.texts["curator"], s.id, stretch.model, asked=asked)
        if answered is None:
            case = of_task(
                replace(question, template=look.texts["reflector"]),
                requests=stretch.requests,
                final=stretch.final,
                evidence=stretch.evidence,
                ended=stretch.ended,
                given=given,
                cited=cited,
                quarantined=[
                    {"name": name, "text": t.text, "helpful": 0, "harmful": 0} for name, t in waiting.items()
                ],
            )
            outcome = await self._run(job, reflect(case), look)
            if isinstance(outcome, Silent):
                return outcome
            confirmed = [(c.name, c.cites) for c in outcome.confirmed]
            answered = _Answered(list(stretch.turns), outcome.output, confirmed)
            job = await self._jobs.keep(job, cursor=_encode(answered).decode())
        before = tables.tagged(world.db, project, s.id)
        tags = counted(answered.output.get("bullet_tags"), {p["name"] for p in given}, before)
        seen = copy(look.view.known)
        apply_tags(seen, [asdict(t) for t in tags])
        curated = partial(
            curation, replace(question, nonce=world.nonce()), answered.output, seen, largest=CURATOR_TOKENS
        )
        points = shown(seen, curated().points)
        alike = await similar(points, look.view.approved, world.embedder, SIMILAR, world.log)
        outcome = await self._run(job, curate(curated(alike=alike)), look)
        if isinstance(outcome, Silent):
            return outcome
        wanted = proposed(look.view.known, outcome.output["operations"], kept=look.view.approved)
        new = [n for n in wanted.new if not blocked(n.text)]
        found = [(waiting[name], cites) for name, cites in answered.confirmed if name in waiting]
        change = Change(
            tuple(t for t in tags if t.tag != "neutral"),
            tuple(Confirmed(t.section, t.text, t.replaces) for t, _ in found),
            wanted.removed,
            joined=wanted.joined,
        )
        now, turn = world.clock.now_ms(), answered.turns[-1]
        statements = [
            tables.drop_cases(job.key, answered.turns),
            *(tables.tag(project, t.name, s.id, t.tag, now, t.why) for t in change.tags),
            *(
                tables.quarantine(
                    project,
                    n.section,
                    n.text,
                    s.id,
                    now,
                    Origin("curator", s.id, turn, now, n.why),
                    n.replaces,
                )
                for n in new
            ),
            *(
                tables.settle(
                    text, "confirmed", now, replace(text.origin, proof=cites[:300], confirmed_in=s.id)
                )
                for text, cites in found
            ),
            injections.cite(s.id, cited),
            tables.look_back(project, s.id, now),
            tables.count(project, "stretches"),
        ]
        if change:
            statements.append(tables.begin_write(project, job.key, now, _encode(change)))
        world.log.info(
            "looked back",
            session=s.id,
            asked=asked,
            tags={t.name: t.tag for t in tags},
            new=len(new),
            confirmed=len(found),
            removed=list(wanted.removed),
            joined=[j.names for j in wanted.joined],
            skipped=list(wanted.skipped)[:10],
        )
        return Decided(await self._jobs.keep(job, *statements, cursor="write", due_ms=now), change)

    async def put(self, job: Job) -> str:
        """What was decided reaches the file, once, and the job is done. Why it did not (yet); "" when it is
        there.
        """
        write = tables.unwritten(self._world.db, job.key)
        if write is None:
            await self._done(job)
            return ""
        change = change_of(write.body)
        if change is None:
            self._world.log.warning("a change of a playbook is not understood", session=write.session)
        else:
            what, _, session = write.session.partition(" ")
            why = f"what past session {session} showed" if what == PAST else f"what session {what} showed"
            try:
                applied = await asyncio.to_thread(
                    self._books.write, write.directory, change, write.id, WHYS.get(what, why)
                )
            except (Unavailable, UserError) as e:
                return str(e)
            if applied is not None:
                self._world.log.info(
                    "playbook",
                    directory=write.directory,
                    pruned=list(applied.pruned),
                    joined=list(applied.joined),
                    skipped=list(applied.skipped)[:10],
                )
        await self._done(job, tables.end_write(write))
        return ""

    async def _run(self, job: Job, flow: Flow, look: Look) -> Outcome | Silent:
        forbidden: list[Skip] = []
        told = forbidden.append if look.limits is not None else None
        outcome = await self._asking.run(flow, look.session, FLOW_S, look.limits, told)
        if not outcome.failed:
            return outcome
        bad = bool(outcome.bad or outcome.replies)
        return Silent(job, outcome.why, bad, forbidden[-1] if forbidden else None)


# --- points that may say the same --------------------------------------------------------------------------


async def similar(
    points: Sequence[Point], kept: Collection[str], embedder: SharedEmbedder, least: float, log: Logger
) -> list[tuple[str, str]]:
    """The names of two points each whose cosine is at least ``least``, for the curator to decide. Two that a
    person approved (``kept``) are no pair: neither would go. Without a model for embeddings, and when it
    fails or takes too long, there are none. Whatever blocks is done in a thread.
    """
    if len(points) < 2:
        return []
    try:
        async with asyncio.timeout(EMBED_S):
            model = await embedder.get()
            if model is None:
                return []
            rows = (await model.embed([p["text"] for p in points])).rows
    except (ReflectdError, ValueError, TimeoutError) as e:
        log.warning("meanings are not compared", error=str(e) or f"no answer in {EMBED_S:g} s")
        return []
    names = [p["name"] for p in points]
    pairs = [(names[a], names[b]) for a, b in await asyncio.to_thread(near, rows, least)]
    return [(a, b) for a, b in pairs if not (a in kept and b in kept)]


def near(rows: Sequence[Row], threshold: float) -> tuple[tuple[int, int], ...]:
    """The pairs of vectors whose cosine is at least ``threshold``, the lower index first. The vectors have
    length 1 and come from one model. A curator is shown some two hundred points at most.
    """
    least = threshold - _ROUNDING
    return tuple(
        (a, b) for b, row in enumerate(rows) for a in range(b) if sum(map(mul, rows[a], row)) >= least
    )


def change_of(body: bytes) -> Change | None:
    """What is to change. None when this version can't read it."""
    try:
        return msgspec.json.decode(body, type=Change)
    except msgspec.MsgspecError:
        return None


def _answered(cursor: str) -> _Answered | None:
    cursor = cursor.removeprefix(WAITS)
    try:
        return msgspec.json.decode(cursor, type=_Answered) if cursor.startswith("{") else None
    except msgspec.MsgspecError:
        return None


def _judged(verdict: Verdict, case: Case, directory: str, host: str) -> Judged:
    return Judged(
        session=verdict.session,
        task=verdict.task,
        turn=verdict.turn,
        at=verdict.at,
        directory=directory,
        host=host,
        ended=ended(verdict, case.rounds),
        requests=case.requests,
        final=case.final,
        evidence=case.evidence,
        reward=verdict.reward,
        cited=case.cited,
        model=case.model,
    )
