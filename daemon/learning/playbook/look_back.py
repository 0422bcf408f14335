"""Looks back on each stretch of a session that was judged here, in the background: a reflector, a curator,
and what follows from both for a project's playbook.

Works only on what was judged and waits in the store: it reads no host, prompts nobody and makes no session
busy. ``Bootstrap`` has sessions of the past looked back on by the same steps, one at a time (``alone``).
Each step is stored before the next one: the reflector's answer as the job's cursor; then, in one transaction,
what is to change and which texts are kept apart (``store``); then the file (``write``). So kill -9 between
any two of them loses nothing and does nothing twice. Whatever fails leaves the playbook as it was. Without a
model, or over the limit on spending, the cases wait, and lapse after seven days.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
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
from ...store.db import Statement
from ...store.jobs import Job
from ..texts import Origin, refusal
from .curator import CURATOR_TOKENS, curate, curation, shown
from .learn import Change, Confirmed, Judged, Stretch, Tag, counted, ended, proposed, stretch_of  # fmt: skip
from .playbooks import View
from .points import apply_tags, copy, each
from .reflector import of_task, reflect

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ...core.verdict import Verdict
    from ...engine.asking import Asking
    from ...engine.jobs import Jobs
    from ...engine.world import World
    from ...judge.case import Case
    from ...learning.tables import Text, Write
    from ...log import Logger
    from ..embed.vectors import Row, SharedEmbedder
    from .playbooks import Playbooks
    from .points import Point
    from .reflector import Flow, Outcome

# Finds points with similar embeddings and offers the pairs to the curator, who decides.
#
# The model for embeddings is the daemon's one (``embedder``). Everything that blocks is done in a thread:
# the choice, the model on this machine, the comparison. Without a model, and when it fails or takes too
# long, there are no pairs and everything goes on; a failure is logged once, until it works again. Pairs of
# the same texts are remembered, so a project whose points did not change costs nothing.

EMBED_S: Final = 120.0
KEPT: Final = 50  # sets of texts whose pairs are remembered
_ROUNDING: Final = 1e-9

Pairs = tuple[tuple[int, int], ...]


class SimilarPoints:
    """One for the daemon. ``least``: the cosine from which on two texts are alike."""

    def __init__(self, embedder: SharedEmbedder, least: float, log: Logger) -> None:
        self._embedder = embedder
        self._least = least
        self._log = log
        self._lock = asyncio.Lock()
        self._known: OrderedDict[bytes, Pairs] = OrderedDict()
        self._failed = False

    async def named(self, points: Sequence[Point], kept: Collection[str]) -> list[tuple[str, str]]:
        """The names of two points each that may say the same. Two that a person approved (``kept``) are no
        pair: neither would go. Never raises what an embedder raises.
        """
        names = [p["name"] for p in points]
        pairs = [(names[a], names[b]) for a, b in await self.pairs([p["text"] for p in points])]
        return [(a, b) for a, b in pairs if not (a in kept and b in kept)]

    async def pairs(self, texts: Sequence[str]) -> Pairs:
        """The places of two texts each that may say the same, the lower one first. Never raises."""
        if len(texts) < 2:
            return ()
        key = sha256("\0".join(texts).encode("utf-8", "surrogatepass")).digest()
        async with self._lock:
            found = self._known.pop(key, None)
            if found is None:
                found = await self._found(texts)
            if found is None:
                return ()
            self._known[key] = found
            while len(self._known) > KEPT:
                self._known.popitem(last=False)
            return found

    async def _found(self, texts: Sequence[str]) -> Pairs | None:
        """The pairs; None when they can't be told now."""
        try:
            async with asyncio.timeout(EMBED_S):
                made = await self._embedder.get()
                if made is None:
                    return None
                rows = (await made.embed(texts)).rows
        except (ReflectdError, ValueError, TimeoutError) as e:
            if not self._failed:
                self._log.warning("meanings are not compared", error=str(e) or f"no answer in {EMBED_S:g} s")
            self._failed = True
            return None
        self._failed = False
        return await asyncio.to_thread(near, rows, self._least)


def near(rows: Sequence[Row], threshold: float) -> Pairs:
    """The pairs of vectors whose cosine is at least ``threshold``, the lower index first. The vectors have
    length 1 and come from one model. A curator is shown some two hundred points at most.
    """
    least = threshold - _ROUNDING
    return tuple(
        (a, b) for b, row in enumerate(rows) for a in range(b) if sum(map(mul, rows[a], row)) >= least
    )


LEARN: Final = "playbook.learn"
LANE: Final = "learning"
IDLE_MS: Final = 3_600_000  # a session that is silent for so long is looked back on
SOON_MS: Final = 1_000
LATER_MS: Final = 3_600_000  # no model, no money: the next try
RETRY_MS: Final = 30_000  # after a session began in the project: its host may lend a model again
WAITS: Final = "waits:"
PAST: Final = "past"
WHYS: Final = {"approved": "a person approved it", "disputed": "a person disputed the verdict behind it"}
FLOW_S: Final = 120.0
WAITING_SHOWN: Final = 20  # texts that are kept apart, in one question
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
    """What follows from both answers. ``statements`` are to be stored together with ``change``. ``turns``:
    those that were looked back on.
    """

    job: Job
    project: str
    turns: tuple[str, ...]
    change: Change
    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Silent:
    """There is no answer. ``bad``: one came and was paid for, but could not be used. ``over``: a limit on
    spending forbade the call, ``no`` says which when a person asked for it.
    """

    job: Job
    why: str
    bad: bool
    over: bool
    no: Skip | None = None


class Lookback:
    """One for the daemon."""

    def __init__(
        self, world: World, asking: Asking, jobs: Jobs, books: Playbooks, similar: SimilarPoints
    ) -> None:
        self._world = world
        self._asking = asking
        self._jobs = jobs
        self._books = books
        self._similar = similar
        self.alone = asyncio.Lock()
        self.over_limit = False  # when it last asked

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
        now, o = self._world.clock.now_ms(), text.origin
        origin = Origin(o.by, o.session, o.turn, o.at, o.why, word)
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
            write = tables.unwritten(self._world.db, job.key)
            if write is None:
                decided = await self._decide(job)
                if decided is None:
                    return
                job, write = decided
            why = await self.write(write)
            await (self._wait(job, why) if why else self._done(job, tables.end_write(write)))

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
            dropped = tables.drop_cases(job.key, stretch.turns)
            await self._done(job, dropped, tables.count(project, "skipped", len(stretch.turns)))
            return None
        view = await asyncio.to_thread(self._books.view, project)
        if view.problem:
            await self._wait(job, view.problem)
            return None
        texts = await asyncio.to_thread(world.prompt_texts, stretch.directory)
        look = Look(s, stretch, project, view, texts)
        return await self._store(job, look, await self.decide(job, look))

    async def _store(self, job: Job, look: Look, found: Decided | Silent) -> tuple[Job, Write] | None:
        """Without an answer the cases wait for a model or, when it could not be read, are given up."""
        self.over_limit = isinstance(found, Silent) and found.over
        if isinstance(found, Silent) and not found.bad:
            await self._wait(found.job, found.why)
            return None
        if isinstance(found, Silent):
            turns = look.stretch.turns
            dropped = tables.drop_cases(job.key, turns)
            await self._done(found.job, dropped, tables.count(look.project, "failed", len(turns)))
            return None
        dropped = tables.drop_cases(job.key, found.turns)
        if not found.change:
            await self._done(found.job, dropped, *found.statements)
            return None
        return await self.store(found, dropped)

    async def _wait(self, job: Job, why: str) -> None:
        """Try again in an hour, or when a session begins in the project. The cases lapse after seven days."""
        self._world.log.info("learning waits", session=job.key, why=why)
        due = self._world.clock.now_ms() + LATER_MS
        cursor = f"{WAITS}{job.cursor.removeprefix(WAITS)}"
        await self._jobs.keep(job, cursor=cursor, due_ms=due)

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
        """Ask both. Nothing is stored but the reflector's answer, as the job's cursor."""
        world, s, stretch, project = self._world, look.session, look.stretch, look.project
        names = {g.name for g in injections.given(world.db, s.id) if g.kind == "point"}
        given = [p for _, p in each(look.view.known) if p["name"] in names]
        blocked = await asyncio.to_thread(self._books.blocked, project)
        waiting = {
            f"new-{t.id}": t
            for t in tables.texts(world.db, project)[-WAITING_SHOWN:]
            if t.session != s.id and not refusal(t.text) and not blocked(t.text)
        }
        answered = _answered(job.cursor)
        if answered is None:
            case = of_task(
                session=s.id,
                nonce=world.nonce(),
                template=look.texts["reflector"],
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
                asked=look.limits is not None,
            )
            outcome = await self._run(job, reflect(case), look)
            if isinstance(outcome, Silent):
                return outcome
            confirmed = [(c.name, c.cites) for c in outcome.confirmed]
            answered = _Answered(list(stretch.turns), outcome.output, confirmed)
            job = await self._jobs.keep(job, cursor=_encode(answered).decode())
        tags = counted(
            answered.output.get("bullet_tags"),
            {p["name"] for p in given},
            tables.tagged(world.db, project, s.id),
        )
        seen = copy(look.view.known)
        apply_tags(seen, [{"name": t.name, "tag": t.tag} for t in tags])
        question = partial(
            curation,
            answered.output,
            seen,
            nonce=world.nonce(),
            template=look.texts["curator"],
            session=s.id,
            model=stretch.model,
            largest=CURATOR_TOKENS,
            asked=look.limits is not None,
        )
        to_curate = question()
        pairs = await self._similar.named(shown(seen, to_curate.points), look.view.approved)
        outcome = await self._run(job, curate(question(alike=pairs) if pairs else to_curate), look)
        if isinstance(outcome, Silent):
            return outcome
        found_out = proposed(look.view.known, outcome.output["operations"], kept=look.view.approved)
        new = [n for n in found_out.new if not blocked(n.text)]
        found = [(waiting[name], cites) for name, cites in answered.confirmed if name in waiting]
        change = Change(
            tuple(t for t in tags if t.tag != "neutral"),
            tuple(Confirmed(t.section, t.text, t.replaces) for t, _ in found),
            found_out.removed,
            joined=found_out.joined,
        )
        now, turn = world.clock.now_ms(), answered.turns[-1]
        origins = [Origin("curator", s.id, turn, now, n.why) for n in new]
        statements = (
            *(tables.tag(project, t.name, s.id, t.tag, now, t.why) for t in change.tags),
            *(
                tables.quarantine(project, n.section, n.text, s.id, now, origin, n.replaces)
                for n, origin in zip(new, origins, strict=True)
            ),
            *(self._confirm(text, s.id, cites, now) for text, cites in found),
            injections.cite(s.id, [name for name in stretch.cited if name in names]),
            tables.look_back(project, s.id, now),
            tables.count(project, "stretches"),
        )
        world.log.info(
            "looked back",
            session=s.id,
            asked=look.limits is not None,
            tags={t.name: t.tag for t in tags},
            new=len(new),
            confirmed=len(found),
            removed=list(found_out.removed),
            joined=[j.names for j in found_out.joined],
            skipped=list(found_out.skipped)[:10],
        )
        return Decided(job, project, tuple(answered.turns), change, statements)

    async def store(self, decided: Decided, *statements: Statement, due_ms: int = 0) -> tuple[Job, Write]:
        """Store what was decided, in one transaction. The file is written next. Raises ``Unavailable``."""
        job, now = decided.job, self._world.clock.now_ms()
        begin = tables.begin_write(decided.project, job.key, now, _encode(decided.change))
        job = await self._jobs.keep(
            job, *statements, *decided.statements, begin, cursor="write", due_ms=due_ms
        )
        write = tables.unwritten(self._world.db, job.key)
        if write is None:
            raise Unavailable("the change that was just stored is not in the database")
        return job, write

    async def write(self, write: Write) -> str:
        """The decided change reaches the file, once. Why it did not (yet); "" when it is there."""
        change = change_of(write)
        if change is None:
            self._world.log.warning("a change of a playbook is not understood", session=write.session)
            return ""
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
        return ""

    def _confirm(self, text: Text, session: str, cites: str, now: int) -> Statement:
        o = text.origin
        origin = Origin(o.by, o.session, o.turn, o.at, o.why, cites[:300], session)
        return tables.settle(text, "confirmed", now, origin)

    async def _run(self, job: Job, flow: Flow, look: Look) -> Outcome | Silent:
        forbidden: list[Skip] = []
        told = forbidden.append if look.limits is not None else None
        outcome = await self._asking.run(flow, look.session, FLOW_S, look.limits, told)
        if not outcome.failed:
            return outcome
        no = forbidden[-1] if forbidden else None
        bad = bool(outcome.bad or outcome.replies)
        return Silent(job, outcome.why, bad, OVER_LIMIT in outcome.why, no)


def change_of(write: Write) -> Change | None:
    """What is to change. None when this version can't read it."""
    try:
        return msgspec.json.decode(write.body, type=Change)
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
