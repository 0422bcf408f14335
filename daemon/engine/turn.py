"""Reads a session from its host: the turn that a judgement or a nudge is about, as it is now."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from ..core.cuts import bounded
from ..core.errors import Unavailable
from ..core.given import without
from ..core.orders import SendFeedback
from ..core.session import reconcile
from ..judge.case import make_case
from ..store import injections
from ..stuck.loops import loop_text

if TYPE_CHECKING:
    from ..core.guards import Limits
    from ..core.session import Session
    from ..core.transcript import Message, Transcript
    from ..judge.case import Case
    from ..judge.decide import Decision
    from ..stuck.loops import Loop
    from .hosts.host import Instance, Instances
    from .world import World

FEW: Final = 200


class Turn(Struct, frozen=True):
    """A session with its messages at one moment, and the host that has them. Fetched anew after each wait."""

    session: Session
    limits: Limits
    transcript: Transcript
    instance: Instance

    @property
    def message(self) -> Message | None:
        """The answer that ended the turn."""
        return self.transcript.turn


class Messages:
    """Reads, and corrects the state by the messages."""

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
            transcript = replace(await instance.host.read(s, instance), begun=s.task)
        await self._world.projects.read(s.directory)
        transcript = without(transcript, injections.behind_calls(self._world.db, s.id))
        few = len(transcript.messages) < FEW and len(transcript.calls) < FEW
        return bounded(transcript) if few else await asyncio.to_thread(bounded, transcript)

    def turn(self, session: str, transcript: Transcript, instance: Instance) -> Turn | None:
        """The session as it is now, corrected by the messages read, which may tell of a task that we never
        heard of; None when it is gone.
        """
        now = self._world.sessions.get(session)
        if now is None:
            return None
        s = reconcile(now, transcript)
        self._world.sessions.put(s)
        return Turn(s, self._world.limits(s), transcript, instance)

    async def case(self, transcript: Transcript, s: Session) -> Case:
        """The case of the transcript's last turn."""
        world = self._world

        def make() -> Case:
            return make_case(
                transcript,
                at=world.clock.now_ms(),
                nonce=world.nonce(),
                templates=world.prompt_texts(s.directory),
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


def silent(transcript: Transcript) -> Transcript:
    """The transcript without the words of the last answer, which are no part of what repeats itself."""
    turn = transcript.turn
    messages = tuple(replace(m, text="") if m is turn else m for m in transcript.messages)
    return replace(transcript, messages=messages)


def naming_loop(decision: Decision, loop: Loop | None) -> Decision:
    """The same feedback with what repeats itself: that is then the one time that the agent is told."""
    if loop is None or not any(isinstance(o, SendFeedback) for o in decision.orders):
        return decision
    orders = tuple(
        replace(o, text=f"{o.text}\n\n{loop_text(loop)}") if isinstance(o, SendFeedback) else o
        for o in decision.orders
    )
    session = replace(decision.session, loop=loop.key, loop_count=loop.count)
    return replace(decision, session=session, orders=orders)
