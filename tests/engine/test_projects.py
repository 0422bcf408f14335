"""Projects' own settings: when they are read, and what counts when they can't be."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from daemon import log
from daemon.config import PROJECT_FILE, from_text
from daemon.core.settings import Settings
from daemon.engine.world import PROJECTS_KEPT, TTL_MS, Projects
from daemon.testing import FakeClock

SHORT_S = 0.01
LONG_S = 60.0


def write(project: Path, text: str) -> None:
    file = project / PROJECT_FILE
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)


async def read(projects: Projects, folder: Path) -> Settings:
    """What counts there once it was read."""
    await projects.read(str(folder))
    return projects.settings(str(folder))


@pytest.mark.shows("I40")
async def test_a_change_counts_within_two_seconds(tmp_path: Path) -> None:
    """A project is switched off and on by its file, which is read again when its time is over."""
    clock = FakeClock()
    projects = Projects(from_text(), clock, log.get("test"))
    assert (await read(projects, tmp_path)).enabled
    write(tmp_path, "enabled = false")
    assert (await read(projects, tmp_path)).enabled, "not read again yet"
    clock.advance(TTL_MS / 1000)
    assert not (await read(projects, tmp_path)).enabled
    (tmp_path / PROJECT_FILE).unlink()
    clock.advance(TTL_MS / 1000)
    assert (await read(projects, tmp_path)).enabled


@pytest.mark.shows("I35")
async def test_a_project_that_was_never_read_is_only_observed(tmp_path: Path) -> None:
    """Nobody waits for the answer, and until it is there nothing is sent."""
    write(tmp_path, "toasts = false")
    projects = Projects(from_text(), FakeClock(), log.get("test"))
    found = projects.settings(str(tmp_path))
    assert (found.toasts, found.judge.mode) == (True, "observe")
    found = await read(projects, tmp_path)
    assert (found.toasts, found.judge.mode) == (False, "act")


@pytest.mark.shows("I35")
async def test_a_dead_disk_stops_nobody(tmp_path: Path) -> None:
    """What was read last counts; a project that was never read is only observed; when its disk answers, its
    file counts; and one thread at most waits for each project.
    """
    answers, asked, clock = threading.Event(), list[Path](), FakeClock()
    dead = {tmp_path / "new"}

    def file(directory: Path) -> str:
        asked.append(directory)
        if directory in dead:
            answers.wait()
        return "toasts = false"

    projects = Projects(from_text(), clock, log.get("test"), file, first_s=SHORT_S, again_s=SHORT_S)
    new, known, later = tmp_path / "new", tmp_path / "known", tmp_path / "later"
    while (await read(projects, known)).toasts:
        await asyncio.sleep(0.001)
    dead.add(known)
    for _ in range(5):
        clock.advance(TTL_MS / 1000)
        found = await read(projects, known)
        assert (found.toasts, found.judge.mode) == (False, "act")
        found = await read(projects, new)
        assert (found.toasts, found.judge.mode) == (True, "observe")
    answers.set()
    while projects.settings(str(new)).judge.mode == "observe":
        await asyncio.sleep(0.001)
    assert not projects.settings(str(new)).toasts
    while (await read(projects, later)).toasts:  # what was asked for before has begun by then
        await asyncio.sleep(0.001)
    while len(asked) < 4:  # a thread begins when the machine lets it
        await asyncio.sleep(0.001)
    assert sorted(p.name for p in asked) == ["known", "known", "later", "new"]


@pytest.mark.shows("I35")
async def test_a_dead_disk_holds_up_its_own_project_only(tmp_path: Path) -> None:
    """While the first look at one project waits for its disk, the loop goes on, another project is read, and
    all who ask for the first one wait for the same answer.
    """
    answers = threading.Event()

    def file(directory: Path) -> str:
        if directory.name == "slow":
            answers.wait()
        return "toasts = false"

    projects = Projects(from_text(), FakeClock(), log.get("test"), file, first_s=LONG_S)
    slow = [asyncio.create_task(read(projects, tmp_path / "slow")) for _ in range(5)]
    for n in range(3):
        assert not (await read(projects, tmp_path / f"fine{n}")).toasts
    assert not any(task.done() for task in slow)
    answers.set()
    found = await asyncio.gather(*slow)
    assert {(s.toasts, s.judge.mode) for s in found} == {(False, "act")}


@pytest.mark.shows("I44")
async def test_projects_are_bounded(tmp_path: Path) -> None:
    """Of a thousand folders those asked for last are kept."""
    asked = list[Path]()

    def file(directory: Path) -> str:
        asked.append(directory)
        return ""

    projects = Projects(from_text(), FakeClock(), log.get("test"), file)
    for n in range(2 * PROJECTS_KEPT):
        await projects.read(str(tmp_path / str(n)))
    await projects.read(str(tmp_path / str(2 * PROJECTS_KEPT - 1)))
    assert len(asked) == 2 * PROJECTS_KEPT
    await projects.read(str(tmp_path / "0"))
    assert len(asked) == 2 * PROJECTS_KEPT + 1
