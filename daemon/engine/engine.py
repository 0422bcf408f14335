"""The engine put together: which part is given which. Nothing is decided here."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
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
from .jobs import RETENTION, UPKEEP, Jobs, Upkeep
from .offering import Offering
from .proving import Proving
from .recover import Recover
from .round import Schedule
from .timers import Timers
from .turn import Messages, Nudges

if TYPE_CHECKING:
    from ..files.verdict import VerdictFiles
    from .hosts.host import Instances
    from .world import World


class Engine(Struct, frozen=True, eq=False):
    """The parts. A feature may use all of them; it uses as few as it can."""

    world: World
    messages: Messages
    asking: Asking
    proving: Proving
    commit: Commit
    effects: Effects
    filing: Filing
    nudges: Nudges
    timers: Timers
    jobs: Jobs
    offering: Offering
    schedule: Schedule
    recover: Recover
    intake: Intake
    hooked: dict[str, ClaudeCode | Codex]
    upkeep: Upkeep

    @property
    def instances(self) -> Instances:
        return self.world.instances

    @property
    def features(self) -> Features:
        return self.world.features

    def sweep(self) -> None:
        """Sessions whose process is gone without a word are over."""
        for host in self.hooked.values():
            host.sweep()

    async def run_timers(self) -> None:
        """Does what is due. An overdue action is dropped, and its session looked at instead."""
        await self.timers.run(lambda p: self.schedule.request(p.session))

    async def run_jobs(self) -> None:
        """Does background work."""
        self.commit.add(self.jobs.statement(RETENTION, "", lane=UPKEEP))
        with contextlib.suppress(Unavailable):  # then they are stored with the next flush that works
            await self.commit.flush()
        await self.jobs.run(self.upkeep.work, self.schedule.busy)


MakeFeature = Callable[[Engine], Feature]


def assemble(world: World, files: VerdictFiles, features: Sequence[MakeFeature]) -> Engine:
    """Build every part once, those first that others are given; the features last."""
    jobs = Jobs(world)
    commit = Commit(world, jobs)
    timers = Timers(world, commit)
    filing = Filing(world, files)
    effects = Effects(world, commit, filing)
    messages, asking = Messages(world), Asking(world)
    proving = Proving(world, asking, messages)
    nudges = Nudges(world, messages, commit, effects, timers)
    offering = Offering(world, messages)
    schedule = Schedule(world, messages, asking, proving, commit, effects, filing)
    recover = Recover(world, messages, commit, effects, schedule, timers)
    hosts = {Opencode.name: Opencode(world.outbox.is_ours, world.logger)}
    intake = Intake(world, hosts, commit, effects, schedule, filing, recover, offering, asking)
    hooked = {kind.name: kind(world, intake, schedule, offering) for kind in (ClaudeCode, Codex)}
    engine = Engine(
        world, messages, asking, proving, commit, effects, filing, nudges, timers, jobs,
        offering, schedule, recover, intake, hooked, Upkeep(world, jobs),
    )  # fmt: skip
    world.features.make([partial(kind, engine) for kind in features])
    return engine
