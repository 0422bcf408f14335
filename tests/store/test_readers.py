"""A reader's key and the marks it makes."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from daemon.core.errors import UserError
from daemon.store.readers import Reader


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
