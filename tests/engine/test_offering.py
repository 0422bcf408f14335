"""What is put in front of an agent, and of which agents."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from daemon.core.offers import Moment, Offer
from daemon.core.session import Session
from daemon.engine.engine import Engine
from daemon.engine.feature import Feature
from daemon.engine.hosts.host import QUEUE, Instance
from daemon.engine.offering import CHARS
from tests.support.hosts.world import World


class Talks(Feature):
    """Offers two texts and notes when it was asked."""

    name = "talks"

    def __init__(self, parts: Engine) -> None:
        super().__init__(parts)
        self.parts = parts
        self.asked: list[Moment] = []

    def context(self, s: Session, moment: Moment) -> Sequence[Offer]:
        self.asked.append(moment)
        return (Offer("1", "point", "First."), Offer("2", "lesson", f"Second: {moment.text}"))


class Desk:
    """A daemon with one session and the feature."""

    def __init__(self, folder: Path) -> None:
        self.talks: Talks = None  # type: ignore[assignment]
        self.w = World(folder, features=(self._make,))

    def _make(self, parts: Engine) -> Feature:
        self.talks = Talks(parts)
        return self.talks

    async def begin(self) -> tuple[Session, Instance]:
        await self.w.host.connect(await self.w.sim.start())
        await self.w.host.create("ses_a")
        await self.w.host.types("ses_a")
        await self.w.sim.settle()
        s = self.w.sim.daemon.world.sessions.get("ses_a")
        instance = self.w.sim.daemon.engine.instances.get(self.w.host.id)
        assert s is not None
        assert instance is not None
        return s, instance

    async def end(self) -> None:
        await self.w.host.disconnect()
        await self.w.sim.stop()


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


async def test_each_offer_once_a_session_and_again_after_a_compaction(desk: Desk) -> None:
    """After a compaction the agent has lost what it was given, and the messages are read for the offers."""
    s, instance = await desk.begin()
    offering = desk.w.sim.daemon.engine.offering
    assert await offering.text(s, "start", instance) == "First.\n\nSecond: "
    assert await offering.text(s, "prompt", instance, "hello") == ""
    assert await offering.text(s, "compacted", instance) == "First.\n\nSecond: "
    start, prompt, compacted = desk.talks.asked
    assert (start.transcript, prompt.transcript, prompt.text) == (None, None, "hello")
    assert compacted.transcript is not None
    await desk.end()


@pytest.mark.shows("I40", "LEARN-09")
async def test_nothing_for_those_who_are_left_alone(desk: Desk) -> None:
    """Switched off, aborted, a sub-agent, a judge: not even asked for."""
    s, instance = await desk.begin()
    offering = desk.w.sim.daemon.engine.offering
    for left_alone in (
        replace(s, off=True),
        replace(s, parent="p"),
        replace(s, judge=True),
    ):
        assert await offering.text(left_alone, "start", instance) == ""
    await desk.w.sim.daemon.engine.intake.switch(on=False, directory=s.directory)
    assert await offering.text(s, "start", instance) == ""
    assert await offering.text(replace(s, aborted=True), "action", instance) == ""
    assert desk.talks.asked == []
    await desk.end()


@pytest.mark.shows("I35")
async def test_messages_that_cannot_be_read_are_no_error(desk: Desk) -> None:
    """A host that answers with nonsense gets nothing, and nothing fails."""
    s, instance = await desk.begin()
    del desk.w.host.sessions["ses_a"]
    desk.w.host.deaf = True
    for _ in range(QUEUE):
        instance.push(b"x")
    assert await desk.w.sim.daemon.engine.offering.text(s, "compacted", instance) == ""
    assert desk.talks.asked == []
    await desk.end()


def test_the_budget_is_below_what_a_host_cuts() -> None:
    """Claude Code cuts a hook's context at 10,000 characters."""
    assert CHARS < 10_000
