"""Reads a session from its host: the turn that a judgement or a nudge is about, as it is now. Nudges."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from ..core.cuts import bounded
from ..core.errors import BadReply, Unavailable
from ..core.given import without
from ..core.guards import Limits, Skip, may_nudge
from ..core.orders import SendFeedback, SendNudge, ShowToast, StoredOrder
from ..core.session import Session, reconcile
from ..judge.case import Case, make_case
from ..store import injections, outbox
from ..stuck.loops import Loop, loop_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.transcript import Message, Transcript
    from ..judge.decide import Decision
    from ..store.timers import Pending
    from .commit import Commit
    from .effects import Effects
    from .hosts.host import Instance
    from .timers import Timers
    from .world import World

FEW: Final = 200
UNDER_WAY_MS: Final = 60_000


class Turn(Struct, frozen=True):
    """A session with its messages at one moment, and the host that has them. Fetched anew after each wait."""

    session: Session
    limits: Limits
    transcript: Transcript
    instance: Instance

    @property
    def message(self) -> Message | None:
        return self.transcript.turn


class Messages(Struct, eq=False):
    """Reads, and corrects the state by the messages."""

    _world: World

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
        """The session as it is now, corrected by the messages read; None when it is gone."""
        now = self._world.sessions.get(session)
        if now is None:
            return None
        s = reconcile(now, transcript)
        self._world.sessions.put(s)
        return Turn(s, self._world.limits(s), transcript, instance)

    async def case(self, transcript: Transcript, s: Session) -> Case:
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
            s.parent == session and s.busy and self._world.instances.connected(s.instance) is not None
            for s in self._world.sessions.in_memory()
        )


class Nudges(Struct, eq=False):
    """Prompts without a verdict. What can't be read or stored sends nothing."""

    _world: World
    _messages: Messages
    _commit: Commit
    _effects: Effects
    _timers: Timers

    async def current(self, p: Pending, but: frozenset[str] = frozenset()) -> Turn | Skip | None:
        """The session of a pending action by its messages; or the no of a guard.

        ``but``: guards whose no does not count. None when the messages can't be read. An action whose host is
        away waits for it until it is overdue.
        """
        world = self._world
        s = world.sessions.get(p.session)
        if s is None:
            return None
        await world.projects.read(s.directory)
        s = world.sessions.get(p.session) or s
        instance = world.instances.connected(s.instance)
        if instance is None:
            self._timers.hold(p)
            return None
        if (no := self.objection(s, p.task, but)) is not None:
            return no
        try:
            transcript = await self._messages.read(s, instance)
        except (Unavailable, BadReply) as e:
            world.log.info("not nudged", session=p.session, error=str(e))
            return None
        now = world.sessions.get(p.session)
        if now is not None and (no := self.objection(now, p.task, but)) is not None:
            return no  # heard while the messages were under way
        turn = self._messages.turn(p.session, transcript, instance)
        return turn and (self.objection(turn.session, p.task, but) or turn)

    def objection(self, s: Session, task: str, but: frozenset[str] = frozenset()) -> Skip | None:
        """A guard's no. It is logged, so that a nudge that is not sent is visible."""
        world = self._world
        now, limits = world.clock.now_ms(), world.limits(s)
        no = may_nudge(s, task, now, limits, children_busy=self._messages.children_busy(s.id))
        if no is None or no.guard in but:
            return None
        world.log.info("not nudged", session=s.id, guard=no.guard, reason=no.reason)
        return no

    async def send(
        self, after: Session, orders: Sequence[StoredOrder], turn: str, instance: Instance, why: str
    ) -> None:
        """Tell the person, and store a nudge before it leaves; one that can't be stored does not leave.

        ``after``: the session as it is then. Call it in the same step as the last guard.
        """
        world = self._world
        for order in orders:
            if isinstance(order, ShowToast):
                instance.tell(order)
        nudges = [o for o in orders if not isinstance(o, ShowToast)]
        if not nudges:
            return
        just_now = world.clock.now_ms() - UNDER_WAY_MS
        if any(isinstance(o.order, SendNudge) and o.created > just_now for o in world.outbox.open(after.id)):
            world.log.info("not nudged", session=after.id, reason="another nudge is under way")
            return
        for row in await self._commit.store(after, nudges, turn, instance.id) or ():
            status = await self._effects.dispatch(row)
            cause = outbox.cause_of(row.order)
            world.log.info("nudge", session=after.id, turn=turn, cause=cause, status=status, why=why)
            entry = {"session": after.id, "directory": after.directory, "title": after.title}
            more = {"cause": cause, "status": status, "reason": why, "at": world.clock.now_ms()}
            world.stream.publish("nudge", entry | more)


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
