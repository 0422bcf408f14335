"""Which models each host offers: asked at most every five minutes, for the choice of a small one.

A host that does not say (an older shim, no answer in time) is None: then the session's own model is asked.
That is logged once when it begins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..core.errors import ReflectdError, Unavailable
from ..core.fast import Offered
from ..llm.offered import Fresh

if TYPE_CHECKING:
    from ..core.ports import Clock
    from ..log import Logger
    from .hosts.host import Instance
    from .instances import Instances

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
