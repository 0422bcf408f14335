"""Which project a folder is, with real git."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from daemon.learning.lessons.repositories import project_of, repository_of


def git(*command: str, cwd: Path) -> None:
    subprocess.run(["git", *command], cwd=cwd, check=True, capture_output=True)


def repository(folder: Path) -> Path:
    folder.mkdir()
    git("init", "-q", cwd=folder)
    git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x", cwd=folder)
    return folder


def test_all_worktrees_and_folders_of_a_repository_are_one_project(tmp_path: Path) -> None:
    """Part 0: a lesson of one worktree is known in the others."""
    main = repository(tmp_path / "main")
    git("worktree", "add", "-q", "../other", cwd=main)
    (main / "sub").mkdir()
    wanted = os.path.realpath(main / ".git")
    for folder in (main, main / "sub", tmp_path / "other"):
        assert project_of(str(folder)) == wanted


def test_no_folder_can_say_that_it_is_another_project(tmp_path: Path) -> None:
    """A `.git` file that comes with an archive names a repository which knows nothing of it."""
    main = repository(tmp_path / "main")
    evil = tmp_path / "evil"
    evil.mkdir()
    (evil / ".git").write_text(f"gitdir: {main / '.git'}\n")
    assert project_of(str(evil)) == str(evil)


def test_a_folder_without_git_is_its_own_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The home folder and the root are none."""
    folder = tmp_path / "plain"
    folder.mkdir()
    assert project_of(str(folder)) == str(folder)
    monkeypatch.setenv("HOME", str(folder))
    assert project_of(str(folder)) == ""
    assert project_of("/") == ""
    assert project_of("") == ""


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://github.com/acme/shop.git", "github.com/acme/shop"),
        ("https://user:token@GitHub.com/acme/shop", "github.com/acme/shop"),
        ("ssh://git@github.com:22/acme/shop.git", "github.com/acme/shop"),
        ("git@github.com:acme/shop.git", "github.com/acme/shop"),
        ("github.com:acme/shop/", "github.com/acme/shop"),
        ("/srv/git/shop.git", ""),
        ("../shop", ""),
        ("file:///srv/git/shop.git", ""),
        ("https://[bad", ""),
    ],
)
def test_a_clone_has_one_name_on_every_machine(tmp_path: Path, url: str, name: str) -> None:
    """However it was reached, and without the password in its address; a folder names nothing elsewhere."""
    main = repository(tmp_path / "main")
    project = project_of(str(main))
    assert repository_of(project) == ""
    git("remote", "add", "upstream", url, cwd=main)
    assert repository_of(project) == name
    git("remote", "add", "other", "https://example.com/other", cwd=main)
    assert repository_of(project) == "", "which of two?"
    git("remote", "add", "origin", url, cwd=main)
    assert repository_of(project) == name


def test_a_folder_outside_git_has_no_name_elsewhere(tmp_path: Path) -> None:
    """Also one with a file that looks like a repository's configuration, or with a FIFO in its place."""
    (tmp_path / "config").write_text('[remote "origin"]\n\turl = https://github.com/acme/shop\n')
    assert repository_of(str(tmp_path)) == ""
    main = repository(tmp_path / "main")
    (main / ".git" / "config").unlink()
    os.mkfifo(main / ".git" / "config")
    assert repository_of(str(main / ".git")) == ""
