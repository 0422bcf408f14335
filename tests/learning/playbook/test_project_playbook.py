"""A project's playbook as it is changed: names, approvals, revisions, two writers at once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from daemon.core.errors import UserError
from daemon.learning.playbook.changes import apply
from daemon.learning.playbook.points import add, each, said_in
from daemon.learning.playbook.project_playbook import Edit, ProjectPlaybook, dumped
from daemon.testing import FakeClock
from harness.machine.sandbox import REPO
from tests.learning.playbook.books import book, names, point, said


@pytest.fixture
def project(tmp_path: Path) -> ProjectPlaybook:
    (tmp_path / "work").mkdir()
    return ProjectPlaybook(tmp_path / "work", tmp_path / "state", FakeClock(), "")


def added(project: ProjectPlaybook, text: str, *, dry_run: bool = False) -> list[str]:
    """Add a pattern as a person does; the names after it."""
    with project.change(dry_run=dry_run) as edit:
        add(edit.playbook, text, "PATTERNS & APPROACHES", edit.names, said_in(edit.playbook))
        edit.what, edit.approved = f"added {text}", [text]
    return names(edit.playbook)


def removed(project: ProjectPlaybook, name: str) -> None:
    with project.change() as edit:
        edit.playbook |= apply(edit.playbook, [{"type": "DELETE", "target_id": name}])[0]


def nothing(project: ProjectPlaybook, *, dry_run: bool = False) -> Edit:
    with project.change(dry_run=dry_run) as edit:
        pass
    return edit


def test_a_change_is_written_approved_and_undone(project: ProjectPlaybook) -> None:
    """The whole way of a person's point."""
    assert added(project, "use types") == ["pat-001"]
    assert json.loads(project.path.read_bytes())["last_updated"].startswith("2023-11-14T22:13:20")
    assert project.known().is_approved("use types")
    assert (project.path.parent / ".gitignore").exists()
    (revision,) = project.history()
    assert (revision.what, revision.by) == ("added use types", "you")
    project.undo(0)
    assert not project.path.exists()
    assert project.read().playbook == book()


def test_no_name_is_given_twice(project: ProjectPlaybook) -> None:
    """Not after its point was removed, not after the file is gone, not to a text without a name."""
    added(project, "a")
    assert added(project, "b") == ["pat-001", "pat-002"]
    removed(project, "pat-002")
    assert added(project, "c") == ["pat-001", "pat-003"]
    project.path.unlink()
    assert added(project, "d") == ["pat-004"]
    project.path.write_text(json.dumps({"sections": {"PATTERNS & APPROACHES": ["bare"]}}))
    assert names(project.read().playbook) == ["pat-005"]


def test_a_dry_run_and_a_change_of_nothing_write_nothing(project: ProjectPlaybook, tmp_path: Path) -> None:
    """Neither the file nor a revision nor an approval."""
    assert added(project, "a", dry_run=True) == ["pat-001"]
    assert not (tmp_path / "state").exists()
    assert nothing(project).revision is None
    assert list((tmp_path / "work").iterdir()) == []
    assert (project.history(), project.known().approved) == ([], {})


def test_twins_of_a_merge_are_renamed_and_told(project: ProjectPlaybook) -> None:
    """Once: the next change finds each name once."""
    project.path.parent.mkdir()
    project.path.write_bytes(dumped(book(point("pat-001", "mine"), point("pat-001", "yours"))))
    changed = nothing(project)
    assert changed.told == ["two points were called pat-001; the later one is pat-002 now"]
    assert changed.revision is not None
    assert nothing(project).told == []


@pytest.mark.shows("I43")
def test_a_broken_file_is_kept_aside(project: ProjectPlaybook, tmp_path: Path) -> None:
    """The person is told where. A clone's link counts as broken: its target is neither read nor changed."""
    project.path.parent.mkdir()
    project.path.write_text("{")
    assert "can be used" in nothing(project, dry_run=True).told[0]
    with project.change() as edit:
        add(edit.playbook, "a", "OTHERS", edit.names, set())
    assert "it is kept as playbook.json.corrupt-1700000000000" in edit.told[0]
    assert said(project.read().playbook) == ["a"]
    mine = tmp_path / "mine.json"
    mine.write_bytes(dumped(book(point("pat-001", "secret"))))
    project.path.unlink()
    project.path.symlink_to(mine)
    assert said(project.read().playbook) == []
    added(project, "a")
    assert said(json.loads(mine.read_bytes())) == ["secret"]


def test_a_folder_that_can_have_no_playbook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The home folder, and a `.reflection` that a clone made a link: nothing is read, written or undone."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "playbook.json").write_bytes(dumped(book(point("pat-001", "secret"))))
    (tmp_path / "clone").mkdir()
    (tmp_path / "clone" / ".reflection").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for folder, why in (("clone", "is a link"), ("home", "is no project")):
        project = ProjectPlaybook(tmp_path / folder, tmp_path / "state", FakeClock(), "")
        assert (why in project.read().problem, said(project.read().playbook)) == (True, [])
        with pytest.raises(UserError, match=why):
            added(project, "a")
        with pytest.raises(UserError, match=why):
            project.undo(0)
    assert [p.name for p in (tmp_path / "elsewhere").iterdir()] == ["playbook.json"]
    assert list((tmp_path / "home").iterdir()) == []


@pytest.mark.shows("REQ-REFL-006")
def test_an_edit_that_raises_changes_nothing(project: ProjectPlaybook) -> None:
    """A failure anywhere leaves the playbook as it was."""
    added(project, "a")
    before = project.path.read_bytes()

    def breaks() -> None:
        with project.change() as edit:
            for _, p in each(edit.playbook):
                p["text"] = "broken"
            raise UserError("no")

    with pytest.raises(UserError, match="no"):
        breaks()
    assert project.path.read_bytes() == before


HOLDER = """
import os, signal, sys
from pathlib import Path
from daemon.files.safe import alone
with alone(Path(sys.argv[1])):
    print("held", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.shows("I45")
def test_a_killed_writer_leaves_no_lock(project: ProjectPlaybook, tmp_path: Path) -> None:
    """The next change is made at once, and no file of the lock is there."""
    added(project, "a")
    folder = project.folder
    before = sorted(folder.iterdir())
    run = [sys.executable, "-c", HOLDER, str(folder)]
    done = subprocess.run(run, cwd=REPO, stdout=subprocess.PIPE, check=False, timeout=90)
    assert (done.stdout, done.returncode) == (b"held\n", -9)
    assert sorted(folder.iterdir()) == before
    assert added(project, "b") == ["pat-001", "pat-002"]
