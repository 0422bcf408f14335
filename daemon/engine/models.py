"""Who may be asked: the providers with their budget, and how a host lends its models to its own sessions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..core.errors import ReflectdError, Unavailable, UserError
from ..core.fast import Offered
from ..core.policy import judging
from ..core.session import Session
from ..llm.offered import Fresh
from ..llm.offline import OfflineProvider
from ..llm.select import estimate_usd, providers
from ..store import ledger
from .budget import Budget
from .calls import Calls
from .hosts.host import CAPABILITIES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from msgspec import Raw

    from ..core.orders import RunJudge
    from ..core.ports import Clock, Provider
    from ..core.settings import Settings
    from ..keys import Keys
    from ..log import Logger
    from ..store.db import Database
    from ..store.sessions import Sessions
    from .hosts.host import Instance
    from .instances import Instances
    from .world import Spawn

# Which models each host offers: asked at most every five minutes, for the choice of a small one.
#
# A host that does not say (an older shim, no answer in time) is None: then the session's own model is
# asked. That is logged once when it begins.

HOSTS_KEPT: Final = 200


@dataclass(slots=True)
class _Host:
    fresh: Fresh[Offered]
    silent: bool = False


class HostModels:
    """One entry per host instance; the least recently asked goes first (I44)."""

    def __init__(self, instances: Instances, clock: Clock, log: Logger) -> None:
        self._instances = instances
        self._clock = clock
        self._log = log
        self._hosts: dict[str, _Host] = {}

    async def of(self, instance: Instance) -> Offered | None:
        """Provider ids and their models as this host has them, None when it does not say."""
        host = self._hosts.pop(instance.id, None) or self._host(instance.id)
        self._hosts[instance.id] = host
        while len(self._hosts) > HOSTS_KEPT:
            del self._hosts[next(iter(self._hosts))]
        return await host.fresh.get()

    def _host(self, identity: str) -> _Host:
        async def load() -> Offered:
            try:
                found = await self._read(identity)
            except ReflectdError as e:
                if not host.silent:
                    self._log.info(
                        "the host does not say which models it offers; quick questions use the session's own",
                        instance=identity,
                        error=str(e),
                    )
                host.silent = True
                raise
            host.silent = False
            return found

        host = _Host(Fresh(load, self._clock.monotonic))
        return host

    async def _read(self, identity: str) -> Offered:
        instance = self._instances.get(identity)
        if instance is None:
            raise Unavailable("it said no hello to this daemon")
        return await instance.host.offered(instance)


class Models:
    """Makes the ``Calls`` of this daemon."""

    def __init__(
        self,
        db: Database,
        sessions: Sessions,
        instances: Instances,
        clock: Clock,
        log: Logger,
        spawn: Spawn,
    ) -> None:
        self._db = db
        self._sessions = sessions
        self._instances = instances
        self._clock = clock
        self._log = log
        self._spawn = spawn
        self._offered = HostModels(instances, clock, log)
        self._budget = Budget(ledger.Ledger(db), clock, estimate_usd)

    def calls(self, settings: Settings, keys: Keys, folder: Path, provider: Provider | None = None) -> Calls:
        """Who is asked. ``folder``: where a judge that is a program runs. ``provider``: asked before all
        others.

        With a ``provider`` (a test's) only the rules are asked beside it.
        """
        found: list[Provider] = []
        if provider is not None:
            found += [provider, OfflineProvider()]
        else:
            try:
                found += providers(
                    settings.judge.provider, settings, keys, self._run, self._look, folder=folder
                )
            except UserError:
                if settings.judge.provider not in keys.unused:
                    raise
                found.append(OfflineProvider())  # nobody is asked; `status` says which command allows the key
            found += self._own(settings, keys, folder, found)
        names = [p.name for p in found]
        judges = {
            host: judging(settings, host, names, lends=can.lends_models).asked
            if provider is None
            else tuple(n for n in names if n != "host" or can.lends_models)
            for host, can in CAPABILITIES.items()
        }
        return Calls(
            tuple(found),
            self._clock,
            self._log,
            self._record,
            self._budget,
            rules=OfflineProvider(),
            judges=judges,
            host_of=lambda session: (self._sessions.get(session) or Session(id=session)).host,
            directory_of=lambda session: (self._sessions.get(session) or Session(id=session)).directory,
        )

    def _own(
        self, settings: Settings, keys: Keys, folder: Path, others: list[Provider]
    ) -> Iterator[Provider]:
        """The providers that only one host's sessions have. One that is not set up leaves the other hosts
        theirs: it is logged, and ``status`` and ``doctor`` say it.
        """
        known = {p.name for p in others}
        for setting, name in settings.judge.own.values():
            if name not in known:
                try:
                    yield from providers(name, settings, keys, folder=folder)
                except UserError as e:
                    self._log.warning("this judge is not set up", setting=setting, error=str(e))

    def _record(self, entry: ledger.Entry) -> None:
        async def store() -> None:
            await self._db.commit(ledger.add(entry))
            self._budget.stored(entry)

        self._budget.ended(entry)
        self._spawn(store(), "ledger")

    def _host_of(self, session: str) -> Instance | None:
        s = self._sessions.get(session)
        return self._instances.connected(s.instance, s.directory) if s is not None else None

    async def _run(self, order: RunJudge, deadline_s: float) -> Raw:
        instance = self._host_of(order.session)
        if instance is None:
            raise Unavailable("the session's host is not connected")
        return await instance.call(order, deadline_s)

    async def _look(self, session: str) -> Offered | None:
        instance = self._host_of(session)
        return await self._offered.of(instance) if instance is not None else None
