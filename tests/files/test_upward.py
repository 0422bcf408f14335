"""The project of a folder, found upward like git does."""

from __future__ import annotations

from pathlib import Path

import pytest

from daemon.core.errors import UserError
from daemon.files.upward import project, upward


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
    assert project(shop / "api" / "src") == project(shop) == shop
    (shop / "api" / ".git").write_text("gitdir: elsewhere\n")
    assert project(shop / "api" / "src") == shop / "api"


def test_the_nearest_mark_counts_and_a_known_folder_before_it(home: Path) -> None:
    """``.reflection`` below the root is nearer; where a host works, that folder counts."""
    shop = home / "work" / "shop"
    (shop / "api" / ".reflection").mkdir()
    assert project(shop / "api" / "src") == shop / "api"
    assert project(shop / "api" / "src", {str(shop)}) == shop
    assert project(shop / "api" / "src", {str(home / "work")}) == shop / "api"


def test_home_is_no_project_of_what_is_in_it(home: Path) -> None:
    """Dotfiles in a repository at home make no project of what is in it; standing there is another matter."""
    (home / ".git").mkdir()
    (home / ".reflection").mkdir()
    assert upward(home / "notes" / "today") == (home / "notes" / "today", home / "notes")
    assert project(home / "notes" / "today", {str(home)}) == home / "notes" / "today"
    assert project(home) == home


def test_a_relative_folder_and_one_that_was_removed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder is named as the shell names it; in one that is gone there is an error in words."""
    monkeypatch.chdir(home / "work" / "shop" / "api")
    assert project() == project("src") == project("../api/src") == home / "work" / "shop"
    monkeypatch.chdir(home / "notes" / "today")
    (home / "notes" / "today").rmdir()
    with pytest.raises(UserError, match="was removed"):
        project()
