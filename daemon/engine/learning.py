"""Looks back on a stretch of a session: reflector, curator, and what follows from both for the playbook.

Works only on what was judged and waits in the store: it reads no host, prompts nobody and makes no session
busy. Each step is stored before the next one: the reflector's answer as the job's cursor; then, in one
transaction, what is to change, which cases are used up, and which texts are kept apart; then the file. So
kill -9 between any two of them loses nothing and does nothing twice. Whatever fails leaves the playbook as
it was: without a model, or over the limit on spending, the cases wait, and lapse after seven days.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ..core.errors import Unavailable, UserError
from ..core.learned import Origin, refusal
from ..core.session import Session
from ..playbook.case import CURATOR_TOKENS, Templates, curation, of_task
from ..playbook.flow import curate, reflect
from ..playbook.learn import Change, Confirmed, Tag, counted, proposed
from ..playbook.points import copy, each
from ..playbook.scoring import apply_tags
from ..playbook.stretch import Judged, Stretch, stretch_of
from ..store import jobs as job_rows
from ..store import learning
from .calls import OVER_LIMIT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.verdict import Verdict
    from ..judge.case import Case
    from ..playbook.flow import Flow, Outcome
    from ..store.db import Statement
    from ..store.jobs import Job
    from ..store.learning import Text, Write
    from .asking import Asking
    from .jobs import Jobs
    from .playbooks import Playbooks, View
    from .world import World

LEARN: Final = "playbook.learn"
LANE: Final = "learning"
IDLE_MS: Final = 3_600_000  # a session that is silent for so long is looked back on
SOON_MS: Final = 1_000
LATER_MS: Final = 3_600_000  # no model, no money: the next try
RETRY_MS: Final = 30_000  # after a session began in the project: its host may lend a model again
WAITS: Final = "waits:"
WHYS: Final = {"approved": "a person approved it", "disputed": "a person disputed the verdict behind it"}
FLOW_S: Final = 120.0
WAITING_SHOWN: Final = 20  # texts that are kept apart, in one question
MISSING_SHOWN: Final = 5
_encode = msgspec.json.Encoder().encode


class _Answered(msgspec.Struct):
    """What the reflector said, as the job's cursor keeps it."""

    turns: list[str]
    output: dict[str, Any]
    confirmed: list[tuple[str, str]]


class Learning:
    """The background work of the playbook."""

    def __init__(self, world: World, asking: Asking, jobs: Jobs, books: Playbooks) -> None:
        self._world = world
        self._asking = asking
        self._jobs = jobs
        self._books = books
        self.over_limit = False  # when it last asked

    def on(self, directory: str, host: str) -> bool:
        """Whether sessions of this host teach anything about this project."""
        if not self._world.settings.playbook.enabled:  # a project may only switch it off
            return False
        settings = self._world.project(directory)
        return settings.enabled and settings.playbook.enabled and self.asks(host)

    def asks(self, host: str) -> bool:
        """Whether there is a model to ask: the rules can't learn."""
        providers = self._world.calls.judges.get(host)
        return providers is None or any(name != "offline" for name in providers)

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

    async def settle(self, text: Text, *, yes: bool) -> None:
        """A person says whether a text that is kept apart counts. Raises ``Unavailable``.

        A yes is written by a job, as what a session confirmed is.
        """
        now, o = self._world.clock.now_ms(), text.origin
        origin = Origin(o.by, o.session, o.turn, o.at, o.why, "a person's word")
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
        write = learning.unwritten(self._world.db, job.key)
        if write is None:
            decided = await self._decide(job)
            if decided is None:
                return
            job, write = decided
        await self._write(job, write)

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
        return await self._ask(job, s, stretch, project, view, Templates.of(texts))

    async def _ask(
        self, job: Job, s: Session, stretch: Stretch, project: str, view: View, templates: Templates
    ) -> tuple[Job, Write] | None:
        world = self._world
        names = {g.name for g in learning.given(world.db, s.id) if g.kind == "point"}
        given = [p for _, p in each(view.known) if p["name"] in names]
        blocked = await asyncio.to_thread(self._books.blocked, project)
        waiting = {
            f"new-{t.id}": t
            for t in learning.texts(world.db, project)[-WAITING_SHOWN:]
            if t.session != s.id and not refusal(t.text) and not blocked(t.text)
        }
        answered = _answered(job.cursor)
        if answered is None:
            case = of_task(
                session=s.id,
                nonce=world.nonce(),
                template=templates.reflector,
                requests=stretch.requests,
                final=stretch.final,
                evidence=stretch.evidence,
                ended=stretch.ended,
                given=given,
                cited=[name for name in stretch.cited if name in names],
                quarantined=[
                    {"name": name, "text": t.text, "helpful": 0, "harmful": 0} for name, t in waiting.items()
                ],
                model=stretch.model,
            )
            outcome = await self._run(job, reflect(case), s, stretch.turns, project)
            if outcome is None:
                return None
            confirmed = [(c.name, c.cites) for c in outcome.confirmed]
            answered = _Answered(list(stretch.turns), outcome.output, confirmed)
            job = await self._jobs.keep(job, cursor=_encode(answered).decode())
        tags = counted(
            answered.output.get("bullet_tags"),
            {p["name"] for p in given},
            learning.tagged(world.db, project, s.id),
        )
        seen = copy(view.known)
        apply_tags(seen, [{"name": t.name, "tag": t.tag} for t in tags])
        outcome = await self._run(
            job,
            curate(
                curation(
                    answered.output,
                    seen,
                    nonce=world.nonce(),
                    template=templates.curator,
                    session=s.id,
                    model=stretch.model,
                    largest=CURATOR_TOKENS,
                )
            ),
            s,
            answered.turns,
            project,
        )
        if outcome is None:
            return None
        new, removed, skipped = proposed(view.known, outcome.output["operations"], kept=view.approved)
        new = tuple(n for n in new if not blocked(n.text))
        found = [(waiting[name], cites) for name, cites in answered.confirmed if name in waiting]
        change = Change(
            tuple(t for t in tags if t.tag != "neutral"),
            tuple(Confirmed(t.section, t.text, t.replaces) for t, _ in found),
            removed,
        )
        now, turn = world.clock.now_ms(), answered.turns[-1]
        statements = [
            learning.drop_cases(s.id, answered.turns),
            *(learning.tag(project, t.name, s.id, t.tag, now, t.why) for t in change.tags),
            *(
                learning.quarantine(
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
            *(self._confirm(text, s.id, cites, now) for text, cites in found),
            learning.cite(s.id, [name for name in stretch.cited if name in names]),
            learning.count(project, "stretches"),
        ]
        world.log.info(
            "looked back",
            session=s.id,
            tags={t.name: t.tag for t in tags},
            new=len(new),
            confirmed=len(found),
            removed=list(removed),
            skipped=list(skipped)[:10],
        )
        if not change:
            await self._done(job, *statements)
            return None
        body = _encode(change)
        job = await self._jobs.keep(
            job, *statements, learning.begin_write(project, s.id, now, body), cursor="write"
        )
        write = learning.unwritten(world.db, s.id)
        return (job, write) if write is not None else None

    def _confirm(self, text: Text, session: str, cites: str, now: int) -> Statement:
        o = text.origin
        origin = Origin(o.by, o.session, o.turn, o.at, o.why, cites[:300], session)
        return learning.settle(text, "confirmed", now, origin)

    async def _run(
        self, job: Job, flow: Flow, s: Session, turns: Sequence[str], project: str
    ) -> Outcome | None:
        """The flow's answer. None when there is none: the cases wait for a model, or, when its reply could
        not be read, are given up.
        """
        outcome = await self._asking.run(flow, s, FLOW_S)
        self.over_limit = OVER_LIMIT in outcome.why
        if not outcome.failed:
            return outcome
        if outcome.bad or outcome.replies:
            dropped = learning.drop_cases(job.key, turns)
            await self._done(job, dropped, learning.count(project, "failed", len(turns)))
        else:
            await self._wait(job, outcome.why)
        return None

    async def _write(self, job: Job, write: Write) -> None:
        """The decided change reaches the file."""
        try:
            change = msgspec.json.decode(write.body, type=Change)
        except msgspec.MsgspecError as e:
            self._world.log.warning("a change of a playbook is not understood", error=str(e))
            await self._done(job, learning.end_write(write))
            return
        why = WHYS.get(write.session.partition(" ")[0], f"what session {write.session} showed")
        try:
            applied = await asyncio.to_thread(self._books.write, write.directory, change, write.id, why)
        except (Unavailable, UserError) as e:
            await self._wait(job, str(e))
            return
        await self._done(job, learning.end_write(write))
        if applied is not None:
            self._world.log.info(
                "playbook",
                directory=write.directory,
                pruned=list(applied.pruned),
                joined=list(applied.joined),
                skipped=list(applied.skipped)[:10],
            )

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


def _answered(cursor: str) -> _Answered | None:
    cursor = cursor.removeprefix(WAITS)
    try:
        return msgspec.json.decode(cursor, type=_Answered) if cursor.startswith("{") else None
    except msgspec.MsgspecError:
        return None


def _judged(verdict: Verdict, case: Case, directory: str, host: str) -> Judged:
    reward = verdict.reward
    said = [f"{verdict.state}, severity {verdict.severity}"]
    said += [f"reward {reward:g}"] if reward is not None else []
    said += [f"open: {m.text}" for m in verdict.missing[:MISSING_SHOWN]]
    said += [f"feedback before: {text}" for text in case.rounds]
    return Judged(
        session=verdict.session,
        task=verdict.task,
        turn=verdict.turn,
        at=verdict.at,
        directory=directory,
        host=host,
        ended="; ".join(said),
        requests=case.requests,
        final=case.final,
        evidence=case.evidence,
        reward=reward,
        cited=case.cited,
        model=case.model,
    )
