"""Who may be asked: the providers with their budget, and how a host lends its models to its own sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.errors import Unavailable, UserError
from ..core.policy import judging
from ..core.session import Session
from ..llm.offline import OfflineProvider
from ..llm.select import estimate_usd, providers
from ..store import ledger
from .budget import Budget
from .calls import Calls
from .fast import HostModels
from .hosts.host import CAPABILITIES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from msgspec import Raw

    from ..core.fast import Offered
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
