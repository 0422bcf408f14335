"""A daemon, a simulated opencode and a scripted model: the small world in which the engine is tested."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

from daemon import config
from daemon.app import FEATURES
from daemon.engine.engine import MakeFeature
from daemon.engine.hosts.host import Mode
from daemon.testing import FakeClock, ScriptedLLM
from tests.support.hosts.opencode_sim import SimDaemon, SimHost

INCOMPLETE = {
    "complete": False,
    "severity": "HIGH",
    "missing": [{"item": "do it", "cites": "Do the thing"}],
    "feedback": "Do it.",
}
COMPLETE = {"complete": True, "severity": "NONE"}
QUESTION = {"complete": False, "severity": "NONE"}
UNREADABLE = "no verdict here"


class World:
    """``settings``: the person's, as TOML. ``rules``: no model is there, so the rules judge."""

    def __init__(
        self,
        folder: Path,
        settings: str = "",
        features: Sequence[MakeFeature] = FEATURES,
        *,
        rules: bool = False,
    ) -> None:
        self.clock = FakeClock()
        self.llm = ScriptedLLM()
        self.workspace = folder / "work"
        self.workspace.mkdir()
        asked = None if rules else self.llm
        self.sim = SimDaemon(folder, self.clock, asked, config.from_text(settings), features)
        self.host = SimHost(str(self.workspace), self.clock)

    @contextlib.asynccontextmanager
    async def running(self, mode: Mode = "serve") -> AsyncIterator[World]:
        """The daemon runs and the host is connected."""
        await self.host.connect(await self.sim.start(), mode)
        yield self
        await self.host.disconnect()
        await self.sim.stop()

    async def killed(self) -> None:
        """The daemon is killed, and the host notices."""
        await self.host.disconnect()
        await self.sim.kill()

    async def restarts(self) -> None:
        """The daemon is killed, and the host finds the next one."""
        await self.killed()
        await self.host.connect(await self.sim.start())

    # what people and agents do

    async def asked(
        self, session: str = "ses_a", asks: str = "Do the thing", says: str = "All done.", **works: Any
    ) -> str:
        """A person types and the agent does a whole turn; the judge may still think. The task."""
        task = await self.host.types(session, asks)
        await self.host.works(session, says, **works)
        return task

    async def turn(
        self, session: str = "ses_a", asks: str = "Do the thing", says: str = "All done.", **works: Any
    ) -> str:
        """As ``asked``, and all that follows is done."""
        task = await self.asked(session, asks, says, **works)
        await self.sim.settle()
        return task

    async def goes_on(self, session: str = "ses_a", says: str = "All done.", **works: Any) -> str:
        """The agent does one more turn, and all that follows is done. The turn."""
        turn = await self.host.works(session, says, **works)
        await self.sim.settle()
        return turn

    async def judging(self, **works: Any) -> str:
        """A turn that the judge thinks about until ``answered``. The task."""
        self.llm.hold = asyncio.Event()
        task = await self.asked(**works)
        await self.until_asked()
        return task

    async def answered(self) -> None:
        """The model answers, and all that follows is done."""
        assert self.llm.hold is not None
        self.llm.hold.set()
        await self.sim.settle()

    async def until(self, what: Callable[[], object]) -> None:
        """Until it is true."""
        for _ in range(2000):
            if what():
                return
            await asyncio.sleep(0.001)
        raise AssertionError("it did not come to that")

    async def until_asked(self, n: int = 1) -> None:
        """Until the model was asked ``n`` times."""
        await self.until(lambda: len(self.llm.prompts) >= n)

    # what became of it

    def verdict(self, session: str = "ses_a") -> dict[str, Any]:
        """The session's verdict file; by the first 8 characters of its id the alias."""
        path = self.workspace / ".reflection" / f"verdict_{session}.json"
        found: dict[str, Any] = json.loads(path.read_text())
        return found

    @property
    def nudges(self) -> list[str]:
        """The nudges that reached the agent."""
        return [p.text for p in self.host.prompts if p.kind == "nudge"]
