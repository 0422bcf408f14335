"""Looks after a host that is connected again: what was left behind while it, or the daemon, was away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.errors import ReflectdError
from ..core.orders import DeleteSessions
from ..store import sessions as rows
from .world import DAY_MS

if TYPE_CHECKING:
    from ..core.session import Session
    from ..store.outbox import Stored
    from .commit import Persist
    from .delivery import Delivery
    from .features.registry import Features
    from .hosts.host import Instance
    from .instances import Instances
    from .messages import Messages
    from .round import Schedule
    from .timers import Timers
    from .world import World

SWEEP_S = 20.0
LOOKED_AFTER = 200
LEFT_MS = 600_000  # no judgement takes longer


class Reconnect:
    """One look for each connection."""

    def __init__(
        self,
        world: World,
        persist: Persist,
        instances: Instances,
        messages: Messages,
        delivery: Delivery,
        schedule: Schedule,
        timers: Timers,
        features: Features,
    ) -> None:
        self._world = world
        self._persist = persist
        self._instances = instances
        self._messages = messages
        self._delivery = delivery
        self._schedule = schedule
        self._timers = timers
        self._features = features
        self._boot = world.clock.now_ms()

    async def look_after(self, instance: Instance) -> None:
        """Orders without a result are looked up, rows left ``judging`` judged again, leftovers deleted."""
        world = self._world
        try:
            self._delivery.toasts_over(instance.id)
            for stored in self._delivery.unresolved(instance):
                s = world.sessions.get(stored.session)
                if s is not None:
                    await self._look_up(stored, s, instance)
            for session in self._sessions(instance):
                s = world.sessions.get(session)
                if s is not None and s.busy:
                    self._features.returned(s)
                if s is None or not (s.busy or s.waiting) or s.recheck or s.phase == "judging":
                    self._schedule.request(session)
            self._timers.wake()
            left = self._left_over(instance.directory) if instance.can.order_stream else ()
            if left:
                await instance.call(DeleteSessions(left), SWEEP_S)
                now = world.clock.now_ms()
                for session in left:
                    self._persist.add(rows.judge_deleted(session, now))
                await self._persist.flush()
        except ReflectdError as e:
            world.log.info("not looked after", instance=instance.id, error=str(e))

    def _sessions(self, instance: Instance) -> list[str]:
        """Those that the host may have left behind. Of a folder with thousands the newest: the others wait
        for their next event, or for ``abandoned``.
        """
        if instance.session:
            s = self._world.sessions.get(instance.session)
            return [instance.session] if s is not None and rows.is_open(s) else []
        since = self._world.clock.now_ms() - DAY_MS
        return self._world.sessions.open_in(instance.directory, since, LOOKED_AFTER)

    def _left_over(self, directory: str) -> tuple[str, ...]:
        """Judge sessions whose answer nobody can get any more: asked for by an earlier daemon, of a host that
        is gone, or older than any judgement. One that runs is not touched (I37).
        """
        world = self._world
        before = max(self._boot, world.clock.now_ms() - LEFT_MS)
        left = []
        for session, created in world.sessions.judge_sessions(directory).items():
            s = world.sessions.get(session)
            if created < before or (s is not None and self._instances.connected(s.instance) is None):
                left.append(session)
        return tuple(left)

    async def _look_up(self, stored: Stored, s: Session, instance: Instance) -> None:
        try:
            await self._delivery.look_up(stored, await self._messages.read(s, instance))
        except ReflectdError as e:
            self._world.log.info("order not looked up", order=stored.id, session=s.id, error=str(e))
