"""Looks after sessions that were left behind: their host is connected again, or it stays away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from ..core.errors import ReflectdError
from ..core.guards import may_judge
from ..core.orders import DeleteSessions, Prompting
from ..core.session import FINAL_FOR_TASK, Session, settled, unread, unread_turn
from ..store import sessions as rows
from .feature import Returned
from .hosts.host import Instance, capabilities
from .world import DAY_MS, World

if TYPE_CHECKING:
    from ..store.outbox import Stored
    from .commit import Commit
    from .effects import Effects
    from .round import Schedule
    from .timers import Timers
    from .turn import Messages

SWEEP_S: Final = 20.0
LOOKED_AFTER: Final = 200
LEFT_MS: Final = 600_000  # no judgement takes longer
AWAY_S: Final = 60.0
PAGE: Final = 200
AT_ONCE: Final = 20  # overlooked turns that one look has judged: their host is asked for all their messages
LOST: Final = "reflectd ended while it judged this turn, and its host did not give its messages again"
UNREAD: Final = "this turn was not judged: its host went away before its messages were read"


class Recover(Struct, eq=False):
    """``look_after`` for each connection, ``sweep`` every few seconds.

    ``_since``: open sessions without anybody, and when that was first seen (monotonic seconds). ``_seen``:
    those of this round through the pages. ``_tried``: left ``judging``, and judged once more because their
    host is there.
    """

    _world: World
    _messages: Messages
    _commit: Commit
    _effects: Effects
    _schedule: Schedule
    _timers: Timers
    _boot: int = 0
    _page: tuple[str, str] = ("", "")
    _since: dict[str, float] = field(default_factory=dict)
    _seen: set[str] = field(default_factory=set)
    _tried: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Judge sessions of before now are an earlier daemon's."""
        self._boot = self._world.clock.now_ms()

    async def look_after(self, instance: Instance) -> None:
        """Orders without a result are looked up, rows left ``judging`` judged again, leftovers deleted."""
        world = self._world
        try:
            self._effects.toasts_over(instance.id)
            for stored in world.outbox.open(instance=instance.id):
                if isinstance(stored.order, Prompting):
                    await self._look_up(stored, instance)
            for session in self._sessions(instance):
                s = world.sessions.get(session)
                if s is not None and s.busy:
                    self._world.features.heard(s, s, Returned())
                if s is None or not (s.busy or s.waiting) or s.recheck or s.phase == "judging":
                    self._schedule.request(session)
            self._timers.wake()
            left = self._left_over(instance.directory) if instance.can.order_stream else ()
            if left:
                await instance.call(DeleteSessions(left), SWEEP_S)
                now = world.clock.now_ms()
                self._commit.add(*(rows.judge_deleted(session, now) for session in left))
                await self._commit.flush()
        except ReflectdError as e:
            world.log.info("not looked after", instance=instance.id, error=str(e))

    async def _look_up(self, stored: Stored, instance: Instance) -> None:
        s = self._world.sessions.get(stored.session)
        try:
            if s is not None:
                await self._effects.look_up(stored, await self._messages.read(s, instance))
        except ReflectdError as e:
            self._world.log.info("order not looked up", order=stored.id, error=str(e))

    def _sessions(self, instance: Instance) -> list[str]:
        """Those that the host may have left behind; of thousands the newest, ``sweep`` has the others."""
        if instance.session:
            s = self._world.sessions.get(instance.session)
            return [instance.session] if s is not None and rows.is_open(s) else []
        since = self._world.clock.now_ms() - DAY_MS
        return self._world.sessions.open_in(instance.directory, since, LOOKED_AFTER)

    def _left_over(self, directory: str) -> tuple[str, ...]:
        """Judge sessions whose answer nobody can get any more: asked for by an earlier daemon, of a host that
        is gone, or older than any judgement. One that runs is not touched (I37).
        """
        world, left = self._world, list[str]()
        before = max(self._boot, world.clock.now_ms() - LEFT_MS)
        for session, created in world.sessions.judge_sessions(directory).items():
            s = world.sessions.get(session)
            if created < before or (s is not None and self._world.instances.connected(s.instance) is None):
                left.append(session)
        return tuple(left)

    def sweep(self) -> None:
        """Ends turns and work of sessions whose host, or whose daemon, died, after ``AWAY_S``: one page of
        the open sessions, and the first page follows the last one. Sends nothing.

        A host is usually back within seconds, and ``look_after`` has its turns judged. The others get their
        final verdict here (I21), so that no file says `judging` for ever and no dead session is listed as
        busy. Where the host is there and had more than ``look_after`` looks at, the turn is judged now, once.
        """
        page = self._world.sessions.open_after(self._page, PAGE)
        overlooked = [session for _, session in page if self._look(session)]
        for session in overlooked[:AT_ONCE]:
            del self._since[session]
            if self._left_judging(session):
                self._tried.add(session)
            self._schedule.request(session)
        if len(page) == PAGE:
            self._page = page[-1]
            return
        self._page = ("", "")
        self._since = {session: at for session, at in self._since.items() if session in self._seen}
        self._seen.clear()
        self._tried = {session for session in self._tried if self._left_judging(session)}

    def _look(self, session: str) -> bool:
        """End it when its time is over. True: its host is there, and has to be asked."""
        s = self._world.sessions.peek(session)
        if s is None or self._schedule.task(session) is not None:
            return False
        overlooked = self._world.instances.connected(s.instance) is not None and session not in self._tried
        if overlooked and s.phase != "judging" and not self._may_judge(s):
            return False
        self._seen.add(session)
        now = self._world.clock.monotonic()
        if session not in self._since:  # what its project says is known when its time is over
            self._world.spawn(self._world.projects.read(s.directory), "project settings", "look")
        if now - self._since.setdefault(session, now) < AWAY_S:
            return False
        if not overlooked:
            self._end(s)
        return overlooked

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
        """Nothing comes any more for this session: it gets its last verdict."""
        world, after = self._world, replace(s, busy=False, retrying=False, waiting=())
        quiet = s.off or s.judge or bool(s.parent) or not world.limits(s).enabled or not s.task
        verdict: tuple[str, Literal["error", "skipped"], str] | None = None
        if s.phase == "judging":
            after = settled(after, s.turn, "error", "not_judged")
            verdict = (s.turn, "error", LOST)
        elif s.recheck:
            age = world.clock.now_ms() - s.idle_at
            if capabilities(s.host).order_stream and age <= world.limits(s).max_idle_age_ms:
                return  # its host may still return and tell what it answered
            after = replace(after, recheck=False) if quiet else unread(after)
            if not quiet and s.phase not in FINAL_FOR_TASK:
                verdict = (unread_turn(s), "error", UNREAD)
        elif s.turn not in {"", s.final}:  # the agent went on while this was judged, and died in its work
            after = replace(after, final=s.turn)
            verdict = (s.turn, "skipped", "guard:host_gone")
        if after == s:
            return
        world.log.info("session without its host", session=s.id, phase=s.phase, busy=s.busy)
        world.sessions.put(after)
        world.spawn(self._effects.ended(s, *verdict) if verdict else self._commit.flush(), "left behind")
