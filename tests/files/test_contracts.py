"""The files that others read, against the schemas they are promised by, made by the real engine.

``produced`` runs it; the samples in ``.reflection/samples`` are copies of what it made.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, get_args

import pytest
from jsonschema import Draft202012Validator

from daemon.core.verdict import FinalState, JudgedBy, Missing, Severity, Verdict
from daemon.files.verdict import GITIGNORE, Judging, alias_object, verdict_object
from daemon.testing import FakeClock, ScriptedLLM
from tests.support.sim import SimDaemon, SimHost, bash, write

OURS = Path(__file__).resolve().parents[2] / ".reflection"
SCHEMAS = {
    name: json.loads((OURS / "schemas" / f"{name}.schema.json").read_text("utf-8"))
    for name in ("verdict", "alias", "case")
}
SESSION = "ses_58c3f0d91ffeHq2LmTzXw4Rb7K"
SIBLING = "ses_58c3c7a02ffeJd8NvBpQy1Gs5M"  # the same first eight characters, seconds later
RED = bash("pytest -q", 1, "1 failed, 11 passed in 0.4s")
GREEN = bash("pytest -q", 0, "12 passed in 0.4s")
Json = dict[str, Any]


@dataclass
class Bench:
    """A workspace, a host and a daemon; what the daemon writes there is collected by name."""

    folder: Path
    llm: ScriptedLLM | None = None
    made: dict[str, Json] = field(default_factory=dict)

    async def __aenter__(self) -> Bench:
        clock = FakeClock(ms=1_760_000_000_000)
        self.folder.mkdir()
        self.workspace = self.folder / "work"
        self.workspace.mkdir()
        self.sim = SimDaemon(self.folder, clock, self.llm)
        self.host = SimHost(str(self.workspace), clock)
        await self.host.connect(await self.sim.start())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.host.disconnect()
        await self.sim.stop()

    async def asks(self, session: str, text: str = "Reject an empty e-mail address on login") -> None:
        """A person begins a session."""
        await self.host.create(session)
        await self.host.types(session, text)

    async def works(self, session: str, text: str, *tools: Json) -> None:
        """The agent's turn, judged to its end; a second has passed."""
        self.host.clock.advance(1)
        await self.host.works(session, text, tools=tools)
        await self.sim.settle()

    def keep(self, name: str, file: str) -> None:
        """The file as it is now, under the sample's name."""
        self.made[name] = json.loads((self.workspace / ".reflection" / file).read_text("utf-8"))


async def produced(folder: Path) -> dict[str, Json]:
    """Every kind of file, by the name of its sample, made by the engine with the offline judge."""
    async with Bench(folder / "rounds") as b:
        await b.asks(SESSION)
        await b.works(SESSION, "Done, empty addresses are rejected.", write("login.py"), RED)
        b.keep("verdict.incomplete", f"verdict_{SESSION}.json")
        b.keep("alias.incomplete", f"verdict_{SESSION[:8]}.json")
        (case,) = (b.workspace / ".reflection").glob(f"{SESSION}_*.json")
        b.keep("case", case.name)
        await b.works(SESSION, "Fixed, the tests pass.", write("login.py"), GREEN)
        b.keep("verdict.complete", f"verdict_{SESSION}.json")
        b.keep("alias.complete", f"verdict_{SESSION[:8]}.json")
        await b.asks(SIBLING)
        await b.works(SIBLING, "Should spaces count as empty?")
        b.keep("verdict.awaiting_user", f"verdict_{SIBLING}.json")
        b.keep("alias.stale", f"verdict_{SIBLING[:8]}.json")
        await b.host.types(SIBLING, "Yes")
        await b.host.answers(SIBLING, "I will", finish="")
        await b.host.escapes(SIBLING)
        await b.sim.settle()
        b.keep("verdict.stopped", f"verdict_{SIBLING}.json")
        made = b.made
    llm = ScriptedLLM(hold=asyncio.Event())
    async with Bench(folder / "judging", llm) as b:
        llm.add({"complete": True, "severity": "NONE"})
        await b.asks(SESSION)
        await b.host.works(SESSION)
        while not llm.prompts:
            await asyncio.sleep(0.001)
        await b.sim.daemon.filing.drain()
        b.keep("verdict.judging", f"verdict_{SESSION}.json")
        llm.hold.set()  # type: ignore[union-attr]
        await b.sim.settle()
    return made | b.made
