"""A reader's key and the marks it makes."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from daemon.core.errors import UserError
from daemon.store.readers import Reader, lost


def test_the_key_is_made_once(tmp_path: Path) -> None:
    """Only the person may read it; the same reader comes back."""
    path = tmp_path / "state" / "key"
    reader, again, other = Reader(path), Reader(path), Reader(tmp_path / "other")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert reader.name == again.name != other.name
    mark = reader.mark("confirmed", ["a", 1.0])
    assert again.knows(mark, "confirmed", ["a", 1.0])
    for who, state, values in (
        (other, "confirmed", ["a", 1.0]),
        (reader, "dismissed", ["a", 1.0]),
        (reader, "confirmed", ["b", 1.0]),
        (reader, "confirmed", ["a1.0"]),
    ):
        assert not who.knows(mark, state, values)


@pytest.mark.shows("I43")
@pytest.mark.parametrize("text", ["", "nothex", "00"])
def test_a_key_that_is_none(tmp_path: Path, text: str) -> None:
    """It is told and left as it is."""
    (tmp_path / "key").write_text(text)
    with pytest.raises(UserError, match="key"):
        Reader(tmp_path / "key")
    assert (tmp_path / "key").read_text() == text


@pytest.mark.shows("I51")
def test_a_lost_key_is_known_until_a_person_decides(tmp_path: Path) -> None:
    """Gone, replaced by a new one, damaged; fine again with the old one, or when the new one is kept."""
    path = tmp_path / "key"
    assert lost(path) is None
    Reader(path)
    old = path.read_bytes()
    assert lost(path) is None
    path.unlink()
    assert "is gone" in (lost(path) or ("",))[0]
    assert not path.exists(), "looking makes none"
    new = Reader(path)
    problem, mend = lost(path) or ("", "")
    assert "is another key" in problem
    path.write_bytes(old)
    assert lost(path) is None
    path.write_text("nothex")
    assert "can't be used" in (lost(path) or ("",))[0]
    path.unlink()
    Reader(path)
    used = tmp_path / "key.used"
    assert str(used) in mend
    assert stat.S_IMODE(used.stat().st_mode) == 0o600
    used.unlink()
    assert Reader(path).name != new.name
    assert lost(path) is None
