"""The journal as a file, and what belongs to it in the state folder: one writer at a time, nothing lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from daemon.core.errors import Unavailable, UserError
from daemon.learning.rules.candidates import Candidate, quotes_of
from daemon.learning.rules.journal import Reading, Sighting, signal_named
from daemon.learning.rules.journal_file import Draft, ProjectJournal
from daemon.testing import FakeClock
from tests.support.secrets import TOKENS

SECRET = TOKENS["anthropic"][0]
NAME = "sig-20251127-001"
LATER = 1_800_000_000_000


@pytest.fixture
def book(tmp_path: Path) -> ProjectJournal:
    (tmp_path / "work").mkdir()
    return ProjectJournal(tmp_path / "work", tmp_path / "state", FakeClock())


def counted(book: ProjectJournal, key: str = "strict", content: str = "Use strict mode") -> Draft:
    """A message of two sessions, read as that."""
    return book.keep(waiting(key), {key: Reading("correction", content)})


def waiting(*keys: str) -> dict[str, Candidate]:
    """Candidates of two sessions each."""
    seen = {key: tuple(Sighting(s, f"{key}-{s}", "2025-11-27") for s in "ab") for key in keys}
    return {key: Candidate(key, f"no, {key}", "I did not.", ("correction",), seen[key]) for key in keys}


def later(book: ProjectJournal) -> ProjectJournal:
    """The same project, years later, when its journal was thrown away."""
    book.path.unlink()
    return ProjectJournal(book.project, book.state.folder.parents[1], FakeClock(ms=LATER))


# --- the file --------------------------------------------------------------------------------------------


@pytest.mark.shows("FR2", "TR4", "PATH_DECISION-3")
def test_a_journal_begins_as_agreed(book: ProjectJournal) -> None:
    """Its place, its form, the project's name and when it was created; a block that raises writes nothing."""
    assert book.read().journal["signals"] == []
    assert not book.state.folder.exists()
    assert counted(book).told == []
    assert book.path == book.project / ".claude/orchestration/temp/reflect-journal.json"
    written = json.loads(book.path.read_bytes())
    begun = {"version": "1.0", "project": "work", "created": "2023-11-14T22:13:20.000+00:00"}
    assert written | begun == written
    assert book.read().journal == written | {"tombstones": []}
    assert [s["id"] for s in written["signals"]] == [NAME]
    assert book.path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(UserError, match="no signal"):
        _fails(book)
    assert json.loads(book.path.read_bytes()) == written


def _fails(book: ProjectJournal) -> None:
    with book.change() as draft:
        draft.journal["project"] = "other"
        signal_named(draft.journal, "sig-1")


@pytest.mark.parametrize("there", [False, True])
def test_a_folder_of_ours_is_kept_out_of_git(book: ProjectJournal, there: bool) -> None:
    """A ``.gitignore`` of its own; none in a folder that was there, which git may track."""
    if there:
        book.path.parent.mkdir(parents=True)
    counted(book)
    assert (book.path.parent / ".gitignore").exists() is not there


@pytest.mark.shows("I46")
def test_what_is_written_has_no_secret(book: ProjectJournal) -> None:
    """Neither a signal nor a rule, whoever adds it."""
    with book.change() as draft:
        for key, name in (("signals", NAME), ("learned_rules", "rule-001")):
            entry = {"id": name, "type": "correction", "content": f"Use the key {SECRET}"}
            draft.journal[key].append(entry)
    assert SECRET not in book.path.read_text()
    assert book.path.read_text().count("[redacted:") == 2


@pytest.mark.shows("I43")
@pytest.mark.parametrize("broken", ["", "{", "[]", '{"signals": [{"id": "x"}]}', "[" * 100_000, "\xff"])
def test_a_file_that_is_no_journal_is_kept(book: ProjectJournal, broken: str) -> None:
    """It is named, left alone while it is only read, and kept aside before a new one is written."""
    counted(book)
    book.path.write_bytes(broken.encode("latin-1"))
    loaded = book.read()
    assert loaded.journal["signals"] == []
    assert f"{book.path} is no journal that can be used: " in loaded.problem
    assert book.path.read_bytes() == broken.encode("latin-1")
    draft = counted(book)
    (aside,) = book.path.parent.glob("*.corrupt-*")
    assert aside.read_bytes() == broken.encode("latin-1")
    assert aside.name in draft.told[0]
    assert [s["id"] for s in book.read().journal["signals"]] == [NAME]


def test_links_are_not_followed(book: ProjectJournal, tmp_path: Path) -> None:
    """A clone may ship them: neither the file nor a folder above it, and what they lead to stays as it is."""
    other = tmp_path / "other"
    other.mkdir()
    (book.project / ".claude").symlink_to(other)
    with pytest.raises(UserError, match="is a link: nothing is read or written there"):
        counted(book)
    assert "is a link" in book.read().problem
    (book.project / ".claude").unlink()
    book.path.parent.mkdir(parents=True)
    (other / "mine.json").write_text("{}")
    book.path.symlink_to(other / "mine.json")
    assert "it is a link" in book.read().problem
    counted(book)
    assert (other / "mine.json").read_text() == "{}"
    assert not book.path.is_symlink()


def test_where_there_can_be_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The home folder is no project; a folder that can't be written says so."""
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(UserError, match="is no project"):
        counted(ProjectJournal(tmp_path, tmp_path / "state", FakeClock()))
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / ".claude").write_text("a file")
    with pytest.raises(Unavailable, match="can't make the folder"):
        counted(ProjectJournal(tmp_path / "work", tmp_path / "state", FakeClock()))


# --- what belongs to it ----------------------------------------------------------------------------------


def test_a_message_is_counted_once_in_all_its_sessions(book: ProjectJournal) -> None:
    """In the signal that it was read as, with its quotes; the same words in a later session count in it, and
    nobody is asked again. Of a journal that was thrown away everything is read anew, but what taught nothing.
    """
    book.keep(waiting("one", "two", "three"), cursors={"f": [1]})
    signal = book.word(["one", "two"], "Use strict  mode")
    assert (signal["content"], signal["type"], signal["occurrences"]) == ("Use strict mode", "instruction", 2)
    messages = book.messages(book.read().journal).values()
    assert {q["text"] for q in quotes_of(messages, signal["id"])} <= {"no, one", "no, two"}
    more = Candidate("one", "no, one", seen=(Sighting("c", "one-c", "2025-11-28"),))
    for _ in range(2):
        book.keep({**waiting("one", "two", "three"), "one": more})
        assert [s["occurrences"] for s in book.read().journal["signals"]] == [3]
    assert [c.key for c in book.unread()] == ["three"]
    with pytest.raises(UserError, match="no message 'two' waits"):
        book.word(["three", "two"], "x")
    book.drop(["three"])
    book.keep(waiting("three"), {"three": Reading("correction", "x")})
    assert (book.unread(), len(book.read().journal["signals"])) == ([], 1)
    assert book.state.load("cursors") == {"f": [1]}
    new = later(book)
    new.keep(waiting("one", "three"))
    assert [c.key for c in new.unread()] == ["one", "two"]
