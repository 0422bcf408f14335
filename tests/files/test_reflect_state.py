"""What is kept of a project's learning in the state folder."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from daemon.files.alone import alone
from daemon.files.reflect_state import ReflectState


@pytest.fixture
def state(tmp_path: Path) -> ReflectState:
    found = ReflectState(tmp_path / "state", tmp_path / "work")
    with alone(found.folder):
        pass
    return found


def test_each_project_has_its_own_private_files(state: ReflectState, tmp_path: Path) -> None:
    """By the project's real path; nobody else may read them."""
    assert state.load("quotes") == {}
    state.save("quotes", {"sig-001": [{"text": "häh \ud800"}]}, 1)
    assert state.load("quotes") == {"sig-001": [{"text": "häh \ud800"}]}
    (path,) = state.folder.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert ReflectState(tmp_path / "state", tmp_path / "other").load("quotes") == {}
    (tmp_path / "work").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "work")
    assert ReflectState(tmp_path / "state", tmp_path / "link").folder == state.folder


@pytest.mark.shows("I43")
@pytest.mark.parametrize("broken", [b"", b"{", b"[1]", b'{"quotes": 3}', b"\xff\xff", b"[" * 50_000])
def test_a_broken_file_counts_as_empty_and_is_kept(state: ReflectState, broken: bytes) -> None:
    """It is renamed when it was not written here to its end."""
    path = state.folder / "quotes.json"
    path.write_bytes(broken)
    assert state.load("quotes") == {}
    state.save("quotes", {"a": []}, 7)
    assert state.load("quotes") == {"a": []}
    assert (state.folder / "quotes.json.corrupt-7").read_bytes() == broken
