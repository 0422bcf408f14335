"""The files by which a hook knows for which sessions a lesson waits."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest

from daemon.core.errors import Unavailable
from daemon.learning.lessons.give import FOLDER, KEPT_S, mark, remove_old


def test_a_file_while_a_lesson_waits(tmp_path: Path) -> None:
    """Only this user may look; without a lesson there is no file."""
    mark(tmp_path, "s1", waits=True)
    file = tmp_path / FOLDER / "s1"
    assert file.read_bytes() == b""
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    mark(tmp_path, "s1", waits=False)
    assert list((tmp_path / FOLDER).iterdir()) == []
    mark(tmp_path, "never-had-one", waits=False)


@pytest.mark.parametrize("session", ["", "..", "../x", "a/b", "a b", "ü", "x" * 101])
def test_an_id_that_is_no_name_of_a_file(tmp_path: Path, session: str) -> None:
    """It gets no file, here or elsewhere."""
    mark(tmp_path / "state", session, waits=True)
    assert list(tmp_path.rglob("*")) == []


@pytest.mark.shows("I44")
def test_it_is_bounded(tmp_path: Path) -> None:
    """Files of sessions that ended without a word go."""
    mark(tmp_path, "old", waits=True)
    mark(tmp_path, "new", waits=True)
    old, new = (tmp_path / FOLDER / name for name in ("old", "new"))
    before = time.time() - KEPT_S - 60
    os.utime(old, (before, before))
    remove_old(tmp_path)
    assert (old.exists(), new.exists()) == (False, True)
    remove_old(tmp_path / "nowhere")


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """It says so; nothing is asked then."""
    (tmp_path / FOLDER).write_text("a file in its place")
    with pytest.raises(Unavailable):
        mark(tmp_path, "s1", waits=True)
