"""A program on PATH that the project can't have put there."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from daemon.files.programs import find_program

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def program(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "tool").write_text("#!/bin/sh\n")
    (folder / "tool").chmod(0o755)
    return folder / "tool"


def test_it_is_found_in_an_absolute_folder_outside(project: Path, tmp_path: Path) -> None:
    """The first one that may be used, whatever stands before it in PATH."""
    mine = program(tmp_path / "bin")
    program(project / "bin")
    path = os.pathsep.join(["", "bin", str(project / "bin"), str(mine.parent)])
    assert find_program("tool", {"PATH": path}, project) == str(mine)


def test_one_of_the_project_does_not_count(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not by a relative folder, not by its own, not by a link that leads there; a text file is no program."""
    program(project / "bin")
    monkeypatch.chdir(project)
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "tool").symlink_to(project / "bin" / "tool")
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "tool").write_text("no program")
    for folder in ("bin", ".", "", str(project / "bin"), str(tmp_path / "links"), str(tmp_path / "text")):
        assert find_program("tool", {"PATH": folder}, project) is None
