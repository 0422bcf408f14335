"""Which file is a project's playbook: a person names it, inside the project, and no link leads out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from daemon.config import from_text, tighten
from daemon.core.errors import UserError
from daemon.core.settings import Settings
from daemon.learning.playbook.project_playbook import ACE, ProjectPlaybook, dumped
from daemon.testing import FakeClock
from tests.learning.playbook.books import book, point, said
from tests.learning.playbook.test_project_playbook import added


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / ".claude").mkdir(parents=True)
    (folder / ACE).write_bytes(dumped(book(point("pat-001", "theirs", 3))))
    return folder


def opened(project: Path, setting: str = "") -> ProjectPlaybook:
    return ProjectPlaybook(project, project.parent / "state", FakeClock(), setting)


@pytest.mark.shows("I47")
@pytest.mark.parametrize(
    "value",
    [
        "/etc/playbook.json", "../playbook.json", "a/../../playbook.json", "./playbook.json", "CLAUDE.md",
        "package.json", ".claude/settings.json", ".claude/", "a//playbook.json", "a\n/playbook.json",
        "xplaybook.json",
    ],
)  # fmt: skip
def test_only_a_playbook_inside_the_project_can_be_named(value: str) -> None:
    """No file of the person's own can be named, nor one outside the project."""
    with pytest.raises(UserError, match=r"playbook.path must be a `playbook.json` inside the project"):
        from_text(f"[playbook]\npath = {json.dumps(value)}\n")
    assert from_text(f"[playbook]\npath = '{ACE}'\n").playbook.path == ACE


@pytest.mark.shows("LEARN-10")
def test_a_project_cannot_say_where_it_is() -> None:
    """Its settings file may have come with a clone."""
    settings, problems = tighten(Settings(), f"[playbook]\npath = '{ACE}'\n")
    assert settings.playbook.path == ""
    assert problems == [".reflection/config.toml: a project may not set playbook.path; ignored"]


def test_everything_happens_in_the_file_that_was_named(project: Path) -> None:
    """Points, names, revisions and undo; the other file keeps its own."""
    mine = opened(project)
    added(mine, "mine")
    before = mine.path.read_bytes()
    theirs = opened(project, ACE)
    assert theirs.path == project / ACE
    assert theirs.history() == []
    assert added(theirs, "new") == ["pat-001", "pat-002"]
    assert said(json.loads((project / ACE).read_bytes())) == ["theirs", "new"]
    assert [r.what for r in theirs.history()] == ["added new"]
    assert not (project / ".claude" / ".gitignore").exists()
    assert mine.path.read_bytes() == before
    theirs.undo(0)
    assert said(opened(project, ACE).read().playbook) == ["theirs"]
    assert [r.what for r in opened(project).history()] == ["added mine"]
    assert added(opened(project), "more") == ["pat-001", "pat-003"], "no name is given twice in a project"


def test_the_setting_counts_in_every_project(project: Path) -> None:
    """Also where the file is not there yet: its folder is made."""
    assert said(opened(project, ACE).read().playbook) == ["theirs"]
    other = project.parent / "other"
    other.mkdir()
    added(opened(other, ACE), "a")
    assert [p.name for p in other.iterdir()] == [".claude"]


@pytest.mark.shows("LEARN-15")
def test_a_link_that_leads_out_is_refused(project: Path) -> None:
    """A folder on the way, at whatever depth, and the file itself: nothing is read, written or undone."""
    away = project.parent / "away"
    away.mkdir()
    (away / "playbook.json").write_bytes(dumped(book(point("pat-001", "secret"))))
    (project / "docs").mkdir()
    (project / "docs" / "deep").symlink_to(away)
    (project / "link").symlink_to(away)
    for path in ("link/playbook.json", "docs/deep/playbook.json"):
        found = opened(project, path)
        assert "is a link" in found.read().problem
        with pytest.raises(UserError, match="is a link"):
            added(found, "a")
    (project / ACE).unlink()
    (project / ACE).symlink_to(away / "playbook.json")
    assert "it is a link" in opened(project, ACE).read().problem
    assert said(json.loads((away / "playbook.json").read_bytes())) == ["secret"]
