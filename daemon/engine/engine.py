"""The engine put together: which part is given which. Nothing is connected after this, and nothing is decided
here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct

from ..core.errors import Unavailable
from .asking import Asking
from .commit import Commit
from .effects import Effects
from .feature import Feature, Features
from .filing import Filing
from .hosts.claude_code import ClaudeCode
from .hosts.codex import Codex
from .hosts.opencode import Opencode
from .intake import Intake
from .jobs import Jobs
from .nudges import Nudges
from .offering import Offering
from .proving import Proving
from .recover import Recover
from .round import Schedule
from .timers import Timers
from .turn import Messages
from .upkeep import Upkeep

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..files.verdict import VerdictFiles
    from .hosts.host import Instances
    from .world import World


class Engine(Struct, frozen=True, eq=False):
    """The parts. A feature may use all of them; it uses as few as it can."""

    world: World
    instances: Instances
    messages: Messages
    asking: Asking
    proving: Proving
    commit: Commit
    effects: Effects
    filing: Filing
    nudges: Nudges
    timers: Timers
    jobs: Jobs
    features: Features
    offering: Offering
    schedule: Schedule
    recover: Recover
    intake: Intake
    hooked: dict[str, ClaudeCode | Codex]
    upkeep: Upkeep

    def sweep(self) -> None:
        """Sessions whose process is gone without a word are over."""
        for host in self.hooked.values():
            host.sweep()

    async def run_timers(self) -> None:
        """Does what is due. An overdue action is dropped, and its session looked at instead."""
        await self.timers.run(self.features.due, lambda p: self.schedule.request(p.session))

    async def run_jobs(self) -> None:
        """Does background work."""
        self.commit.add(*self.upkeep.first_jobs())
        with contextlib.suppress(Unavailable):  # then they are stored with the next flush that works
            await self.commit.flush()
        await self.jobs.run(self.upkeep.work, self.schedule.busy)


MakeFeature = Callable[[Engine], Feature]


def assemble(
    world: World, instances: Instances, files: VerdictFiles, features: Sequence[MakeFeature]
) -> Engine:
    """Build every part once, those first that others are given; the features last."""
    jobs = Jobs(world)
    commit = Commit(world, jobs)
    timers = Timers(world, commit)
    every = Features(world)
    filing = Filing(world, files)
    effects = Effects(world, instances, commit, filing, every)
    messages = Messages(world, instances)
    asking = Asking(world, instances)
    proving = Proving(world, asking, messages)
    nudges = Nudges(world, instances, messages, commit, effects, timers)
    offering = Offering(world, messages, every)
    schedule = Schedule(world, instances, messages, asking, proving, commit, effects, filing, every)
    recover = Recover(world, instances, messages, commit, effects, schedule, timers, every)
    opencode = Opencode(world.outbox.is_ours, world.logger)
    intake = Intake(
        world, instances, {opencode.name: opencode}, commit, effects, schedule, filing, every, recover,
        offering, asking,
    )  # fmt: skip
    given = (world, instances, intake, schedule, offering)
    hooked = {host.name: host for host in (ClaudeCode(*given), Codex(*given))}
    engine = Engine(
        world, instances, messages, asking, proving, commit, effects, filing, nudges, timers, jobs, every,
        offering, schedule, recover, intake, hooked,
        Upkeep(world, jobs, every),
    )  # fmt: skip
    every.make([partial(kind, engine) for kind in features])
    return engine
