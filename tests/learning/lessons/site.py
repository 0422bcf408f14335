"""A daemon that remembers lessons, and sessions of Claude Code that may be given them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from daemon.learning.lessons.episodes import Episode
from daemon.learning.lessons.feature import Memory
from daemon.learning.lessons.give import FOLDER, GiveLessons
from daemon.learning.lessons.questions import MARK as HEADING
from tests.learning.site import LearningSite, context
from tests.support.hosts.claude_code_sim import ClaudeSim, bash, write

if TYPE_CHECKING:
    from pathlib import Path

    from daemon.core.llm import Prompt
    from daemon.learning.lessons.episodes import State

WAITS = "prompt_ms = 5000\n"  # a busy machine is slow
ON = f"[memory]\nenabled = true\n{WAITS}"
TASK = "Fix the parser so that its fixture tests pass"
LESSON = "The parser tests need the fixture that the generator writes; run that one first."
GIVEN = f"{HEADING}\nPast experience from similar query suggests: {LESSON}"
FIRST = {"lessons": [1]}
NONE: dict[str, Any] = {"lessons": []}
BAD: dict[str, Any] = {
    "complete": False,
    "severity": "HIGH",
    "feedback": "The tests fail.",
    "missing": [{"text": "The tests of the parser fail.", "cites": "the parser"}],
}
FAILED = (write("a.py"), bash("pytest -q tests/parser", 1, "E   ParserError: no fixture\n1 failed in 0.1s"))


class Site(LearningSite):
    """A daemon with a store of episodes, and sessions of Claude Code in one project."""

    usual, rounds = ON, 3

    @property
    def memory(self) -> Memory:
        found = self.sim.daemon.engine.features.named("memory")
        assert isinstance(found, Memory)
        return found

    @property
    def give(self) -> GiveLessons:
        found = self.sim.daemon.engine.features.named("lessons")
        assert isinstance(found, GiveLessons)
        return found

    async def knows(
        self,
        lesson: str = LESSON,
        query: str = TASK,
        state: State = "confirmed",
        name: str = "a",
        cites: tuple[str, ...] = (),
    ) -> str:
        """One more episode; its id."""
        project = str(self.project)
        e = Episode(name * 32, project, query, -0.6, "It failed.", lesson, "", state, cites=cites, at=1)
        assert await self.memory.store.add(e)
        return e.id

    async def session(self, name: str = "s1", project: Path | None = None) -> ClaudeSim:
        c = ClaudeSim(self.sim.daemon, self.clock, project or self.project, name)
        await c.start()
        await self.sim.settle()
        return c

    async def asked(self, c: ClaudeSim, prompt: str, *says: dict[str, Any] | str | Exception) -> str:
        """What the agent is given with a prompt, when the model says that of it (if it is asked)."""
        self.llm.add(*says)
        await c.types(prompt)
        return context(c.heard)

    def questions(self) -> list[Prompt]:
        """What the model was asked about lessons for tasks."""
        return [p for p in self.llm.prompts if p.purpose == "lessons"]

    async def acts(self, c: ClaudeSim, command: str = "ls") -> str:
        """What it is given at a tool call."""
        heard = await c.hook("PreToolUse", tool_name="Bash", tool_input={"command": command}, tool_use_id="t")
        await self.sim.settle()
        return context(heard)

    def mark(self, c: ClaudeSim) -> bool:
        """Whether this session's hook asks at tool calls."""
        return (self.sim.folder / "state" / FOLDER / c.session).exists()

    async def fails(self, name: str, task: str = TASK, tools: Any = FAILED) -> ClaudeSim:
        """A session whose turn is judged to be bad."""
        c = ClaudeSim(self.sim.daemon, self.clock, self.project, name)
        await c.start()
        self.llm.add(BAD)
        await c.types(task)
        await c.works("All done.", tools=tools)
        await self.sim.settle()
        return c

    async def closes(
        self, c: ClaudeSim, *says: dict[str, Any] | str | Exception, then: str = "What is in this folder?"
    ) -> None:
        """The person begins another task, and what the model says of the one that is over."""
        self.llm.add(*says)
        await c.types(then)
        await self.sim.settle()
        await self.looks()

    async def episodes(self) -> list[Episode]:
        return await self.memory.store.page(None)
