"""Looks back on sessions of the past, because a person asked for it (`reflectd playbook bootstrap`).

The command reads the transcripts, says what looking back on them costs, and sends them one after the other.
Each becomes a job of the playbook (``feature``), which asks, keeps apart, confirms and writes as for a
session that was judged, paid from the account ``asked``. Reads no transcript and no host.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ...core.cuts import tokens
from ...core.errors import BadReply, Rejected, Unavailable
from ...core.llm import Prompt
from ...core.policy import forbids
from ...core.session import Session
from ...engine.feature import Feature, Route
from ...engine.hosts.host import CAPABILITIES
from ...engine.world import DAY_MS
from .. import tables
from .feature import LANE, LEARN, PAST, WAITS, WRITE, project_of
from .questions import CURATOR_TOKENS, MAX_TOKENS, REFLECTOR_TOKENS, Stretch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...engine.budget import Budget
    from ...engine.calls import First
    from ...engine.engine import Engine

Json = dict[str, Any]
MOST: Final = 10_000  # sessions of one plan
WAITING_TOKENS: Final = 1_100  # of the texts that wait for confirmation
ID: Final = 200
NO_MODEL: Final = (
    "no model can be asked: a host lends its models only to a session that runs. Set up a key for "
    "Anthropic or OpenAI, or choose `claude-cli` (docs/cost.md)"
)
_PAST: Final = (LEARN, f"{PAST} %")
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
    directory: str
    host: str
    stretch: Stretch


class Bootstrap(Feature):
    """One for the daemon."""

    name: ClassVar = "bootstrap"

    def __init__(self, parts: Engine) -> None:
        super().__init__(parts)
        self._world, self._instances, self._jobs = parts.world, parts.instances, parts.jobs

    def routes(self) -> Sequence[Route]:
        """What it would cost; have one session looked back on; give up those that wait."""
        return (
            Route("POST", "plan", self.plan),
            Route("POST", "add", self.add),
            Route("POST", "stop", self.stop),
        )

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

    async def add(self, body: Mapping[str, Any]) -> Json:
        """Have one session looked back on: ``state`` is ``waits``, or ``skipped`` with the reason. Raises
        ``BadReply`` and ``Rejected``.
        """
        past = _read(body, _Past)
        session = past.stretch.session
        if not session or len(session) > ID or past.host not in CAPABILITIES:
            raise BadReply("name the session in `stretch.session`, and its `host`")
        project = await self._project(past.directory)
        if why := self._left_out(project, {session}).get(session):
            return {"session": session, "state": "skipped", "why": why}
        stretch = msgspec.to_builtins(replace(past.stretch, directory=project))
        at = self._world.clock.now_ms()
        about = {"directory": project, "host": past.host, "at": at, "stretch": stretch}
        ((due,),) = self._world.db.read("SELECT max(due) FROM jobs WHERE kind = ? AND key LIKE ?", _PAST)
        job = self._jobs.statement(
            LEARN, f"{PAST} {session}", about, lane=LANE, due_ms=max(at, due or 0)
        )  # behind those that wait
        await self._world.db.commit(job)
        self._jobs.wake()
        return {"session": session, "state": "waits"}

    async def stop(self, body: Mapping[str, Any]) -> Json:
        """Those of ``directory`` that wait are given up; how many. What was decided is written."""
        project = await asyncio.to_thread(project_of, str(body.get("directory", "")))
        waits = (
            "DELETE FROM jobs WHERE kind = ? AND key LIKE ? AND CAST(body AS TEXT) ->> '$.directory' = ? "
            f"AND cursor NOT LIKE '{WRITE}%' AND cursor NOT LIKE '{WAITS}{WRITE}%'"
        )
        gone = await self._world.db.commit((waits, [(*_PAST, project)]))
        return {"directory": project, "stopped": gone}

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
        jobs = world.db.read("SELECT key FROM jobs WHERE kind = ? AND key LIKE ?", _PAST)
        asked = {key.partition(" ")[2] for (key,) in jobs}
        running = {i.session for i in self._instances if i.connected and i.session}
        for session in sessions:
            s = world.sessions.peek(session) or Session(id=session)
            if session in done:
                whys[session] = "looked back on already"
            elif session in asked:
                whys[session] = "it waits already"
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


def _read(body: Mapping[str, Any], form: type[T]) -> T:
    try:
        return msgspec.convert(body, form)
    except (msgspec.ValidationError, RecursionError) as e:
        raise BadReply(f"the body can't be read: {e}") from None
