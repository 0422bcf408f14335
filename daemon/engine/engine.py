"""The engine put together: which part is given which. Nothing is connected after this, and nothing is decided
here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from ..core.errors import Unavailable
from ..core.guards import may_judge
from ..core.session import FINAL_FOR_TASK, settled, unread, unread_turn
from ..core.verdict import Verdict
from .asking import Asking, Foretold
from .commit import Commit, Persist
from .delivery import Delivery
from .features.feature import Feature, Parts
from .features.registry import Features
from .filing import Filing
from .hosts.claude_code import ClaudeCode
from .hosts.host import capabilities
from .hosts.opencode import Opencode
from .intake import Intake
from .jobs import Jobs
from .messages import Messages, Workspaces
from .nudges import Nudges
from .offering import Offering
from .reconnect import Reconnect
from .round import Rounds, Schedule
from .timers import Due, Timers
from .upkeep import Upkeep

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.session import Session
    from ..files.verdict import VerdictFiles
    from ..files.workspace import Workspace
    from .instances import Instances
    from .world import World

# Ends what nobody else will end: turns and work of sessions whose host, or whose daemon, died.
#
# A crash can leave a session stored as being judged, as idle and not judged yet, or as working. Its host is
# usually back within seconds, and ``reconnect`` has its turn judged. What is left after ``AWAY_S`` gets its
# final verdict here (I21), so that no file says `judging` for ever, and no dead session is listed as busy
# or as waiting for an answer that nobody can give any more. Where more was left behind than ``reconnect``
# looks at, the host is there, and the turn is judged now. What is still `judging` after that gets its final
# verdict too.
#
# ``sweep`` looks at one page of the open sessions, so that thousands of them hold nothing up. It sends
# nothing.

AWAY_S: Final = 60.0
PAGE: Final = 200
AT_ONCE: Final = 20  # overlooked turns that one look has judged: their host is asked for all their messages
LOST: Final = "reflectd ended while it judged this turn, and its host did not give its messages again"
UNREAD: Final = "this turn was not judged: its host went away before its messages were read"


class Abandoned:
    """Call ``sweep`` every few seconds."""

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


MakeFeature = Callable[[Parts], Feature]


@dataclass(frozen=True, slots=True)
class Engine:
    """The parts that the process and the server need."""

    instances: Instances
    persist: Persist
    filing: Filing
    timers: Timers
    jobs: Jobs
    features: Features
    offering: Offering
    schedule: Schedule
    intake: Intake
    claude: ClaudeCode
    upkeep: Upkeep
    abandoned: Abandoned

    async def run_timers(self) -> None:
        """Does what is due. An overdue action is dropped, and its session looked at instead."""
        await self.timers.run(Due(self.features.due, lambda p: self.schedule.request(p.session)))

    async def run_jobs(self) -> None:
        """Does background work."""
        self.persist.add(*self.upkeep.first_jobs())
        with contextlib.suppress(Unavailable):  # then they are stored with the next flush that works
            await self.persist.flush()
        await self.jobs.run(self.upkeep.work, self.schedule.busy)


def assemble(
    world: World,
    instances: Instances,
    files: VerdictFiles,
    workspace: Workspace,
    features: Sequence[MakeFeature],
) -> Engine:
    """Build every part once, those first that others are given."""
    persist = Persist(world)
    filing = Filing(world, files)
    jobs = Jobs(world)
    timers = Timers(world, persist)
    every = Features(world)
    workspaces = Workspaces(world, workspace)
    commit = Commit(world, persist, jobs, filing, workspaces, every)
    delivery = Delivery(world, instances, filing)
    messages = Messages(world, instances, workspaces)
    asking = Asking(world, instances)
    foretold = Foretold()
    nudges = Nudges(world, instances, messages, commit, delivery, timers)
    parts = Parts(
        world, instances, messages, asking, commit, delivery, filing, nudges, timers, jobs, foretold, every
    )
    every.make(features, parts)
    offering = Offering(world, messages, every)
    rounds = Rounds(world, persist, instances, messages, asking, commit, delivery, filing, foretold, every)
    schedule = Schedule(world, rounds, commit)
    opencode = Opencode(world.outbox.is_ours, world.logger)
    intake = Intake(
        world,
        persist,
        instances,
        {opencode.name: opencode},
        delivery,
        commit,
        schedule,
        filing,
        jobs,
        every,
        Reconnect(world, persist, instances, messages, delivery, schedule, timers, every),
        workspaces,
        offering,
        asking,
    )
    claude = ClaudeCode(world, instances, intake, schedule, offering)
    return Engine(
        instances,
        persist,
        filing,
        timers,
        jobs,
        every,
        offering,
        schedule,
        intake,
        claude,
        Upkeep(world, jobs, every),
        Abandoned(world, persist, instances, schedule, commit),
    )
