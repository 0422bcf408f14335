"""Prompts that no verdict is behind: the session as it is now, the guards, the commit, then the order.

Used for stuck agents and after a compaction. What can't be read, or can't be stored, sends nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from daemon.core.errors import BadReply, Unavailable
from daemon.core.guards import Skip, may_nudge
from daemon.core.orders import ShowToast
from daemon.core.session import reconcile, taken_back
from daemon.store import outbox
from daemon.store.outbox import Stored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from daemon.core.orders import StoredOrder
    from daemon.core.pending import Pending
    from daemon.core.session import Session
    from daemon.core.transcript import Transcript
    from daemon.engine.delivery import Delivery
    from daemon.engine.evaluation import Evaluations
    from daemon.engine.instances import Instance, Instances
    from daemon.engine.persist import Persist
    from daemon.engine.timers import Timers
    from daemon.engine.world import World


class Nudges:
    """Guards and sends."""

    def __init__(
        self,
        world: World,
        persist: Persist,
        instances: Instances,
        delivery: Delivery,
        evaluations: Evaluations,
        timers: Timers,
    ) -> None:
        self._world = world
        self._persist = persist
        self._instances = instances
        self._delivery = delivery
        self._evaluations = evaluations
        self._timers = timers

    async def current(
        self, p: Pending, but: frozenset[str] = frozenset()
    ) -> tuple[Session, Transcript, Instance] | Skip | None:
        """The session of a pending action by its messages, and its host; a guard's no, but for those named.

        None when it can't be read. An action whose host is away waits for it, until it is overdue.
        """
        world = self._world
        s = world.sessions.get(p.session)
        if s is None:
            return None
        instance = self._instances.connected(s.instance)
        if instance is None:
            self._timers.hold(p)
            return None
        if (no := self.objection(s, p.task, but)) is not None:
            return no
        try:
            transcript = await self._evaluations.read(s, instance)
        except (Unavailable, BadReply) as e:
            world.log.info("not nudged", session=p.session, error=str(e))
            return None
        now = world.sessions.get(p.session)
        if now is None:
            return None
        if (no := self.objection(now, p.task, but)) is not None:  # heard while the messages were under way
            return no
        s = reconcile(now, transcript)
        world.sessions.put(s)
        return self.objection(s, p.task, but) or (s, transcript, instance)

    def objection(self, s: Session, task: str, but: frozenset[str] = frozenset()) -> Skip | None:
        """A guard's no. Logged: a nudge that stays out is visible."""
        world = self._world
        now, limits = world.clock.now_ms(), world.limits(s)
        no = may_nudge(s, task, now, limits, children_busy=self._evaluations.children_busy(s.id))
        if no is None or no.guard in but:
            return None
        world.log.info("not nudged", session=s.id, guard=no.guard, reason=no.reason)
        return no

    async def send(
        self,
        after: Session,
        orders: Sequence[StoredOrder],
        turn: str,
        instance: Instance,
        why: str,
    ) -> None:
        """Tell the person, and commit a nudge before it leaves; one that can't be stored does not leave.

        ``after``: the session as it is then. Call it in the same step as the last guard.
        """
        world = self._world
        for order in orders:
            if isinstance(order, ShowToast):
                self._instances.tell(instance, order)
        nudges = [o for o in orders if not isinstance(o, ShowToast)]
        if not nudges:
            return
        now = world.clock.now_ms()
        rows = [
            Stored(
                outbox.order_id(o.session, turn, outbox.cause_of(o)), o.session, "sent", instance.id, now, o
            )
            for o in nudges
        ]
        before = world.sessions.get(after.id)
        world.sessions.put(after)
        try:
            await self._persist.commit(outbox.add(rows))
        except Unavailable as e:
            world.degraded = str(e)
            world.log.warning("nudge not stored, nothing is sent", session=after.id, error=str(e))
            now_state = world.sessions.get(after.id)
            if before is not None and now_state is not None and now_state.task == before.task:
                world.sessions.put(taken_back(now_state, before))
            return
        for row in rows:
            status = await self._delivery.dispatch(row)
            cause = outbox.cause_of(row.order)
            world.log.info("nudge", session=after.id, turn=turn, cause=cause, status=status, why=why)
            entry = {"session": after.id, "directory": after.directory, "at": now, "title": after.title}
            world.stream.publish("nudge", {**entry, "cause": cause, "status": status, "reason": why})
