"""A daemon that learns in one project, for the tests of points and of lessons."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

from daemon import config
from daemon.store import ledger
from daemon.testing import FakeClock, ScriptedLLM
from tests.support.hosts.opencode_sim import SimDaemon

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.hosts.claude_code_sim import Heard

COMPLETE = {"complete": True, "severity": "NONE"}


class LearningSite:
    """``usual``: its settings. ``rounds``: how often time passes, for jobs that make others due."""

    usual: ClassVar[str] = ""
    rounds: ClassVar[int] = 1
    model: ClassVar[type[ScriptedLLM]] = ScriptedLLM

    def __init__(self, folder: Path, text: str | None = None) -> None:
        self.clock, self.llm = FakeClock(), self.model()
        self.project = folder / "work"
        self.project.mkdir(exist_ok=True)
        self.sim = SimDaemon(
            folder, self.clock, self.llm, config.from_text(self.usual if text is None else text)
        )

    async def start(self, *, earned: int = 1_000_000) -> None:
        """The daemon, when judging has used so many tokens already: learning may cost a share of that."""
        await self.sim.start()
        self.sim.daemon.world.calls.sleep = at_once
        entry = ledger.Entry(self.clock.ms - 2 * 86_400_000, "judge", "x", "p", "m", earned, 0, None, 1, "ok")
        await self.sim.daemon.db.commit(ledger.add(entry))

    async def looks(self, seconds: float = 2.0) -> None:
        """Time passes, and what is due is done."""
        for _ in range(self.rounds):
            await self.sim.later(seconds)
            for _ in range(400):
                if not self.sim.daemon.engine.jobs._lanes:
                    break
                await asyncio.sleep(0.005)
            else:
                raise AssertionError("the job does not end")

    async def a_week_passes(self) -> None:
        """Day by day: a week in one step is a clock that jumped."""
        for _ in range(9):
            await self.looks(90_000)
            await self.sim.settle()

    def purposes(self) -> list[str]:
        return [p.purpose for p in self.llm.prompts if p.purpose != "judge"]


async def at_once(seconds: float) -> None:
    """The pause between two tries, without waiting."""
    del seconds
    await asyncio.sleep(0)


def context(heard: Heard) -> str:
    """The additional context of an answer, beside which nothing may stand for the agent."""
    output = heard.json.get("hookSpecificOutput") if heard.status == 200 else None
    if output is None:
        return ""
    assert set(output) == {"hookEventName", "additionalContext"}, "never a decision"
    text: str = output["additionalContext"]
    return text
