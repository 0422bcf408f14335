"""What git lists, from the task's start to the saved case: a real daemon, a simulated host, the real git."""

from __future__ import annotations

import asyncio
import io
import json
import os
import subprocess
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from daemon import config, log
from daemon.core.session import Session
from daemon.core.settings import Settings
from daemon.core.workspace import ChangedFiles
from daemon.engine.messages import KEPT, LATE_MS, Workspaces
from daemon.files import git
from daemon.files.trust import Trust
from daemon.files.workspace import Workspace
from daemon.judge.case import Templates
from daemon.replay.load import load
from daemon.testing import TEMPLATES, FakeClock, ScriptedLLM
from harness.machine.waiting import PATIENCE_S
from tests.support.hosts.opencode_sim import SimDaemon, SimHost, bash
from tests.support.machine.repository import Repository

COMPLETE = {"complete": True, "severity": "NONE"}
INCOMPLETE = {
    "complete": False,
    "severity": "HIGH",
    "missing": [{"item": "do it", "cites": "Do the thing"}],
    "feedback": "Do it.",
}
ON = config.from_text("[judge]\ngit_status = true")


class World:
    """A daemon, a host whose folder is a repository, and a judge."""

    def __init__(self, folder: Path, settings: Settings = ON) -> None:
        self.folder = folder
        self.clock = FakeClock()
        self.llm = ScriptedLLM()
        self.repository = Repository(folder / "work")
        self.sim = SimDaemon(folder, self.clock, self.llm, settings)
        self.host = SimHost(str(self.repository.top), self.clock)
        self.log = io.StringIO()
        log.configure(settings, self.log)

    def trusts(self) -> None:
        """The person trusts git here."""
        found = git.set_up(git.find(self.repository.top), time.monotonic() + PATIENCE_S)
        trust = Trust(self.folder / "state" / "trust.json", self.clock)
        trust.grant_git(self.repository.top, found.fingerprint)

    async def judged(self, reply: dict[str, Any] = COMPLETE) -> dict[str, Any] | None:
        """The agent stops and is judged; what the newest case file says of git."""
        self.llm.add(reply)
        self.clock.advance(1)
        await self.host.works("ses_a", tools=(bash("make"),))
        await self.sim.settle()
        found = json.loads(self.case_file().read_text())["case"]["changed"]
        assert found is None or isinstance(found, dict)
        return found

    def case_file(self) -> Path:
        return max((self.repository.top / ".reflection").glob("ses_a_*.json"))

    def logged(self) -> list[str]:
        return [line for line in self.log.getvalue().splitlines() if "git status" in line]

    def script(self, text: str) -> None:
        """The agent runs a script."""
        subprocess.run(["sh", "-c", text], cwd=self.repository.top, check=True)


def since_the_start(*names: str) -> dict[str, Any]:
    return {"names": list(names), "since_task": True, "more": 0}


async def started(world: World) -> World:
    await world.host.connect(await world.sim.start())
    await world.host.create("ses_a")
    return world


@pytest.fixture
async def w(tmp_path: Path) -> AsyncIterator[World]:
    world = await started(World(tmp_path))
    yield world
    await world.host.disconnect()
    await world.sim.stop()


async def test_what_the_task_changed_is_in_the_case(w: World) -> None:
    """What was changed before the task is not listed; what a script makes is, in each round of the task."""
    w.repository.write("kept.txt", "changed before")
    w.trusts()
    await w.host.types("ses_a")
    await w.sim.settle()
    w.script("mkdir src; echo 1 >src/made.py; echo 2 >made.txt")
    assert await w.judged(INCOMPLETE) == since_the_start("made.txt", "src/")
    assert "git status lists (since the task began): made.txt, src/\n" in w.llm.prompts[0].text
    w.script("rm made.txt; echo 3 >kept.txt")
    assert await w.judged() == since_the_start("kept.txt", "src/")
    assert w.logged() == []


async def test_each_task_has_its_own_start(w: World) -> None:
    """What the task before left is not the new task's work."""
    w.trusts()
    for name in ("one.txt", "two.txt"):
        await w.host.types("ses_a")
        await w.sim.settle()
        w.repository.write(name, "x")
        assert await w.judged() == since_the_start(name)


async def test_a_restart_loses_the_start_and_says_so(w: World) -> None:
    """Then everything is listed that is changed now, whenever that was."""
    w.trusts()
    w.repository.write("before.txt", "x")
    await w.host.types("ses_a")
    await w.sim.settle()
    await w.sim.kill()
    await w.host.connect(await w.sim.start())
    found = await w.judged()
    assert found == {"names": ["before.txt"], "since_task": False, "more": 0}


async def test_a_start_that_is_heard_of_late_does_not_count(w: World) -> None:
    """A message that a host could not tell us in time: the agent has worked since."""
    w.trusts()
    w.host.mute = True
    await w.host.types("ses_a")
    w.repository.write("made.txt", "x")
    w.clock.advance(LATE_MS / 1000 + 1)
    w.host.mute = False
    await w.host.flush()
    found = await w.judged()
    assert found == {"names": ["made.txt"], "since_task": False, "more": 0}


async def test_the_start_of_another_folder_does_not_count(w: World) -> None:
    """A session that moved: names of the one folder say nothing of the other."""
    w.trusts()
    w.repository.write("sub/before.txt", "x")
    await w.host.types("ses_a")
    await w.sim.settle()
    w.host.directory = str(w.repository.top / "sub")
    w.llm.add(COMPLETE)
    await w.host.works("ses_a", tools=(bash("make"),))
    await w.sim.settle()
    (file,) = (w.repository.top / "sub" / ".reflection").glob("ses_a_*.json")
    found = json.loads(file.read_text())["case"]["changed"]
    assert (found["names"], found["since_task"]) == (["./"], False)


async def test_without_trust_git_is_not_run_and_the_log_says_so_once(
    w: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line a session. Trust counts from the next judgement on; a change of the set-up ends it."""
    ran = counted_git(tmp_path, monkeypatch)
    await w.host.types("ses_a")
    assert await w.judged(INCOMPLETE) is None
    assert await w.judged(INCOMPLETE | {"missing": [{"item": "b", "cites": "the thing"}]}) is None
    (line,) = w.logged()
    assert "you have not trusted git in" in line
    assert "session=ses_a" in line
    assert ran() == []
    w.trusts()
    await w.host.types("ses_a")
    assert await w.judged(INCOMPLETE) is not None
    w.repository.git("config", "alias.x", "status")
    assert await w.judged() is None
    assert len(w.logged()) == 1


async def test_off_by_default_and_never_by_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where git is trusted; a project that sets it is told so and not obeyed."""
    world = World(tmp_path, config.from_text(""))
    world.repository.write(".reflection/config.toml", "[judge]\ngit_status = true\n")
    world.trusts()
    ran = counted_git(tmp_path, monkeypatch)
    await started(world)
    await world.host.types("ses_a")
    assert await world.judged() is None
    assert ran() == []
    assert world.logged() == []
    await world.host.disconnect()
    await world.sim.stop()


async def test_sub_agents_have_no_start(w: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are not judged, so git is not asked for them."""
    w.trusts()
    ran = counted_git(tmp_path, monkeypatch)
    await w.host.create("ses_child", parent="ses_a")
    await w.host.types("ses_child")
    await w.sim.settle()
    assert ran() == []


async def test_a_slow_git_delays_nobody_and_is_asked_no_more(
    w: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host has its answer while git can't even begin. After a case in vain this session asks no more."""
    w.trusts()
    double(tmp_path, monkeypatch, "exec sleep 600")
    async with w.sim.daemon.engine.intake._workspaces._one:
        await asyncio.wait_for(w.host.types("ses_a"), PATIENCE_S)
    await w.sim.settle()
    assert await w.judged(INCOMPLETE) is None
    (line,) = w.logged()
    assert "took too long" in line
    assert "again=false" in line
    monkeypatch.undo()
    assert await w.judged() is None
    assert len(w.logged()) == 1


async def test_a_case_is_replayed_without_the_workspace(w: World) -> None:
    """The list is kept in the case file, names without secrets, and read back when there is no folder."""
    w.trusts()
    await w.host.types("ses_a")
    await w.sim.settle()
    secret = "ghp_" + "a1B2" * 9
    w.repository.write(f"{secret}.txt", "x")
    await w.judged()
    data = w.case_file().read_bytes()
    w.script('rm -rf "$PWD"')
    assert secret.encode() not in data

    def templates(_: str) -> Templates:
        return TEMPLATES

    case = load(data, "case.json", templates).case
    assert isinstance(case.changed, ChangedFiles)
    assert case.changed.names == ("[redacted:github].txt",)
    assert case.changed.since_task
    older = json.loads(data)
    del older["case"]["changed"]
    assert load(json.dumps(older).encode(), "case.json", templates).case.changed is None


async def test_one_git_at_a_time(w: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty sessions begin at once in one repository: no two git processes live at the same time."""
    w.trusts()
    both = tmp_path / "both"
    # one that was killed for its slowness leaves its folder and is no git at work
    pid = f"'{tmp_path}/alone/pid'"
    alone = f"mkdir '{tmp_path}/alone' || {{ kill -0 \"$(cat {pid})\" && touch '{both}'; }}; echo $$ >{pid}"
    double(
        tmp_path,
        monkeypatch,
        f"{alone}; '{real_git()}' \"$@\"; code=$?; rm -r '{tmp_path}/alone'; exit $code",
    )
    for n in range(20):
        await w.host.create(f"ses_{n}")
        await w.host.types(f"ses_{n}")
    await w.sim.settle()
    assert not both.exists()


@pytest.mark.shows("I44")
async def test_what_is_kept_is_bounded(w: World) -> None:
    """The starts of the newest sessions, and none of a task that is over."""
    workspaces = Workspaces(w.sim.daemon.world, Workspace(Trust(w.folder / "trust.json", w.clock)))
    for n in range(KEPT + 20):
        workspaces.began(Session(id=str(n), directory=str(w.repository.top), task="t"), w.clock.ms)
    assert len(workspaces._starts) == KEPT
    workspaces.ended(str(KEPT))
    assert len(workspaces._starts) == KEPT - 1
    await w.sim.settle()


def real_git() -> str:
    return git.program(git.Repository(Path("/nowhere"), Path("/nowhere"), Path("/nowhere")))


def double(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Another git, first in PATH."""
    (folder / "bin").mkdir()
    program = folder / "bin" / "git"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")


def counted_git(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """Note each run of git; gives what to call for the notes."""
    notes = folder / "notes"
    double(folder, monkeypatch, f"echo run >>'{notes}'\nexec '{real_git()}' \"$@\"")

    def ran() -> list[str]:
        return notes.read_text().split() if notes.exists() else []

    return ran
