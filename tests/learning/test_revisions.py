"""Revisions: every change is kept, and undone only while nothing was edited since."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest

from daemon.core.errors import Unavailable, UserError
from daemon.learning import revisions as revise
from daemon.learning.revisions import Revision, RevisionsOf


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "CLAUDE.md"


class Revisions(RevisionsOf[Revision]):
    """Those of one file."""

    def write(
        self, data: bytes, what: str, why: str = "", by: str = "you", *, made_from: str | None = None
    ) -> Revision:
        return self.keep(Revision(0, 1, what, why, by), data, made_from=made_from)


@pytest.fixture
def kept(tmp_path: Path, file: Path) -> Revisions:
    (tmp_path / "state").mkdir()
    return Revisions(tmp_path / "state", file, Revision)


def test_a_change_says_what_why_and_by_whom(kept: Revisions, file: Path, tmp_path: Path) -> None:
    """What the file was before is kept with it, for its owner only."""
    file.write_text("old")
    found = kept.write(b"new", "a rule was added", why="you said so", by="curator")
    assert file.read_text() == "new"
    assert kept.all() == [found]
    assert (found.number, found.at, found.by) == (1, 1, "curator")
    assert (found.what, found.why) == ("a rule was added", "you said so")
    assert kept.before(found) == b"old"
    (path,) = (tmp_path / "state").iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_changes_are_undone_one_after_the_other(kept: Revisions, file: Path) -> None:
    """The newest first, down to no file at all; an undo can be undone, and is no change to undo by itself."""
    for text in (b"one", b"two", b"three"):
        kept.write(text, text.decode())
    assert kept.undo(0, at=2).undoes == 3
    assert file.read_bytes() == b"two"
    redo = kept.undo(4, at=3)
    assert (redo.undoes, file.read_bytes()) == (4, b"three")
    kept.undo(5, at=4)
    assert kept.undo(0, at=5).what == "undo of revision 2 (two)"
    kept.undo(0, at=6)
    assert not file.exists()
    with pytest.raises(UserError, match="there is nothing to undo"):
        kept.undo(0, at=7)
    assert [r.number for r in kept.all()] == [8, 7, 6, 5, 4, 3, 2, 1]


@pytest.mark.shows("I43")
def test_what_somebody_saves_while_a_change_is_written_stays(kept: Revisions, file: Path) -> None:
    """An editor saves when the new content is being written beside the file: the change is refused, and no
    revision is left of it.
    """
    file.write_text("theirs\n")
    armed = True

    def save(event: str, args: tuple[object, ...]) -> None:
        nonlocal armed
        if armed and event == "open" and str(args[0]).startswith(f"{file.parent}/.reflectd-"):
            armed = False
            file.write_text("theirs\nmine\n")

    sys.addaudithook(save)
    with pytest.raises(Unavailable, match="changed meanwhile"):
        kept.write(b"ours", "a change")
    assert (file.read_text(), kept.all()) == ("theirs\nmine\n", [])


def test_a_change_made_from_an_older_content_is_not_written(kept: Revisions, file: Path) -> None:
    """What it was made from is said by its digest; an empty file and none are the same."""
    file.write_text("theirs")
    with pytest.raises(Unavailable, match="changed meanwhile"):
        kept.write(b"ours", "a change", made_from="")
    assert (file.read_text(), kept.all()) == ("theirs", [])
    file.write_text("")
    kept.write(b"ours", "a change", made_from="")
    assert file.read_text() == "ours"


def test_what_was_edited_since_is_never_overwritten(kept: Revisions, file: Path) -> None:
    """By a person or by a later revision; the message says which."""
    kept.write(b"one", "first")
    kept.write(b"two", "second")
    with pytest.raises(UserError, match=r"changed since revision 1, first by revision 2 \(second\)"):
        kept.undo(1, at=2)
    file.write_bytes(b"mine")
    with pytest.raises(UserError, match="changed since revision 2, first by an edit that is not reflectd's"):
        kept.undo(0, at=2)
    with pytest.raises(UserError, match="there is no revision 9"):
        kept.undo(9, at=2)
    assert file.read_bytes() == b"mine"


def test_a_change_that_never_came_about_stands_in_no_way(kept: Revisions, file: Path) -> None:
    """As after `kill -9` before the file, or taken back by hand."""
    kept.write(b"one", "first")
    kept.write(b"two", "second")
    file.write_bytes(b"one")
    assert kept.undo(0, at=2).what == "undo of revision 1 (first)"
    assert not file.exists()


def test_a_revision_that_cannot_be_read_is_left_out(kept: Revisions, file: Path, tmp_path: Path) -> None:
    """The others stay usable, and its number is told as gone."""
    for text in (b"one", b"two"):
        kept.write(text, text.decode())
    for bad in ("{", "null", "[]", '{"number": 1}', '{"content_before": 3}'):
        (tmp_path / "state" / "00000001.revision.json").write_text(bad)
        assert [r.number for r in kept.all()] == [2]
    assert file.read_bytes() == b"two"
    path = tmp_path / "state" / "00000002.revision.json"
    path.write_text(path.read_text().replace('"content_before":"', '"content_before":"AAAA'))
    with pytest.raises(UserError, match="was before revision 2 can't be read"):
        kept.undo(0, at=2)
    assert file.read_bytes() == b"two"


@pytest.mark.shows("I44")
def test_revisions_are_bounded(kept: Revisions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest hundred stay, and numbers go on; large ones leave earlier."""
    for i in range(revise.KEPT + 5):
        kept.write(str(i).encode(), str(i))
    assert [r.number for r in kept.all()] == list(range(revise.KEPT + 5, 5, -1))
    monkeypatch.setattr(revise, "BYTES", 1_000)
    kept.write(b"x", "x")
    assert 1 <= len(kept.all()) < 5
