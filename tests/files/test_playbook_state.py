"""What is known of a project's playbook outside of it."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from daemon.files.playbook_state import APPROVED_KEPT, Known, StateFile

NOW = 1_760_000_000_000


@pytest.fixture
def file(tmp_path: Path) -> StateFile:
    found = StateFile(tmp_path, tmp_path / "project")
    found.folder.mkdir(parents=True)
    return found


def test_what_was_stored_is_known_again(file: StateFile) -> None:
    """Numbers only rise; exactly the approved text counts; the file is the owner's."""
    known = file.load()
    known.raise_to({"pat": 7, "mis": 2})
    known.raise_to({"pat": 3})
    known.approve(["use types", "half \ud83d"], NOW)
    file.save(known, NOW)
    again = file.load()
    assert again.highest == {"pat": 7, "mis": 2}
    assert again.is_approved("use types")
    assert again.is_approved("half \ud83d")
    assert not again.is_approved("Use types")
    (path,) = file.folder.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_each_project_has_its_own(tmp_path: Path) -> None:
    """By the real path, so a link leads to the same one."""
    (tmp_path / "a").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    assert StateFile(tmp_path, tmp_path / "a").folder == StateFile(tmp_path, tmp_path / "link").folder
    assert StateFile(tmp_path, tmp_path / "a").folder != StateFile(tmp_path, tmp_path / "b").folder


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"highest": 1, "approved": {}}', '{"highest": {}, "approved": {"a": -1}}']
)
def test_a_broken_file_approves_nothing_and_is_kept(file: StateFile, text: str) -> None:
    """It reads as empty; the next write keeps it beside the new one."""
    (file.folder / "known.json").write_text(text)
    assert file.load() == Known()
    file.save(Known({"pat": 1}), NOW)
    assert (file.folder / f"known.json.corrupt-{NOW}").read_text() == text
    assert file.load().highest == {"pat": 1}


@pytest.mark.shows("I44")
def test_approved_texts_are_bounded() -> None:
    """The oldest go."""
    known = Known()
    known.approve((str(i) for i in range(APPROVED_KEPT + 5)), NOW)
    assert len(known.approved) == APPROVED_KEPT
    assert not known.is_approved("4")
    assert known.is_approved("5")
