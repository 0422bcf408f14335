"""A daemon that remembers lessons, and sessions of Claude Code that may be given them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from daemon import config
from daemon.core.episodes import Episode, Trigger
from daemon.engine.features.memory import Memory
from daemon.engine.reminders import HEADING
from daemon.files.reminder_marks import FOLDER
from daemon.testing import FakeClock, ScriptedLLM
from tests.support.hosts.claude_code_sim import ClaudeSim, Heard
from tests.support.hosts.opencode_sim import SimDaemon

if TYPE_CHECKING:
    from pathlib import Path

    from daemon.core.episodes import State

WAITS = "prompt_ms = 5000\naction_ms = 5000\n"  # a busy machine is slow
ON = f"[memory]\nenabled = true\nat_prompt = true\n{WAITS}"
TASK = "Fix the parser so that its fixture tests pass"
LESSON = "The parser tests need the fixture that the generator writes; run that one first."
GIVEN = f"{HEADING}\nPast experience from similar query suggests: {LESSON}"
COMMAND = Trigger("command", "pytest tests/parser")


class Site:
    """A daemon with a store of episodes, and sessions of Claude Code in one project."""

    def __init__(self, folder: Path, text: str = ON) -> None:
        self.clock, self.llm = FakeClock(), ScriptedLLM()
        self.project = folder / "work"
        self.project.mkdir()
        self.sim = SimDaemon(folder, self.clock, self.llm, config.from_text(text))

    @property
    def memory(self) -> Memory:
        found = self.sim.daemon.engine.features.named("memory")
        assert isinstance(found, Memory)
        return found

    async def knows(
        self,
        lesson: str = LESSON,
        *triggers: Trigger,
        query: str = TASK,
        state: State = "confirmed",
        name: str = "a",
        cites: tuple[str, ...] = (),
    ) -> str:
        """One more episode; its id."""
        project = str(self.project)
        e = Episode(
            name * 32,
            project,
            query,
            -0.6,
            "It failed.",
            lesson,
            "",
            state,
            triggers or (COMMAND,),
            cites=cites,
            at=1,
        )
        assert await self.memory.store.add(e)
        self.memory._reminders.forget()
        return e.id

    async def session(self, name: str = "s1", project: Path | None = None) -> ClaudeSim:
        c = ClaudeSim(self.sim.daemon, self.clock, project or self.project, name)
        await c.start()
        await self.sim.settle()
        return c

    async def asked(self, c: ClaudeSim, prompt: str) -> str:
        """What the agent is given with a prompt."""
        await c.types(prompt)
        return context(c.heard)

    async def acts(self, c: ClaudeSim, command: str, error: str = "") -> str:
        """What it is given at a command, before it runs or after it failed."""
        event = "PostToolUseFailure" if error else "PreToolUse"
        more: dict[str, Any] = {"error": error} if error else {}
        heard = await c.hook(
            event, tool_name="Bash", tool_input={"command": command}, tool_use_id="t", **more
        )
        await self.sim.settle()
        return context(heard)

    def marks(self, c: ClaudeSim) -> list[str]:
        file = self.sim.folder / "state" / FOLDER / c.session
        return file.read_text().split() if file.exists() else []


def context(heard: Heard) -> str:
    """The additional context of an answer, beside which nothing may stand for the agent."""
    output = heard.json.get("hookSpecificOutput") if heard.status == 200 else None
    if output is None:
        return ""
    assert set(output) == {"hookEventName", "additionalContext"}, "never a decision"
    text: str = output["additionalContext"]
    return text
