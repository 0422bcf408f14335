"""Folders that are made and removed with the file in them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.files.folders import make_folder, remove_empty


@pytest.fixture
def no_umask() -> Iterator[None]:
    """What is made may be written by all, if its maker does not say otherwise."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("no_umask")
def test_what_was_made_is_told_and_nobody_else_may_write_to_it(tmp_path: Path) -> None:
    """The outermost first; a folder that was there is none of them."""
    made = make_folder(tmp_path / "a" / "b")
    assert made == [tmp_path / "a", tmp_path / "a" / "b"]
    assert [folder.stat().st_mode & 0o777 for folder in made] == [0o755, 0o755]
    assert make_folder(tmp_path / "a" / "b") == []


def test_only_empty_folders_are_removed(tmp_path: Path) -> None:
    """One that holds something stays, with all above it; one that is not there is no error."""
    made = [*make_folder(tmp_path / "a" / "b" / "c")]
    remove_empty([tmp_path / "nowhere", *reversed(made)])
    assert list(tmp_path.iterdir()) == []
    make_folder(tmp_path / "a" / "b" / "c")
    (tmp_path / "a" / "own").touch()
    remove_empty(reversed(made))
    assert [p.name for p in (tmp_path / "a").iterdir()] == ["own"]
