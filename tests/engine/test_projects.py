"""Projects' own settings: when they are read, and what counts when they can't be."""

from __future__ import annotations

import threading
from pathlib import Path

from daemon import log
from daemon.config import PROJECT_FILE, from_text
from daemon.engine.projects import KEPT, TTL_MS, Projects
from daemon.testing import FakeClock

SHORT_S = 0.01


def write(project: Path, text: str) -> None:
    file = project / PROJECT_FILE
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)


def test_a_change_counts_within_two_seconds(tmp_path: Path) -> None:
    """I40: a project is switched off and on by its file, which is read again when its time is over."""
    clock = FakeClock()
    projects = Projects(from_text(), clock, log.get("test"))
    assert projects.settings(str(tmp_path)).enabled
    write(tmp_path, "enabled = false")
    assert projects.settings(str(tmp_path)).enabled, "not read again yet"
    clock.advance(TTL_MS / 1000)
    assert not projects.settings(str(tmp_path)).enabled
    (tmp_path / PROJECT_FILE).unlink()
    clock.advance(TTL_MS / 1000)
    assert projects.settings(str(tmp_path)).enabled


def test_a_dead_disk_stops_nobody(tmp_path: Path) -> None:
    """I35: what was read last counts; a project that was never read is only observed; when its disk answers,
    its file counts; and one thread at most waits for each project.
    """
    answers, asked, clock = threading.Event(), list[Path](), FakeClock()
    dead = {tmp_path / "new"}

    def read(directory: Path) -> str:
        asked.append(directory)
        if directory in dead:
            answers.wait()
        return "toasts = false"

    projects = Projects(from_text(), clock, log.get("test"), read, first_s=SHORT_S, again_s=SHORT_S)
    new, known = str(tmp_path / "new"), str(tmp_path / "known")
    assert not projects.settings(known).toasts
    dead.add(tmp_path / "known")
    for _ in range(5):
        clock.advance(TTL_MS / 1000)
        assert (projects.settings(known).toasts, projects.settings(known).judge.mode) == (False, "act")
        assert (projects.settings(new).toasts, projects.settings(new).judge.mode) == (True, "observe")
    assert sorted(p.name for p in asked) == ["known", "known", "new"]
    answers.set()
    while projects.settings(new).judge.mode == "observe":
        clock.advance(TTL_MS / 1000)
    assert not projects.settings(new).toasts


def test_projects_are_bounded(tmp_path: Path) -> None:
    """I44: of a thousand folders those asked for last are kept."""
    asked = list[Path]()

    def read(directory: Path) -> str:
        asked.append(directory)
        return ""

    projects = Projects(from_text(), FakeClock(), log.get("test"), read)
    for n in range(2 * KEPT):
        projects.settings(str(tmp_path / str(n)))
    projects.settings(str(tmp_path / str(2 * KEPT - 1)))
    assert len(asked) == 2 * KEPT
    projects.settings(str(tmp_path / "0"))
    assert len(asked) == 2 * KEPT + 1
