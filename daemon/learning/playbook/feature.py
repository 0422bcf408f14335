"""The playbook: what is learned from judged sessions, and offered to the next ones (design/learning.md).

Off unless the person switched it on; then each judged case is stored with its verdict, and a session that
ends, is compacted or falls silent is looked back on in the background: a reflector and a curator are asked,
and what follows is kept apart, confirmed or written. A session that starts is given the points that somebody
vouches for.

A look back works only on what was judged and waits in the store: it reads no host, prompts nobody and makes
no session busy. Each step is stored before the next one: the reflector's answer as the job's cursor; then, in
one transaction, what is to change and which texts are kept apart; then the file. So
kill -9 between any two of them loses nothing and does nothing twice. A failure leaves the playbook as it
was. Without a model, or over the limit on spending, the cases wait, and lapse after seven days.
"""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, cast

import msgspec
from msgspec import Meta, Struct, to_builtins

from ...core import events as ev
from ...core.errors import BadReply, Unavailable, UserError
from ...core.given import known_as
from ...core.offers import Moment, Offer
from ...core.question import Answer, Question, R
from ...core.session import Session
from ...engine.calls import OVER_LIMIT
from ...engine.feature import Feature, Heard, Place, Route, route
from ...store import injections
from ...store import jobs as job_rows
from .. import tables
from ..texts import refusal
from .points import Change, Operation, Point, Tag, apply_tags, changed, copy, counted, each, line, proposed
from .project_playbook import OwnWords, ProjectPlaybook, View
from .questions import (
    LEARNED_FROM,
    MAX_TOKENS,
    Curation,
    Reflection,
    Stretch,
    confirmations,
    joined,
    of_case,
    of_points,
    of_stretch,
    within_curator,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...core.verdict import Verdict
    from ...engine.engine import Engine
    from ...judge.case import Case
    from ...store.db import Statement
    from ...store.jobs import Job
    from ..tables import Text

LEARN: Final = "playbook.learn"
LANE: Final = "learning"
BY: Final = "reflectd"
IDLE_MS: Final = 3_600_000  # a session that is silent for so long is looked back on
SOON_MS: Final = 1_000
WEEK_MS: Final = 7 * 86_400_000
DIRECTORIES_KEPT: Final = 50
SLOT: Final = "{key_points}"
LATER_MS: Final = 3_600_000  # no model, no money: the next try
RETRY_MS: Final = 30_000  # after a session began in the project: its host may lend a model again
WAITS: Final = "waits:"  # cursors of a job
WRITE: Final = "write:"
APPROVED: Final = "approved"
DISPUTED: Final = "disputed"
FLOW_S: Final = 120.0
WAITING_SHOWN: Final = 20  # texts that are kept apart, in one question
_encode = msgspec.json.Encoder().encode


class _Change(msgspec.Struct):
    """A change that was decided, as a job keeps it until it is in the file: a session's in its cursor, a
    person's in its body.
    """

    directory: str
    change: Change


class _Answered(msgspec.Struct):
    """The reflector's answer, in the job's cursor."""

    turns: list[str]
    reflection: Reflection
    confirmed: list[tuple[str, str]]


class _Settle(Struct):
    """``id``: of a text that is kept apart."""

    id: Annotated[int, Meta(gt=0, le=(1 << 63) - 1)]
    yes: bool
    by: str = "you"


class _Forget(Struct):
    session: Annotated[str, Meta(min_length=1)]


class Playbook(Feature):
    """Hears what ends, keeps what was judged, looks back on it, offers what is known."""

    name: ClassVar = "playbook"
    job_kinds: ClassVar = frozenset({LEARN})

    def __init__(self, parts: Engine) -> None:
        super().__init__(parts)
        self._world, self._asking, self._jobs = parts.world, parts.asking, parts.jobs
        self.waits = ""  # why, when it last could not ask
        self._logged = ""  # the same, as the log has it
        self._read: OrderedDict[str, Sequence[Offer]] = OrderedDict()

    # --- what was judged here -------------------------------------------------------------------------------

    def deciding(self, verdict: Verdict, case: Case, directory: str) -> Sequence[Statement]:
        """The statements for a verdict's transaction: the case, and the job that is due when the session was
        silent for an hour.
        """
        s = self._world.sessions.get(verdict.session)
        if s is None or verdict.state not in LEARNED_FROM:
            return ()
        if not (self.gives(directory) and self._world.calls.models(s.host)):
            return ()
        body = _encode(of_case(case, directory, verdict))
        if len(body) > tables.CASE_BYTES:
            return [tables.count(directory, "too_large")]
        now, what = self._world.clock.now_ms(), {"directory": directory, "host": s.host}
        return [
            tables.keep_case(verdict.session, verdict.turn, directory, now, body),
            job_rows.postpone(LEARN, verdict.session, LANE, now + IDLE_MS, what),
        ]

    def heard(self, before: Session | None, after: Session, event: Heard) -> None:
        """The end of a stretch makes its look back due; a new session, those that wait for a model."""
        world = self._world
        if not world.settings.playbook.enabled or after.judge or after.parent:
            return
        now = world.clock.now_ms()
        match event:
            case ev.SessionEnded() | ev.SessionDeleted() | ev.SessionCompacted():
                world.spawn(self._stored(job_rows.hasten(LEARN, after.id, now + SOON_MS)), "playbook")
            case ev.SessionSeen() if before is None:
                again = tables.retry(LEARN, after.directory, WAITS, now + RETRY_MS)
                world.spawn(self._stored(again), "playbook")
                world.spawn(self.prepare_context(after, Moment("start")), "playbook")
            case _:
                pass

    async def _stored(self, *statements: Statement, durable: bool = False) -> None:
        await self._world.db.commit(*statements, durable=durable)
        self._jobs.wake()

    # --- what sessions are given ----------------------------------------------------------------------------

    def book(self, project: str) -> ProjectPlaybook:
        """The playbook of a project; what it does blocks."""
        world = self._world
        return ProjectPlaybook(project, world.db.path.parent, world.clock, world.settings.playbook.path)

    def _view(self, project: str) -> View:
        return self.book(project).view(tables.confirmed(self._world.db, project))

    def best(self, project: str) -> list[Point]:
        """The points that agents may be given, best first. Blocks."""
        return self.book(project).best(tables.confirmed(self._world.db, project)) if project else []

    def gives(self, directory: str) -> bool:
        """Says whether sessions in this project are given points, whoever judges: that needs no model."""
        if not self._world.settings.playbook.enabled:  # a project may only switch it off
            return False
        settings = self._world.project(directory)
        return settings.enabled and settings.playbook.enabled

    def has_context(self, directory: str) -> Mapping[Place, int]:
        """When a session starts, where it is switched on."""
        return {"context": 0} if self.gives(directory) else {}

    async def prepare_context(self, s: Session, moment: Moment) -> None:
        """Read the project's points. Whoever waits may give up; what was read is there the next time."""
        if moment.begins and self.gives(s.directory):
            await asyncio.shield(self._world.spawn(self._reads(s.directory), "playbook"))

    async def _reads(self, directory: str) -> None:
        def look() -> Sequence[Offer]:
            project = project_of(directory)
            heading = self._world.prompt_texts(directory)["playbook"].replace(SLOT, "").strip()
            return [
                Offer(
                    f"point:{p['name']}:{known_as(p['text'])[:16]}", "point", line(p),
                    p["helpful"] - p["harmful"], heading, project, p["name"],
                )
                for p in self.best(project)
            ]  # fmt: skip

        self._read[directory] = await asyncio.to_thread(look)
        self._read.move_to_end(directory)
        while len(self._read) > DIRECTORIES_KEPT:
            self._read.popitem(last=False)

    def context(self, s: Session, moment: Moment) -> Sequence[Offer]:
        """The points that are known, when a session starts and when it lost its context."""
        return self._read.get(s.directory, ()) if moment.begins and self.gives(s.directory) else ()

    # --- routes and status ----------------------------------------------------------------------------------

    def routes(self) -> Sequence[Route]:
        """For our commands: the points that agents are given, a person's word on what waits, and on what a
        session taught.
        """
        return (
            Route("GET", "points", self._points),
            route("POST", "settle", _Settle, self._settle),
            route("POST", "forget", _Forget, self._forget),
        )

    async def _points(self, query: Mapping[str, Any]) -> Mapping[str, Any]:
        """``directory`` → the points that agents may be given in that project, best first."""
        project = await asyncio.to_thread(project_of, str(query.get("directory", "")))
        points = await asyncio.to_thread(self.best, project)
        return {"directory": project, "points": [{"name": p["name"], "text": line(p)} for p in points]}

    async def _settle(self, asked: _Settle) -> Mapping[str, Any]:
        """A person says whether a text that is kept apart counts. A yes is written by a job, as what a
        session confirmed is. Raises ``BadReply``.
        """
        yes, text = asked.yes, tables.text(self._world.db, asked.id)
        if text is None or text.state != "quarantined":
            raise BadReply(f"no text {asked.id} waits; `reflectd learned approve` lists those that do")
        if yes and (why := refusal(text.text)):
            raise BadReply(f"text {text.id} may not be offered to agents: {why}")
        word = "a person's word" + (" in the dashboard" if asked.by == "dashboard" else "")
        state: tables.State = "confirmed" if yes else "dismissed"
        statements = [tables.settle(text, state, word)]
        if yes:
            await asyncio.to_thread(self.book(text.directory).approve, [text.text])
            change = Change(operations=(_confirmed(text),))
            statements.append(self._write(text.directory, f"{APPROVED} {text.id}", change))
        await self._stored(*statements, durable=True)
        return {"id": text.id, "yes": yes}

    async def _forget(self, asked: _Forget) -> Mapping[str, Any]:
        """A person says that the verdict of a session was wrong, so its ``counts`` and its ``texts`` that
        were kept apart are taken back. Confirmed texts stay: they rest on a row or on the person's words, not
        on the verdict.
        """
        session, db, now = asked.session, self._world.db, self._world.clock.now_ms()
        tags, texts = tables.tags_of(db, session), tables.quarantined(db, session)
        statements = tables.forget(session)
        for project in dict.fromkeys(directory for directory, *_ in tags):
            change = Change(
                taken_back=tuple(Tag(name, cast("Any", tag)) for d, name, tag in tags if d == project)
            )
            statements.append(self._write(project, f"{DISPUTED} {session} {now} {project}", change))
        await self._stored(*statements, durable=True)
        return {"session": session, "counts": len(tags), "texts": texts}

    def _write(self, project: str, key: str, change: Change) -> Statement:
        return self._jobs.statement(LEARN, key, to_builtins(_Change(project, change)), lane=LANE)

    def status(self) -> Mapping[str, Any]:
        """The waiting, lapsed and learned texts; nothing while it is off."""
        world = self._world
        if not world.settings.playbook.enabled:
            return {}
        cases, size = tables.waiting(world.db)
        return {
            "enabled": True,
            "hosts": [host for host in world.calls.judges if world.calls.models(host)],
            "cases_waiting": cases,
            "bytes_waiting": size,
            "texts_waiting": tables.quarantined(world.db),
            **tables.counts(world.db),
            "spent": to_builtins(world.ledger.spent("", world.clock.now_ms() - WEEK_MS, "learning")),
            "over_limit": OVER_LIMIT in self.waits,
            "waits": self.waits,
        }

    def prune(self, now_ms: int) -> Sequence[Statement]:
        return tables.prune(now_ms)

    # --- a look back ----------------------------------------------------------------------------------------

    async def work(self, job: Job) -> None:
        """Do the next steps of a look back. Raises ``Unavailable`` when the database can't be written."""
        ready = "change" in job.body or job.cursor.removeprefix(WAITS).startswith(WRITE)
        decided = job if ready else await self._decided(job)
        if decided is not None and (why := await self._put(decided)):
            await self._wait(decided, why)

    async def _decided(self, job: Job) -> Job | None:
        """Ask, and store what follows. None when nothing is to be written (now)."""
        world, stretch = self._world, self._stretch(job)
        if stretch is None:
            await self._done(job)
            return None
        directory, drop = stretch.directory, tables.drop_cases(job.key, stretch.turns)
        s = world.sessions.get(stretch.session) or Session(
            id=stretch.session, host=str(job.body.get("host", "")), directory=directory
        )
        project = await asyncio.to_thread(project_of, directory)
        await world.projects.read(directory)
        off = not project or s.off or s.judge or s.parent or world.sessions.is_off(directory)
        on = self.gives(directory) and world.calls.models(s.host)
        if off or not on or not stretch.teaches:
            why = "switched off" if stretch.teaches else "too little happened"
            world.log.info("not looked back", session=job.key, why=why)
            await self._done(job, drop, tables.count(project, "skipped", len(stretch.turns)))
            return None
        view = await asyncio.to_thread(self._view, project)
        if view.problem:
            await self._wait(job, view.problem)
            return None
        self.waits = ""
        return await self._decide(job, s, stretch, project, view)

    def _stretch(self, job: Job) -> Stretch | None:
        """The judged turns that wait. A case that this version can't read is left out, and lapses."""
        turns = []
        for *_, body in tables.cases(self._world.db, job.key):
            try:
                turns.append(msgspec.json.decode(body, type=Stretch))
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as e:
                self._world.log.warning("a case that waits is not understood", session=job.key, error=str(e))
        return joined(turns)

    async def _wait(self, job: Job, why: str) -> None:
        """Try again in an hour, or when a session begins in the project. The cases lapse after seven days."""
        if why != self._logged:  # each session that waits says the same
            self._world.log.info("learning waits", session=job.key, why=why)
        self.waits = self._logged = why
        due = self._world.clock.now_ms() + LATER_MS
        await self._jobs.keep(job, cursor=f"{WAITS}{job.cursor.removeprefix(WAITS)}", due_ms=due)

    async def _done(self, job: Job, *statements: Statement) -> None:
        """The stretch is over. Turns that were judged meanwhile begin the next one."""
        self._logged = ""
        due = self._world.clock.now_ms() + IDLE_MS
        again = tables.look_again(LEARN, job.key, LANE, due, _encode(job.body))
        await self._jobs.finish(job, *statements, again)

    # --- one look back --------------------------------------------------------------------------------------

    async def _ask(
        self, s: Session, stretch: Stretch, name: str, purpose: str, slots: Mapping[str, str], form: type[R]
    ) -> Answer[R]:
        model = stretch.model
        question = Question(
            name, slots, form, purpose=purpose, max_tokens=MAX_TOKENS, model=model, parts=True
        )
        return await self._asking.ask(question, s, FLOW_S)

    async def _unanswered(self, job: Job, stretch: Stretch, project: str, answer: Answer[Any]) -> None:
        """Nothing follows from an answer that can't be used: it was paid for, and would be again."""
        if answer.bad or answer.replies:
            drop = tables.drop_cases(job.key, stretch.turns)
            await self._done(job, drop, tables.count(project, "failed", len(stretch.turns)))
        else:
            await self._wait(job, answer.why)

    async def _decide(self, job: Job, s: Session, stretch: Stretch, project: str, view: View) -> Job | None:
        """Ask both, and store what follows in one transaction: the job as it is stored then; None without an
        answer. Raises ``Unavailable``.
        """
        world = self._world
        names = {g.name for g in injections.given(world.db, s.id) if g.kind == "point"}
        given = [p for _, p in each(view.known) if p["name"] in names]
        cited = [name for name in stretch.cited if name in names]
        own = await asyncio.to_thread(OwnWords, world.db.path.parent, project)
        kept_apart = (t for t in tables.texts(world.db, project)[-WAITING_SHOWN:] if t.session != s.id)
        waiting = {f"new-{t.id}": t for t in kept_apart if not refusal(t.text) and not own.blocked(t.text)}
        templates = await asyncio.to_thread(world.prompt_texts, stretch.directory)

        answered = _answered(job.cursor)
        if answered is None:
            shown = [{"name": name, "text": t.text} for name, t in waiting.items()]
            slots = of_stretch(templates["reflector"], stretch, given, cited, shown)
            first = await self._ask(s, stretch, "reflector", "reflect", slots, Reflection)
            if (reflection := first.reply) is None:
                await self._unanswered(job, stretch, project, first)
                return None
            answered = _Answered(list(stretch.turns), reflection, confirmations(reflection, waiting, stretch))
            job = await self._jobs.keep(job, cursor=_encode(answered).decode())
        before = {name for where, name, _ in tables.tags_of(world.db, s.id) if where == project}
        tags = counted(answered.reflection.bullet_tags, {p["name"] for p in given}, before)

        seen = copy(view.known)
        apply_tags(seen, [to_builtins(t) for t in tags])
        said, part = within_curator(templates["curator"], answered.reflection, seen)
        slots = of_points(said, part, sum(1 for _ in each(seen)) - sum(1 for _ in each(part)))
        second = await self._ask(s, stretch, "curator", "curate", slots, Curation)
        if second.reply is None:
            await self._unanswered(job, stretch, project, second)
            return None
        wanted = proposed(view.known, msgspec.to_builtins(second.reply.operations), view.approved)

        new = [op for op in wanted.new if not own.blocked(op.text)]
        shown_true = [(waiting[name], cites) for name, cites in answered.confirmed if name in waiting]
        counts = tuple(t for t in tags if t.tag != "neutral")
        change = Change(counts, (*(_confirmed(t) for t, _ in shown_true), *wanted.now))
        now = world.clock.now_ms()
        statements = [
            tables.drop_cases(job.key, answered.turns),
            *(tables.tag(project, t.name, s.id, t.tag, now, t.rationale) for t in counts),
            *(tables.quarantine(project, op.section, op.text, s.id, now, op.why, op.names) for op in new),
            *(tables.settle(t, "confirmed", cites) for t, cites in shown_true),
            tables.count(project, "stretches"),
        ]
        world.log.info(
            "looked back",
            session=s.id,
            tags={t.name: t.tag for t in tags},
            new=len(new),
            confirmed=len(shown_true),
            changed=[op.names for op in wanted.now],
            skipped=list(wanted.skipped),
        )
        cursor = f"{WRITE}{_encode(_Change(project, change)).decode()}"
        return await self._jobs.keep(job, *statements, cursor=cursor, due_ms=now)

    async def _put(self, job: Job) -> str:
        """Write a decided change into the file, once, and end the job. Returns why it is not written (yet);
        "" when it is there.
        """
        log = self._world.log
        try:
            if "change" in job.body:
                found = msgspec.convert(job.body, type=_Change)
            else:
                cursor = job.cursor.removeprefix(WAITS).removeprefix(WRITE)
                found = msgspec.json.decode(cursor, type=_Change)
        except msgspec.MsgspecError:
            log.warning("a change of a playbook is not understood", session=job.key)
            found = _Change("", Change())
        if found.change:
            try:
                told = await asyncio.to_thread(write_once, self.book(found.directory), found.change, job)
            except (Unavailable, UserError) as e:
                return str(e)
            log.info("playbook", directory=found.directory, told=told[:10])
        await self._done(job)
        return ""


def project_of(directory: str) -> str:
    """The folder by its real path; "" for one that is no project (the home folder, the root). Blocks."""
    real = os.path.realpath(directory) if directory else ""
    return "" if real in {"", "/", os.path.realpath(os.environ.get("HOME") or "/")} else real


def write_once(book: ProjectPlaybook, change: Change, job: Job) -> list[str]:
    """Change the file and keep the revision, unless it is on the disk already, or was undone: the revision
    that is kept before the file is replaced names the change. Returns notes for the log. Raises
    ``Unavailable``, and ``UserError`` for a project whose playbook lies behind a link. Blocks.
    """
    kind = job.key.partition(" ")[0]
    whys = {APPROVED: "a person approved it", DISPUTED: "a person disputed the verdict behind it"}
    what = f"learned #{job.id}"
    with book.change(why=whys.get(kind, f"what session {job.key} showed"), by=BY) as edit:
        if edit.problem:
            raise Unavailable(edit.problem)
        made = book.history()
        earlier = next((r for r in made if r.by == BY and r.what == what), None)
        undone = earlier is not None and any(r.undoes == earlier.number for r in made)
        if earlier is not None and (undone or earlier.before != edit.mark):
            return ["it is there already, or was undone"]
        kept = {p["name"] for _, p in each(edit.playbook) if edit.known.is_approved(p["text"])}
        edit.what = what
        return changed(edit.playbook, change, edit.names, kept)


def _confirmed(text: Text) -> Operation:
    return Operation(text.text, text.replaces, text.section)


def _answered(cursor: str) -> _Answered | None:
    cursor = cursor.removeprefix(WAITS)
    try:
        return msgspec.json.decode(cursor, type=_Answered) if cursor.startswith("{") else None
    except msgspec.MsgspecError:
        return None
