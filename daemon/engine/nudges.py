"""Prompts that no verdict is behind: the session as it is now, the guards, the commit, then the order.

Used for stuck agents and after a compaction. Where the messages can't be read, or the nudge can't be stored,
nothing is sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..core.errors import BadReply, Unavailable
from ..core.guards import Skip, may_nudge
from ..core.orders import SendNudge, ShowToast
from ..store import outbox

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.orders import StoredOrder
    from ..core.session import Session
    from .commit import Commit
    from .effects import Effects
    from .hosts.host import Instance, Instances
    from .timers import Pending, Timers
    from .turn import Messages, Turn
    from .world import World

UNDER_WAY_MS: Final = 60_000


class Nudges:
    """Guards and sends."""

    def __init__(
        self,
        world: World,
        instances: Instances,
        messages: Messages,
        commit: Commit,
        effects: Effects,
        timers: Timers,
    ) -> None:
        self._world = world
        self._instances = instances
        self._messages = messages
        self._commit = commit
        self._effects = effects
        self._timers = timers

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
        instance = self._instances.connected(s.instance)
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
