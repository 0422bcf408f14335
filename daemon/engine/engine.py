"""The engine put together: which part is given which. Nothing is connected after this, and nothing is decided
here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..core.errors import Unavailable
from .asking import Asking
from .commit import Commit, Persist
from .delivery import Delivery
from .features.feature import Feature, Parts
from .features.registry import Features
from .filing import Filing
from .hosts.claude_code import ClaudeCode
from .hosts.opencode import Opencode
from .intake import Intake
from .jobs import Jobs
from .messages import Messages
from .nudges import Nudges
from .offering import Offering
from .recover import Abandoned, Reconnect
from .round import Schedule
from .timers import Due, Timers
from .upkeep import Upkeep

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..files.verdict import VerdictFiles
    from .instances import Instances
    from .world import World

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
    features: Sequence[MakeFeature],
) -> Engine:
    """Build every part once, those first that others are given."""
    persist = Persist(world)
    filing = Filing(world, files)
    jobs = Jobs(world)
    timers = Timers(world, persist)
    every = Features(world)
    commit = Commit(world, persist, jobs, filing, every)
    delivery = Delivery(world, instances, filing, every)
    messages = Messages(world, instances)
    asking = Asking(world, instances)
    nudges = Nudges(world, instances, messages, commit, delivery, timers)
    parts = Parts(world, instances, messages, asking, commit, delivery, filing, nudges, timers, jobs, every)
    every.make(features, parts)
    offering = Offering(world, messages, every)
    schedule = Schedule(world, persist, instances, messages, asking, commit, delivery, filing)
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
        every,
        Reconnect(world, persist, instances, messages, delivery, schedule, timers, every),
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
