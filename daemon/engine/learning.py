"""Looks back on each stretch of a session that was judged here, in the background.

Works only on what was judged and waits in the store: it reads no host, prompts nobody and makes no session
busy. What is asked and what follows is in ``lookback``; which cases are used up is stored with it. Without a
model, or over the limit on spending, the cases wait, and lapse after seven days.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import msgspec

from ..core.learned import Origin
from ..core.session import Session
from ..learning.playbook.asking import Templates
from ..learning.playbook.learn import Change, Confirmed, Judged, Stretch, Tag, ended, stretch_of
from ..store import jobs as job_rows
from ..store import learning
from .lookback import WAITS, Look, Silent

if TYPE_CHECKING:
    from ..core.verdict import Verdict
    from ..judge.case import Case
    from ..store.db import Statement
    from ..store.jobs import Job
    from ..store.learning import Text, Write
    from .jobs import Jobs
    from .lookback import Decided, Lookback
    from .playbooks import Playbooks
    from .world import World

LEARN: Final = "playbook.learn"
LANE: Final = "learning"
IDLE_MS: Final = 3_600_000  # a session that is silent for so long is looked back on
SOON_MS: Final = 1_000
LATER_MS: Final = 3_600_000  # no model, no money: the next try
RETRY_MS: Final = 30_000  # after a session began in the project: its host may lend a model again
_encode = msgspec.json.Encoder().encode


class Learning:
    """The background work of the playbook."""

    def __init__(self, world: World, jobs: Jobs, books: Playbooks, lookback: Lookback) -> None:
        self._world = world
        self._jobs = jobs
        self._books = books
        self._lookback = lookback
        self.over_limit = False  # when it last asked

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
        if len(body) > learning.CASE_BYTES:
            return [learning.count(directory, "too_large")]
        now = self._world.clock.now_ms()
        return [
            learning.keep_case(verdict.session, verdict.turn, directory, now, body),
            job_rows.postpone(
                LEARN, verdict.session, LANE, now + IDLE_MS, {"directory": directory, "host": host}
            ),
        ]

    def soon(self, session: str) -> Statement:
        """The session is over, or its context was compacted: look back as soon as its last turn is judged."""
        return job_rows.hasten(LEARN, session, self._world.clock.now_ms() + SOON_MS)

    def retry(self, directory: str) -> Statement:
        """A session began in this folder: what waits there for a model is tried again."""
        return learning.retry(LEARN, directory, WAITS, self._world.clock.now_ms() + RETRY_MS)

    async def settle(self, text: Text, *, yes: bool, word: str = "a person's word") -> None:
        """A person says whether a text that is kept apart counts. ``word``: what proves it, as its origin is
        told. Raises ``Unavailable``.

        A yes is written by a job, as what a session confirmed is.
        """
        now, o = self._world.clock.now_ms(), text.origin
        origin = Origin(o.by, o.session, o.turn, o.at, o.why, word)
        if not yes:
            await self._world.db.commit(learning.settle(text, "dismissed", now, origin), durable=True)
            return
        await asyncio.to_thread(self._books.approve, text.directory, text.text)
        change = Change(confirmed=(Confirmed(text.section, text.text, text.replaces),))
        key = f"approved {text.id}"
        await self._world.db.commit(
            learning.settle(text, "confirmed", now, origin),
            learning.begin_write(text.directory, key, now, _encode(change)),
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
        tags, texts = learning.tags_of(db, session), learning.taught(db, session)
        statements = learning.forget(session)
        for project in dict.fromkeys(directory for directory, *_ in tags):
            change = Change(taken_back=tuple(Tag(n, t) for d, n, t in tags if d == project))
            key = f"disputed {session} {now} {project}"
            statements += [
                learning.begin_write(project, key, now, _encode(change)),
                self._jobs.statement(LEARN, key, {"directory": project}, lane=LANE),
            ]
        await db.commit(*statements, durable=True)
        self._jobs.wake()
        return len(tags), texts

    async def work(self, job: Job) -> None:
        """Do the next steps of a look back. Raises ``Unavailable`` when the database can't be written."""
        async with self._lookback.alone:
            write = learning.unwritten(self._world.db, job.key)
            if write is None:
                decided = await self._decide(job)
                if decided is None:
                    return
                job, write = decided
            why = await self._lookback.write(write)
            await (self._wait(job, why) if why else self._done(job, learning.end_write(write)))

    async def _decide(self, job: Job) -> tuple[Job, Write] | None:
        """Ask, and store what follows. None when nothing is to be written (now)."""
        world, stretch = self._world, self._stretch(job.key)
        if stretch is None:
            await self._done(job)
            return None
        s = world.sessions.get(job.key) or Session(
            id=job.key, host=str(job.body.get("host", "")), directory=stretch.directory
        )
        project = await asyncio.to_thread(self._books.project, stretch.directory)
        await world.projects.read(stretch.directory)
        off = not project or s.off or s.judge or s.parent or world.sessions.is_off(stretch.directory)
        if off or not self.on(stretch.directory, s.host) or not stretch.teaches:
            why = "switched off" if stretch.teaches else "too little happened"
            world.log.info("not looked back", session=job.key, why=why)
            dropped = learning.drop_cases(job.key, stretch.turns)
            await self._done(job, dropped, learning.count(project, "skipped", len(stretch.turns)))
            return None
        view = await asyncio.to_thread(self._books.view, project)
        if view.problem:
            await self._wait(job, view.problem)
            return None
        texts = await asyncio.to_thread(world.prompt_texts, stretch.directory)
        look = Look(s, stretch, project, view, Templates.of(texts))
        return await self._store(job, look, await self._lookback.decide(job, look))

    async def _store(self, job: Job, look: Look, found: Decided | Silent) -> tuple[Job, Write] | None:
        """Without an answer the cases wait for a model or, when it could not be read, are given up."""
        self.over_limit = isinstance(found, Silent) and found.over
        if isinstance(found, Silent) and not found.bad:
            await self._wait(found.job, found.why)
            return None
        if isinstance(found, Silent):
            turns = look.stretch.turns
            dropped = learning.drop_cases(job.key, turns)
            await self._done(found.job, dropped, learning.count(look.project, "failed", len(turns)))
            return None
        dropped = learning.drop_cases(job.key, found.turns)
        if not found.change:
            await self._done(found.job, dropped, *found.statements)
            return None
        return await self._lookback.keep(found, dropped)

    async def _wait(self, job: Job, why: str) -> None:
        """Try again in an hour, or when a session begins in the project. The cases lapse after seven days."""
        self._world.log.info("learning waits", session=job.key, why=why)
        due = self._world.clock.now_ms() + LATER_MS
        cursor = f"{WAITS}{job.cursor.removeprefix(WAITS)}"
        await self._jobs.keep(job, cursor=cursor, due_ms=due)

    async def _done(self, job: Job, *statements: Statement) -> None:
        """The stretch is over. Turns that were judged meanwhile begin the next one."""
        due = self._world.clock.now_ms() + IDLE_MS
        again = learning.look_again(LEARN, job.key, LANE, due, _encode(job.body))
        await self._jobs.finish(job, *statements, again)

    def _stretch(self, session: str) -> Stretch | None:
        """What waits of this session. A case that this version can't read is left out, and lapses."""
        found = []
        for _, _, body in learning.cases(self._world.db, session):
            try:
                found.append(msgspec.json.decode(body, type=Judged))
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as e:
                self._world.log.warning("a case that waits is not understood", session=session, error=str(e))
        return stretch_of(found)


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
