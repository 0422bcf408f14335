"""Looks after sessions that were left behind: their host is connected again, or it stays away."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ..core.errors import ReflectdError
from ..core.guards import may_judge
from ..core.orders import DeleteSessions
from ..core.session import FINAL_FOR_TASK, settled, unread, unread_turn
from ..core.verdict import Verdict
from ..store import sessions as rows
from .features.feature import Returned
from .hosts.host import capabilities
from .world import DAY_MS

if TYPE_CHECKING:
    from ..core.session import Session
    from ..store.outbox import Stored
    from .commit import Commit, Persist
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
AWAY_S: Final = 60.0
PAGE: Final = 200
AT_ONCE: Final = 20  # overlooked turns that one look has judged: their host is asked for all their messages
LOST: Final = "reflectd ended while it judged this turn, and its host did not give its messages again"
UNREAD: Final = "this turn was not judged: its host went away before its messages were read"


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
                    self._features.heard(s, s, Returned())
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


class Abandoned:
    """Ends turns and work of sessions whose host, or whose daemon, died, after ``AWAY_S``.

    A host is usually back within seconds, and ``Reconnect`` has its turns judged. The others get their final
    verdict here (I21), so that no file says `judging` for ever and no dead session is listed as busy. Where
    the host is there and had more than ``Reconnect`` looks at, the turn is judged now, once. Call ``sweep``
    every few seconds; it looks at one page of the open sessions and sends nothing.
    """

    def __init__(
        self, world: World, persist: Persist, instances: Instances, schedule: Schedule, commit: Commit
    ) -> None:
        self._world = world
        self._persist = persist
        self._instances = instances
        self._schedule = schedule
        self._commit = commit
        self._page = ("", "")
        self._room = AT_ONCE
        self._since: dict[str, float] = {}  # open session without anybody → when that was first seen
        self._seen: set[str] = set()  # those of this round through the pages
        self._tried: set[str] = set()  # left ``judging``, and judged once more because their host is there

    def sweep(self) -> None:
        """Look at the next page of open sessions. The first page follows the last one."""
        self._room = AT_ONCE
        found = self._world.sessions.open_after(self._page, PAGE)
        for _, session in found:
            self._look(session)
        if len(found) == PAGE:
            self._page = found[-1]
            return
        self._page = ("", "")
        self._since = {session: at for session, at in self._since.items() if session in self._seen}
        self._seen.clear()
        self._tried = {session for session in self._tried if self._left_judging(session)}

    def _look(self, session: str) -> None:
        s = self._world.sessions.peek(session)
        if s is None or self._schedule.task(session) is not None:
            return
        overlooked = self._instances.connected(s.instance) is not None and session not in self._tried
        if overlooked and s.phase != "judging" and not self._may_judge(s):
            return
        self._seen.add(session)
        now = self._world.clock.monotonic()
        if session not in self._since:  # what its project says is known when its time is over
            self._world.spawn(self._world.projects.read(s.directory), "project settings", "look")
        if now - self._since.setdefault(session, now) < AWAY_S:
            return
        if not overlooked:
            self._end(s)
        elif self._room:
            self._room -= 1
            del self._since[session]
            if s.phase == "judging":
                self._tried.add(session)
            self._schedule.request(session)

    def _left_judging(self, session: str) -> bool:
        s = self._world.sessions.peek(session)
        return s is not None and s.phase == "judging"

    def _may_judge(self, s: Session) -> bool:
        """Its agent is idle and not judged yet, and nothing says to wait."""
        if not s.recheck:
            return False
        no = may_judge(s, self._world.clock.now_ms(), self._world.limits(s))
        return no is None or not no.wait

    def _end(self, s: Session) -> None:
        """What the session waits for does not come."""
        world, ended = self._world, replace(s, busy=False, retrying=False, waiting=())
        quiet = s.off or s.judge or bool(s.parent) or not world.limits(s).enabled
        verdict: Verdict | None = None
        if s.phase == "judging":
            ended = settled(ended, s.turn, "error", "not_judged")
            verdict = Verdict(s.id, s.task, s.turn, "error", world.clock.now_ms(), reason=LOST)
        elif s.recheck:
            if self._may_come_back(s):
                return
            ended = unread(ended) if s.task and not quiet else replace(ended, recheck=False)
            if s.task and not quiet and s.phase not in FINAL_FOR_TASK:
                verdict = Verdict(s.id, s.task, unread_turn(s), "error", world.clock.now_ms(), reason=UNREAD)
        elif s.turn not in {"", s.final}:  # the agent went on while this was judged, and died in its work
            ended = replace(ended, final=s.turn)
            at = world.clock.now_ms()
            verdict = Verdict(s.id, s.task, s.turn, "skipped", at, reason="guard:host_gone")
        if ended == s:
            return
        world.log.info("session without its host", session=s.id, phase=s.phase, busy=s.busy)
        world.sessions.put(ended)
        if verdict is not None:
            world.spawn(self._commit.record(verdict, s.directory), "abandoned")
        else:
            world.spawn(self._persist.flush(), "abandoned")

    def _may_come_back(self, s: Session) -> bool:
        """A host that holds a stream of orders may still return and tell what it answered; until the idle is
        too old to act on.
        """
        age = self._world.clock.now_ms() - s.idle_at
        return capabilities(s.host).order_stream and age <= self._world.limits(s).max_idle_age_ms
