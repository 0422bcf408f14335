"""What the host knows of a session: its messages, and whether its sub-agents still work."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ..core.bounds import bounded
from ..core.errors import Unavailable
from ..core.given import without
from ..judge.case import make_case
from ..store import injections

if TYPE_CHECKING:
    from ..core.session import Session
    from ..core.transcript import Transcript
    from ..judge.case import Case
    from .hosts.host import Instance
    from .instances import Instances
    from .world import World

FEW: Final = 200


class Messages:
    """Reads; changes nothing."""

    def __init__(self, world: World, instances: Instances) -> None:
        self._world = world
        self._instances = instances

    async def read(self, s: Session, instance: Instance) -> Transcript:
        """The session's messages: the truth, within bounds, because no text may stop the loop, and without
        what is recorded as given behind results of calls. Raises ``Unavailable`` or ``BadReply``. The
        settings of its project are as new as they.

        After a restart hundreds of sessions may have to be read. Each waits for its turn here, so that the
        time that the host has for one is not used up by the others.
        """
        async with instance.reading:
            if instance.can.order_stream and not instance.connected:
                raise Unavailable(f"{instance.id} went away before it was asked")
            found = replace(await instance.host.read(s, instance), begun=s.task)
        await self._world.projects.read(s.directory)
        found = without(found, injections.behind_calls(self._world.db, s.id))
        few = len(found.messages) < FEW and len(found.calls) < FEW
        return bounded(found) if few else await asyncio.to_thread(bounded, found)

    async def case(self, transcript: Transcript, s: Session) -> Case:
        """The case of the transcript's last turn."""
        world = self._world

        def make() -> Case:
            return make_case(
                transcript,
                at=world.clock.now_ms(),
                nonce=world.nonce(),
                templates=world.templates(s.directory),
                open_items=s.open_items,
                project=world.project_rules.lines(s.directory),
            )

        return await asyncio.to_thread(make)  # files of the project are read, and a transcript may be long

    def children_busy(self, session: str) -> bool:
        """Do sub-agents of this session work? Those of a host that died stay busy, and don't count."""
        return any(
            s.parent == session and s.busy and self._instances.connected(s.instance) is not None
            for s in self._world.sessions.in_memory()
        )
