"""One look back: a reflector, a curator, and what follows from both for a project's playbook.

``Learning`` looks back on what it heard, ``Bootstrap`` on what a person asks for; both go through here, one
at a time (``alone``). Each step is stored before the next one: the reflector's answer as the job's cursor;
then, in one transaction, what is to change and which texts are kept apart (``keep``); then the file
(``write``). So kill -9 between any two of them loses nothing and does nothing twice. Whatever fails leaves
the playbook as it was.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ..core.errors import Unavailable, UserError
from ..core.learned import Origin, refusal
from ..learning.playbook.curator import CURATOR_TOKENS, curate, curation
from ..learning.playbook.learn import Change, Confirmed, counted, proposed
from ..learning.playbook.points import apply_tags, copy, each
from ..learning.playbook.reflector import of_task, reflect
from ..store import learning
from .calls import OVER_LIMIT

if TYPE_CHECKING:
    from ..core.guards import Limits, Skip
    from ..core.session import Session
    from ..learning.playbook.asking import Flow, Outcome, Templates
    from ..learning.playbook.learn import Stretch
    from ..store.db import Statement
    from ..store.jobs import Job
    from ..store.learning import Text, Write
    from .asking import Asking
    from .jobs import Jobs
    from .playbooks import Playbooks, View
    from .similar_points import SimilarPoints
    from .world import World

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
    it is paid from that account, and only sessions' own judges that need no session are asked.
    """

    session: Session
    stretch: Stretch
    project: str
    view: View
    templates: Templates
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

    async def decide(self, job: Job, look: Look) -> Decided | Silent:
        """Ask both. Nothing is stored but the reflector's answer, as the job's cursor."""
        world, s, stretch, project = self._world, look.session, look.stretch, look.project
        names = {g.name for g in learning.given(world.db, s.id) if g.kind == "point"}
        given = [p for _, p in each(look.view.known) if p["name"] in names]
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
                template=look.templates.reflector,
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
            learning.tagged(world.db, project, s.id),
        )
        seen = copy(look.view.known)
        apply_tags(seen, [{"name": t.name, "tag": t.tag} for t in tags])
        question = partial(
            curation,
            answered.output,
            seen,
            nonce=world.nonce(),
            template=look.templates.curator,
            session=s.id,
            model=stretch.model,
            largest=CURATOR_TOKENS,
            asked=look.limits is not None,
        )
        to_curate = await self._similar.curation(
            seen, look.view.approved, lambda pairs: question(alike=pairs)
        )
        outcome = await self._run(job, curate(to_curate), look)
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
            *(learning.tag(project, t.name, s.id, t.tag, now, t.why) for t in change.tags),
            *(
                learning.quarantine(project, n.section, n.text, s.id, now, origin, n.replaces)
                for n, origin in zip(new, origins, strict=True)
            ),
            *(self._confirm(text, s.id, cites, now) for text, cites in found),
            learning.cite(s.id, [name for name in stretch.cited if name in names]),
            learning.look_back(project, s.id, now),
            learning.count(project, "stretches"),
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

    async def keep(self, decided: Decided, *statements: Statement, due_ms: int = 0) -> tuple[Job, Write]:
        """Store what was decided, in one transaction. The file is written next. Raises ``Unavailable``."""
        job, now = decided.job, self._world.clock.now_ms()
        begin = learning.begin_write(decided.project, job.key, now, _encode(decided.change))
        job = await self._jobs.keep(
            job, *statements, *decided.statements, begin, cursor="write", due_ms=due_ms
        )
        write = learning.unwritten(self._world.db, job.key)
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
        return learning.settle(text, "confirmed", now, origin)

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
