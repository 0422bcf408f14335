"""The project of a folder, found upward like git does, and its rules: which files are read."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from daemon.core.errors import UserError
from daemon.files.project import (
    DIRECTORIES_KEPT,
    LIMIT,
    ProjectRules,
    find_project,
    project_rule_lines,
    upward,
)
from daemon.testing import FakeClock

RULE = "Always run `make check` before you commit.\n"
LINE = "Always run `make check` before you commit."


@pytest.mark.shows("I26")
def test_all_three_files_count(tmp_path: Path) -> None:
    """AGENTS.md, CLAUDE.md and .claude/CLAUDE.md, in this order, each line once."""
    (tmp_path / ".claude").mkdir()
    (tmp_path / "AGENTS.md").write_text(RULE)
    (tmp_path / "CLAUDE.md").write_text(f"{RULE}\nTests must pass.\n")
    (tmp_path / ".claude" / "CLAUDE.md").write_text("Never push to main.\n```python\nnever closed\n")
    lines = [LINE, "Tests must pass.", "Never push to main.", "never closed"]
    assert project_rule_lines(str(tmp_path)).splitlines() == lines


def test_links_inside_the_workspace_only(tmp_path: Path) -> None:
    """CLAUDE.md is often a link to AGENTS.md; one that leads out of the workspace is not followed."""
    project, outside = tmp_path / "project", tmp_path / "outside"
    for folder in (project, outside):
        folder.mkdir()
        (folder / "real.md").write_text(RULE)
    (project / "CLAUDE.md").symlink_to("real.md")
    assert project_rule_lines(str(project)) == LINE
    (project / "CLAUDE.md").unlink()
    (project / "CLAUDE.md").symlink_to(outside / "real.md")
    assert project_rule_lines(str(project)) == ""
    (outside / "CLAUDE.md").write_text(RULE)
    (project / ".claude").symlink_to(outside)
    assert project_rule_lines(str(project)) == ""


@pytest.mark.parametrize("kind", ["fifo", "folder", "huge", "binary", "loop", "none"])
def test_what_is_no_text_counts_as_not_there(tmp_path: Path, kind: str) -> None:
    """A FIFO does not hang us, and 256 KB is the limit; the other file still counts."""
    file = tmp_path / "AGENTS.md"
    make: dict[str, Callable[[], object]] = {
        "fifo": lambda: os.mkfifo(file),
        "folder": file.mkdir,
        "huge": lambda: file.write_text(RULE + " " * LIMIT),
        "binary": lambda: file.write_bytes(RULE.encode() + b"\xff\x00"),
        "loop": lambda: file.symlink_to(file),
        "none": lambda: None,
    }
    make[kind]()
    assert project_rule_lines(str(tmp_path)) == ""
    (tmp_path / "CLAUDE.md").write_text(RULE)
    assert project_rule_lines(str(tmp_path)) == LINE


@pytest.mark.parametrize("directory", ["", "/nowhere", "\0", "/" + "x" * 5000])
def test_any_directory(directory: str) -> None:
    """A host may name a folder that can't be."""
    assert project_rule_lines(directory) == ""


@pytest.mark.shows("I44")
def test_read_once_a_minute(tmp_path: Path) -> None:
    """An edit counts after a minute, not before; few folders are remembered."""
    clock = FakeClock()
    rules = ProjectRules(clock)
    assert rules.lines(str(tmp_path)) == ""
    (tmp_path / "AGENTS.md").write_text(RULE)
    clock.advance(59)
    assert rules.lines(str(tmp_path)) == ""
    clock.advance(1)
    assert rules.lines(str(tmp_path)) == LINE
    for number in range(2 * DIRECTORIES_KEPT):
        rules.lines(f"/nowhere/{number}")
    assert len(rules._known) == DIRECTORIES_KEPT


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder with the repository ``work/shop`` in it, and ``notes``, which is none."""
    (tmp_path / "work" / "shop" / "api" / "src").mkdir(parents=True)
    (tmp_path / "work" / "shop" / ".git").mkdir()
    (tmp_path / "notes" / "today").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_a_sub_folder_belongs_to_its_repository(home: Path) -> None:
    """The root of the repository is the project and the end of the search; a ``.git`` file counts too."""
    shop = home / "work" / "shop"
    assert upward(shop / "api") == (shop / "api", shop)
    assert find_project(shop / "api" / "src") == find_project(shop) == shop
    (shop / "api" / ".git").write_text("gitdir: elsewhere\n")
    assert find_project(shop / "api" / "src") == shop / "api"


def test_the_nearest_mark_counts_and_a_known_folder_before_it(home: Path) -> None:
    """``.reflection`` below the root is nearer; where a host works, that folder counts."""
    shop = home / "work" / "shop"
    (shop / "api" / ".reflection").mkdir()
    assert find_project(shop / "api" / "src") == shop / "api"
    assert find_project(shop / "api" / "src", {str(shop)}) == shop
    assert find_project(shop / "api" / "src", {str(home / "work")}) == shop / "api"


def test_home_is_no_project_of_what_is_in_it(home: Path) -> None:
    """Dotfiles in a repository at home make no project of what is in it; standing there is another matter."""
    (home / ".git").mkdir()
    (home / ".reflection").mkdir()
    assert upward(home / "notes" / "today") == (home / "notes" / "today", home / "notes")
    assert find_project(home / "notes" / "today", {str(home)}) == home / "notes" / "today"
    assert find_project(home) == home


def test_a_relative_folder_and_one_that_was_removed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder is named as the shell names it; in one that is gone there is an error in words."""
    monkeypatch.chdir(home / "work" / "shop" / "api")
    assert find_project() == find_project("src") == find_project("../api/src") == home / "work" / "shop"
    monkeypatch.chdir(home / "notes" / "today")
    (home / "notes" / "today").rmdir()
    with pytest.raises(UserError, match="was removed"):
        find_project()
