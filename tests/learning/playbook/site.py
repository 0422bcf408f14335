"""A daemon that learns, for the tests of this folder: sessions in one project, and what models say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from daemon.core.llm import Prompt, Reply
from daemon.learning.playbook.points import add
from daemon.learning.playbook.project_playbook import ProjectPlaybook
from daemon.testing import ScriptedLLM
from tests.learning.site import COMPLETE, LearningSite, context
from tests.support.hosts.claude_code_sim import ClaudeSim, bash, write
from tests.support.hosts.opencode_sim import bash as oc_bash
from tests.support.hosts.opencode_sim import write as oc_write

NOTHING = {"analysis": "It went well.", "bullet_tags": [], "confirmed": []}
NO_CHANGE: dict[str, Any] = {"reasoning": "", "operations": []}
TEXT = "The tests need a running database, else all of them fail."
ADD = {"reasoning": "r", "operations": [{"type": "ADD", "section": "PROJECT CONTEXT", "text": TEXT}]}
TOOLS = (write("a.py"), bash("make db"), bash("pytest -q", 0, "5 passed in 0.1s"))
WORK = (oc_write("a.py"), oc_bash("make db"), oc_bash("pytest -q"))
ON = "[playbook]\nenabled = true\n"


def confirm(name: str = "new-1", cites: str = "A1") -> dict[str, Any]:
    return {**NOTHING, "confirmed": [{"name": name, "cites": cites}]}


def tags(tag: str, name: str = "ctx-001") -> dict[str, Any]:
    return {**NOTHING, "bullet_tags": [{"name": name, "tag": tag, "rationale": "It was followed."}]}


class Site(LearningSite):
    """A daemon that learns, and sessions of Claude Code in one project."""

    usual = ON

    @property
    def file(self) -> Path:
        return self.book.path

    @property
    def book(self) -> ProjectPlaybook:
        setting = self.sim.daemon.world.settings.playbook.path
        return ProjectPlaybook(self.project, self.sim.daemon.paths.state_dir, self.clock, setting)

    def vouched(self, text: str, section: str = "OTHERS") -> None:
        """A person adds a point."""
        with self.book.change() as edit:
            assert add(edit.playbook, text, section, edit.names, set()) is not None
            edit.what, edit.approved = f"add {text}", [text]

    def points(self) -> dict[str, dict[str, Any]]:
        found = json.loads(self.file.read_text()) if self.file.exists() else {"sections": {}}
        return {p["name"]: p for points in found["sections"].values() for p in points}

    async def opens(self, session: str, source: str = "startup") -> tuple[ClaudeSim, str]:
        """A session begins; what it was given."""
        c = ClaudeSim(self.sim.daemon, self.clock, self.project, session)
        return c, context(await c.start(source))

    async def works(self, c: ClaudeSim, text: str = "All done.", **more: Any) -> None:
        """One judged turn."""
        self.llm.add(COMPLETE)
        await c.types()
        await c.works(text, tools=more.get("tools", TOOLS))
        await self.sim.settle()

    async def closes(self, c: ClaudeSim, *says: dict[str, Any] | str | Exception) -> None:
        """The session ends, and is looked back on: what reflector and curator say."""
        self.llm.add(*says)
        await c.hook("SessionEnd", reason="other")
        await self.sim.settle()
        await self.looks()

    async def session(self, name: str, *says: dict[str, Any] | str | Exception, text: str = "Done.") -> str:
        """A whole session; what it was given at its start."""
        c, given = await self.opens(name)
        await self.works(c, text)
        await self.closes(c, *says)
        return given

    def jobs(self) -> list[str]:
        """What learning still has to do."""
        found = self.sim.daemon.db.read("SELECT kind FROM jobs WHERE kind != 'retention'")
        return [kind for (kind,) in found]


class ByPurpose(ScriptedLLM):
    """Answers by what is asked for, as often as it is asked."""

    def __init__(self, **says: dict[str, Any]) -> None:
        super().__init__()
        self.says = says

    async def complete(self, prompt: Prompt, deadline_s: float) -> Reply:
        self.script.clear()
        self.script.append(self.says.get(prompt.purpose, COMPLETE))
        return await super().complete(prompt, deadline_s)


def rows(site: Site) -> dict[str, int]:
    """How many rows learning keeps, in each of its tables."""
    tables = ("spool", "learned", "learned_tags", "learned_counts", "injections")
    db = site.sim.daemon.db
    return {t: n for t in tables for ((n,),) in [db.read(f"SELECT count(*) FROM {t}")] if n}
