"""The memory in the engine: a task that ended badly is reflected on once, and its episode is stored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from daemon import config
from daemon.core.episodes import Candidate
from daemon.engine.features.memory import Memory
from daemon.store import ledger
from daemon.testing import FakeClock, ScriptedLLM
from tests.support.hosts.claude_code_sim import ClaudeSim, bash, write
from tests.support.hosts.opencode_sim import SimDaemon

COMPLETE = {"complete": True, "severity": "NONE"}
BAD: dict[str, Any] = {
    "complete": False,
    "severity": "HIGH",
    "feedback": "The tests fail.",
    "missing": [{"text": "The tests of the parser fail.", "cites": "the parser"}],
}
PROBLEM = "The agent said it was done while the tests failed."
LESSON = "The parser's tests need the fixture file in tests/data; run them before the work counts as done."
SAID = f"Problem: {PROBLEM}\nLesson: {LESSON}"
ON = "[memory]\nenabled = true\n[judge]\nmax_attempts = 1\n"
FAILED = (write("a.py"), bash("pytest -q tests/parser", 1, "E   ParserError: no fixture\n1 failed in 0.1s"))
TASK = "Fix the parser so that its tests pass"


class Site:
    """A daemon that draws lessons, and sessions of Claude Code in one project."""

    def __init__(self, folder: Path, text: str = ON) -> None:
        self.clock, self.llm = FakeClock(), ScriptedLLM()
        self.project = folder / "work"
        self.project.mkdir()
        self.sim = SimDaemon(folder, self.clock, self.llm, config.from_text(text))

    async def start(self, *, earned: int = 1_000_000) -> None:
        """The daemon, when judging has used so many tokens already."""
        await self.sim.start()
        self.sim.daemon.world.calls.sleep = at_once
        entry = ledger.Entry(self.clock.ms - 2 * 86_400_000, "judge", "x", "p", "m", earned, 0, None, 1, "ok")
        await self.sim.daemon.db.commit(ledger.add(entry))

    @property
    def memory(self) -> Memory:
        found = self.sim.daemon.engine.features.named("memory")
        assert isinstance(found, Memory)
        return found

    async def fails(self, name: str, task: str = TASK, tools: Any = FAILED) -> ClaudeSim:
        """A session whose turn is judged to be bad."""
        c = ClaudeSim(self.sim.daemon, self.clock, self.project, name)
        await c.start()
        self.llm.add(BAD)
        await c.types(task)
        await c.works("All done.", tools=tools)
        await self.sim.settle()
        return c

    async def closes(self, c: ClaudeSim, *says: dict[str, Any] | str | Exception) -> None:
        """The person begins another task, and what the model says of the one that is over."""
        self.llm.add(*says)
        await c.types("Now something else: what is in this folder?")
        await self.sim.settle()
        await self.looks()

    async def looks(self, seconds: float = 2.0) -> None:
        """Time passes, and what is due is done."""
        for _ in range(3):
            await self.sim.later(seconds)
            for _ in range(400):
                if not self.sim.daemon.engine.jobs._lanes:
                    break
                await asyncio.sleep(0.005)

    async def episodes(self) -> list[Candidate]:
        return await self.memory.store.page(None)

    def purposes(self) -> list[str]:
        return [p.purpose for p in self.llm.prompts if p.purpose != "judge"]


async def at_once(seconds: float) -> None:
    """The pause between two tries, without waiting."""
    del seconds
    await asyncio.sleep(0)


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    found = Site(tmp_path)
    await found.start()
    yield found
    await found.sim.stop()


async def test_a_bad_task_becomes_one_episode(site: Site) -> None:
    """AC-2.6.1, AC-2.6.2, AC-2.6.3, subtask 2.1, 2.2: judged below 0.3, asked once when the task is over,
    stored with problem, lesson and what the failure hung on.
    """
    c = await site.fails("s1")
    assert site.purposes() == [], "not while the task goes on"
    await site.closes(c, SAID)
    assert site.purposes() == ["haiku_reflexion"]
    (found,) = await site.episodes()
    e = found.episode
    assert (e.query, e.problem, e.lesson, e.reward) == (TASK, PROBLEM, LESSON, -0.6)
    assert e.reflection == SAID
    assert e.proof, "a failed check of its own case"
    assert e.project == str(site.project)
    assert [t.text for t in e.triggers if t.kind == "command"] == ["pytest tests/parser"]
    status = site.memory.status()
    assert (status["episodes"]["quarantined"], status["stored"], status["waiting"]) == (1, 1, 0)
