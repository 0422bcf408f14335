"""Looks back on sessions of the past, because a person asked for it (`reflectd playbook bootstrap`).

The command reads the transcripts, and sends one session after the other; here questions, confirmation and
writing are those of a judged session (``feature``), paid from the account ``asked``. When the command goes
away, the call to a model ends with it, and nothing more is spent. A change that was decided before a kill is
written by the playbook's own jobs; all else goes on from its cursor when the command comes again. Reads no
transcript and no host.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ...core.cuts import tokens
from ...core.errors import BadReply, ReflectdError, Rejected, Unavailable
from ...core.llm import Prompt
from ...core.policy import forbids
from ...core.session import Session
from ...engine.feature import Feature, Route
from ...engine.hosts.host import CAPABILITIES
from ...engine.world import DAY_MS
from .. import tables
from .feature import LANE, LEARN, PAST, Look, Playbook, Silent, change_of, project_of
from .questions import CURATOR_TOKENS, MAX_TOKENS, REFLECTOR_TOKENS, Stretch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...engine.budget import Budget
    from ...engine.calls import First
    from ...engine.engine import Engine
    from ...store.jobs import Job

Json = dict[str, Any]
GIVE_UP_MS: Final = 30 * DAY_MS  # nobody went on with it
MOST: Final = 10_000  # sessions of one plan
WAITING_TOKENS: Final = 1_100  # of the texts that wait for confirmation
ID: Final = 200
DONE: Final = "looked back on already"
NO_MODEL: Final = (
    "no model can be asked: a host lends its models only to a session that runs. Set up a key for "
    "Anthropic or OpenAI, or choose `claude-cli` (docs/cost.md)"
)
T = TypeVar("T", bound=Struct)


class _Size(Struct):
    """``tokens``: of what the session did, as the reflector sees it."""

    session: str
    host: str
    tokens: int


class _Plan(Struct):
    """``limit``: how many sessions at most."""

    directory: str
    hosts: list[str]
    sessions: list[_Size]
    limit: int = MOST


class _Past(Struct):
    """``since``: when the command began (epoch ms)."""

    directory: str
    host: str
    stretch: Stretch
    since: int = 0


class Bootstrap(Feature):
    """One for the daemon."""

    name: ClassVar = "bootstrap"

    def __init__(self, parts: Engine) -> None:
        super().__init__(parts)
        self._world, self._instances, self._jobs = parts.world, parts.instances, parts.jobs
        self._features = parts.features

    def routes(self) -> Sequence[Route]:
        """The estimate, and looking back on one session."""
        return (Route("POST", "plan", self.plan), Route("POST", "look", self.look_back))

    @property
    def _playbook(self) -> Playbook:
        found = self._features.named("playbook")
        if not isinstance(found, Playbook):
            raise Unavailable("the playbook is not there")
        return found

    async def plan(self, body: Mapping[str, Any]) -> Json:
        """The highest cost of looking back on these sessions, and those that are left out. Nothing is asked.
        Raises ``BadReply`` and ``Rejected``.
        """
        plan = _read(body, _Plan)
        if len(plan.sessions) > MOST:
            raise BadReply(f"at most {MOST} sessions at once")
        project = await self._project(plan.directory)
        now, budget = self._world.clock.now_ms(), self._budget
        skipped = self._left_out(project, {size.session for size in plan.sessions})
        left = [size for size in plan.sessions if size.session not in skipped]
        template = (await asyncio.to_thread(self._world.prompt_texts, project))["reflector"]
        more = tokens(template) + WAITING_TOKENS
        chosen = [(size.host, min(REFLECTOR_TOKENS, size.tokens + more)) for size in left[: plan.limit]]
        hosts = dict.fromkeys([*plan.hosts, *(size.host for size in plan.sessions)])
        firsts = {host: await self._first(host) for host in hosts}
        prices = []
        for host, first in firsts.items():
            sizes = [(n, first.most) for h, size in chosen if h == host for n in (size, CURATOR_TOKENS)]
            prices.append(await budget.price(first.vendor, first.model, sizes))
        known = [usd for usd in prices if usd is not None]
        spent = [budget.spent(now - DAY_MS, account) for account in ("judging", "asked")]
        limits = self._world.limits(Session(id="", directory=project))
        return {
            "directory": project,
            "now": now,
            "skipped": skipped,
            "left": len(left),
            "models": [{"host": h, "provider": f.provider, "model": f.model} for h, f in firsts.items()],
            "calls": 2 * len(chosen),
            "tokens_in": sum(size + CURATOR_TOKENS for _, size in chosen),
            "tokens_out": sum(2 * firsts[host].most for host, _ in chosen),
            "usd": sum(known) if len(known) == len(prices) else None,
            "spent_24h": {"usd": sum(s.today for s in spent), "tokens": sum(s.tokens for s in spent)},
            "limits": {"usd": limits.usd_per_day, "tokens": limits.tokens_per_day},
        }

    async def look_back(self, body: Mapping[str, Any]) -> Json:
        """Look back on one session now; what was learned, or why nothing was. Raises ``BadReply``,
        ``Rejected``, and ``Unavailable`` when something can't be stored or the playbook can't be used.
        """
        past = _read(body, _Past)
        session = past.stretch.session
        if not session or len(session) > ID or past.host not in CAPABILITIES:
            raise BadReply("name the session in `stretch.session`, and its `host`")
        project = await self._project(past.directory)
        outcome: list[Json | ReflectdError] = []

        async def work() -> None:
            try:
                outcome.append(await self._one(project, past))
            except ReflectdError as e:
                outcome.append(e)

        # a task of the daemon's: it ends when the daemon stops, and when whoever asked goes away
        await self._world.spawn(work(), "bootstrap", "look")
        if not outcome:
            raise Unavailable("a bug of reflectd; the daemon's log has it")
        if isinstance(outcome[0], ReflectdError):
            raise outcome[0]
        await asyncio.sleep(0)  # the row of the last call is on its way to the database
        await self._world.db.commit()  # and it is there
        spent = self._world.ledger.spent("", past.since, "asked")
        return {"session": session, **outcome[0], "spent": {"usd": spent.today, "tokens": spent.tokens}}

    @property
    def _budget(self) -> Budget:
        budget = self._world.calls.budget
        if budget is None:  # only a replay has none
            raise Unavailable("nothing counts what this would cost")
        return budget

    async def _project(self, directory: str) -> str:
        """The project. Raises ``Rejected`` when nothing may be learned there."""
        world = self._world
        project = await asyncio.to_thread(project_of, directory)
        if not project:
            raise Rejected(f"{directory or 'this'} is no project")
        if not world.settings.playbook.enabled:
            raise Rejected(
                "playbook.enabled is false, so no agent would be given what is learned: "
                "`reflectd config set playbook.enabled true`, then `reflectd restart`"
            )
        await world.projects.read(project)
        settings = world.project(project)
        if not settings.playbook.enabled:
            raise Rejected(f"{project}/.reflection/config.toml switches the playbook off for this project")
        if not settings.enabled or world.sessions.is_off(directory) or world.sessions.is_off(project):
            raise Rejected("reflectd is off in this project: `reflectd on` lets it")
        if zero := forbids(settings):
            raise Rejected(f"{zero} is 0, so no model may be asked")
        return project

    def _left_out(self, project: str, sessions: set[str]) -> dict[str, str]:
        """Session → why it is not looked back on."""
        world, whys = self._world, dict[str, str]()
        done, waiting = tables.looked_back(world.db, project), tables.waiting_sessions(world.db)
        running = {i.session for i in self._instances if i.connected and i.session}
        for session in sessions:
            s = world.sessions.peek(session) or Session(id=session)
            if session in done:
                whys[session] = DONE
            elif session in running or (s.busy and self._instances.connected(s.instance)):
                whys[session] = "it is still open"
            elif session in waiting:
                whys[session] = "it waits to be looked back on as a session that was judged"
            elif s.off:
                whys[session] = "switched off"
            elif s.judge or s.parent:
                whys[session] = "a session of a judge or of a sub-agent"
        return whys

    async def _first(self, host: str) -> First:
        """Who would be asked about a session of this host. Raises ``BadReply`` and ``Rejected``."""
        if host not in CAPABILITIES:
            raise BadReply(f"no host is called {host[:ID]!r}")
        prompt = Prompt("asked.reflect", "fast", "", "", max_tokens=MAX_TOKENS, host=host)
        first = await self._world.calls.first(prompt)
        if first is None:
            raise Rejected(NO_MODEL)
        return first

    async def _one(self, project: str, past: _Past) -> Json:
        session, now = past.stretch.session, self._world.clock.now_ms()
        async with self._playbook.alone:
            if why := self._left_out(project, {session}).get(session):
                return {"state": "done" if why == DONE else "skipped", "why": why}
            about = {"directory": project, "host": past.host}
            key = f"{PAST} {session}"
            job = await self._jobs.now(LEARN, key, about, lane=LANE, due_ms=now + GIVE_UP_MS)
            try:
                return await self._steps(job, project, past)
            finally:
                self._jobs.let_go(job)

    async def _steps(self, job: Job, project: str, past: _Past) -> Json:
        world, session = self._world, past.stretch.session
        if tables.unwritten(world.db, job.key) is None:
            view = await asyncio.to_thread(self._playbook.view, project)
            if view.problem:
                raise Unavailable(view.problem)
            s = Session(id=session, host=past.host, directory=project)
            stretch = replace(past.stretch, directory=project)
            outcome = await self._playbook.decide(job, Look(s, stretch, project, view, world.limits(s)))
            if isinstance(outcome, Silent):
                return await self._unanswered(project, session, outcome)
            job = outcome
        write = tables.unwritten(world.db, job.key)
        change = change_of(write) if write is not None else None
        if why := await self._playbook.put(job):
            raise Unavailable(why)
        operations = change.operations if change is not None else ()
        new = [t for t in tables.texts(world.db, project) if t.session == session]
        return {
            "state": "learned",
            "new": [{"id": t.id, "section": t.section, "text": t.text} for t in new],
            "confirmed": [{"section": op.section, "text": op.text} for op in operations if op.text],
            "removed": [n for op in operations if not (op.text or op.into) for n in op.names],
            "merged": [n for op in operations if op.into for n in op.names],
            "tags": {t.name: t.tag for t in change.tags} if change is not None else {},
        }

    async def _unanswered(self, project: str, session: str, silent: Silent) -> Json:
        """A reply that can't be used was paid for, and would be again: the session counts as done."""
        if silent.bad:
            mark = tables.look_back(project, session, self._world.clock.now_ms())
            await self._jobs.finish(silent.job, mark, tables.count(project, "failed"))
            return {"state": "failed", "why": silent.why}
        if silent.no is None:
            return {"state": "silent", "why": silent.why.removeprefix("no model answered: "), "limit": ""}
        state = "silent" if silent.no.of_session else "over"
        return {"state": state, "why": silent.no.reason, "limit": silent.no.guard}


def _read(body: Mapping[str, Any], form: type[T]) -> T:
    try:
        return msgspec.convert(body, form)
    except (msgspec.ValidationError, RecursionError) as e:
        raise BadReply(f"the body can't be read: {e}") from None
