"""What is known of a project outside of it, in the state folder: of its playbook, and of its learning."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from daemon.files.safe import alone
from daemon.learning.playbook.project_playbook import APPROVED_KEPT, Known, ProjectPlaybook
from daemon.learning.state import ReflectState
from daemon.testing import FakeClock

NOW = 1_760_000_000_000
Opens = Callable[[Path, Path], ProjectPlaybook | ReflectState]


def opened(state_dir: Path, project: Path) -> ProjectPlaybook:
    return ProjectPlaybook(project, state_dir, FakeClock(NOW), "")


@pytest.fixture
def file(tmp_path: Path) -> ProjectPlaybook:
    found = opened(tmp_path, tmp_path / "work")
    found.folder.mkdir(parents=True)
    return found


@pytest.fixture
def state(tmp_path: Path) -> ReflectState:
    found = ReflectState(tmp_path / "state", tmp_path / "work")
    with alone(found.folder):
        pass
    return found


def test_what_was_stored_is_known_again(file: ProjectPlaybook, state: ReflectState) -> None:
    """Numbers only rise; exactly the approved text counts; only the owner may read the files."""
    file.approve(["use types", "half \ud83d"])
    again = file.known()
    assert [again.is_approved(t) for t in ("use types", "half \ud83d", "Use types")] == [True, True, False]
    again.raise_to({"pat": 7, "mis": 2})
    again.raise_to({"pat": 3})
    assert again.highest == {"pat": 7, "mis": 2}
    assert state.load("quotes") == {}
    quotes = {"sig-001": [{"text": "häh \ud800"}]}
    state.save("quotes", quotes, 1)
    assert state.load("quotes") == quotes
    for folder in (file.folder, state.folder):
        (path,) = folder.iterdir()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("kind", [opened, ReflectState])
def test_each_project_has_its_own(tmp_path: Path, kind: Opens) -> None:
    """By the real path, so a link leads to the same one."""
    (tmp_path / "a").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    folders = [kind(tmp_path, tmp_path / name).folder for name in ("a", "link", "b")]
    assert folders[0] == folders[1] != folders[2]


COUNTS = [b'{"highest": 1, "approved": {}}', b'{"highest": {}, "approved": {"a": -1}}', b"{", b"[]"]


@pytest.mark.shows("I43")
@pytest.mark.parametrize("broken", COUNTS)
def test_a_broken_file_approves_nothing_and_is_kept(file: ProjectPlaybook, broken: bytes) -> None:
    """It reads as empty; the next write keeps it beside the new one."""
    (file.folder / "known.json").write_bytes(broken)
    assert file.known() == Known()
    file.approve(["a"])
    assert (file.folder / f"known.json.corrupt-{NOW}").read_bytes() == broken
    assert file.known().is_approved("a")


@pytest.mark.shows("I43")
@pytest.mark.parametrize("broken", [b"", b"{", b"[1]", b'{"quotes": 3}', b"\xff\xff", b"[" * 50_000])
def test_a_broken_file_counts_as_empty_and_is_kept(state: ReflectState, broken: bytes) -> None:
    """It is renamed when it was not written here to its end."""
    (state.folder / "quotes.json").write_bytes(broken)
    assert state.load("quotes") == {}
    state.save("quotes", {"a": []}, 7)
    assert state.load("quotes") == {"a": []}
    assert (state.folder / "quotes.json.corrupt-7").read_bytes() == broken


@pytest.mark.shows("I44")
def test_approved_texts_are_bounded() -> None:
    """The oldest go."""
    known = Known()
    known.approve((str(i) for i in range(APPROVED_KEPT + 5)), NOW)
    assert len(known.approved) == APPROVED_KEPT
    assert not known.is_approved("4")
    assert known.is_approved("5")
