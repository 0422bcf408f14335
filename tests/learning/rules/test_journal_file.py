"""The journal as a file: where it is, one writer at a time, nothing lost, no secrets, links and damage."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from daemon.core.errors import Unavailable, UserError
from daemon.learning.rules.journal import Adding, Journal, Seen, dismiss, restore
from daemon.learning.rules.journal_file import FILE, OPENCODE_FILE, ProjectJournal, place
from daemon.testing import FakeClock
from tests.support.reflecting import promote
from tests.support.secrets import TOKENS

SECRET = TOKENS["anthropic"][0]


@pytest.fixture
def book(tmp_path: Path) -> ProjectJournal:
    (tmp_path / "work").mkdir()
    return ProjectJournal(tmp_path / "work", tmp_path / "state", FakeClock())


def add(journal: Journal, content: str = "Use strict mode", message: str = "1") -> list[str]:
    adding = Adding(journal)
    adding.add(Seen("correction", content, "high", "2025-11-27", "s", message))
    return adding.new


@pytest.mark.shows("FR2", "TR4", "PATH_DECISION-3")
def test_a_journal_begins_as_agreed(book: ProjectJournal) -> None:
    """Its place, its form, the project's name and when it was created."""
    assert book.read().journal["signals"] == []
    assert not book.path.exists()
    done = book.change(add)
    assert (done.result, done.written, done.told) == (["sig-20251127-001"], True, ())
    assert book.path == book.project / ".claude/orchestration/temp/reflect-journal.json"
    found = json.loads(book.path.read_bytes())
    begun = {"version": "1.0", "project": "work", "created": "2023-11-14T22:13:20.000+00:00"}
    assert found | begun == found == book.read().journal
    assert book.path.stat().st_mode & 0o777 == 0o600


def test_where_only_opencode_works(tmp_path: Path) -> None:
    """Beside the verdicts, unless Claude Code works there too; a journal that is there stays where it is."""
    assert place(tmp_path) == tmp_path / FILE
    (tmp_path / "opencode.json").write_text("{}")
    assert place(tmp_path) == tmp_path / OPENCODE_FILE
    book = ProjectJournal(tmp_path, tmp_path / "state", FakeClock())
    book.change(add)
    assert (tmp_path / ".reflection" / ".gitignore").exists()
    (tmp_path / "CLAUDE.md").write_text("")
    assert place(tmp_path) == tmp_path / OPENCODE_FILE
    (tmp_path / OPENCODE_FILE).unlink()
    assert place(tmp_path) == tmp_path / FILE


def test_the_folder_is_kept_out_of_git_unless_it_is_tracked(tmp_path: Path) -> None:
    """A ``.gitignore`` of its own; none in a folder that git tracks something of."""
    for tracked in (False, True):
        project = tmp_path / str(tracked)
        (project / ".git").mkdir(parents=True)
        name = b".claude/orchestration/temp/notes.md" if tracked else b"src/main.py"
        (project / ".git" / "index").write_bytes(b"DIRC" + bytes(60) + name)
        book = ProjectJournal(project, tmp_path / "state", FakeClock())
        book.change(add)
        assert (book.path.parent / ".gitignore").exists() is not tracked


def test_what_writes_nothing(book: ProjectJournal) -> None:
    """A dry run, which says what would come of it; no change; an edit that fails."""
    assert book.change(add, dry_run=True).result == ["sig-20251127-001"]
    assert not book.path.exists()
    book.change(add)
    before = book.path.stat()
    after: list[int] = []
    done = book.change(add, after=lambda _journal, _result: after.append(1))
    assert (done.result, done.written, after) == ([], False, [1])
    with pytest.raises(UserError):
        book.change(lambda journal: [add(journal, "Another", "2"), dismiss(journal, ["sig-1"], "d")])
    assert book.path.stat().st_mtime_ns == before.st_mtime_ns


@pytest.mark.shows("I46")
def test_what_is_written_has_no_secret(book: ProjectJournal) -> None:
    """Neither a signal nor a rule, whoever adds it."""

    def edit(journal: Journal) -> None:
        add(journal, f"Use the key {SECRET}")
        promote(journal, [], content=f"Use {SECRET}", target="claude_md", file="CLAUDE.md", day="d")

    book.change(edit)
    assert SECRET not in book.path.read_text()
    assert book.path.read_text().count("[redacted:") == 2


@pytest.mark.shows("I43")
@pytest.mark.parametrize("broken", ["", "{", "[]", '{"signals": [{"id": "x"}]}', "[" * 100_000, "\xff"])
def test_a_file_that_is_no_journal_is_kept(book: ProjectJournal, broken: str) -> None:
    """It is named, left alone while it is only read, and kept aside before a new one is written."""
    book.change(add)
    book.path.write_bytes(broken.encode("latin-1"))
    found = book.read()
    assert found.journal["signals"] == []
    assert f"{book.path} is no journal that can be used: " in found.problem
    assert book.path.read_bytes() == broken.encode("latin-1")
    done = book.change(add)
    (aside,) = book.path.parent.glob("*.corrupt-*")
    assert aside.read_bytes() == broken.encode("latin-1")
    assert aside.name in done.told[0]
    assert [s["id"] for s in book.read().journal["signals"]] == ["sig-20251127-001"]


def test_a_dismissal_holds_when_the_journal_is_thrown_away(book: ProjectJournal) -> None:
    """The folder is called temp; the tombstone is in the state folder too, until it is taken back."""
    name = "sig-20251127-001"
    book.change(add)
    for edit, status in (
        (lambda journal: dismiss(journal, [name], "2025-11-28"), "dismissed"),
        (lambda journal: restore(journal, [name]), "pending"),
    ):
        book.change(edit)
        book.path.unlink()
        book.change(add)
        assert [s["status"] for s in book.read().journal["signals"]] == [status]


def test_links_are_not_followed(tmp_path: Path) -> None:
    """A clone may ship them: neither the file nor a folder above it, and what they lead to stays as it is."""
    project, other = tmp_path / "work", tmp_path / "other"
    project.mkdir()
    other.mkdir()
    (project / ".claude").symlink_to(other)
    book = ProjectJournal(project, tmp_path / "state", FakeClock())
    with pytest.raises(UserError, match="is a link: nothing is read or written there"):
        book.change(add)
    assert "is a link" in book.read().problem
    (project / ".claude").unlink()
    book.path.parent.mkdir(parents=True)
    (other / "mine.json").write_text("{}")
    book.path.symlink_to(other / "mine.json")
    assert "it is a link" in book.read().problem
    book.change(add)
    assert (other / "mine.json").read_text() == "{}"
    assert not book.path.is_symlink()


def test_where_there_can_be_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The home folder is no project; a folder that can't be written says so."""
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(UserError, match="is no project"):
        ProjectJournal(tmp_path, tmp_path / "state", FakeClock()).change(add)
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / ".claude").write_text("a file")
    with pytest.raises(Unavailable, match="can't make the folder"):
        ProjectJournal(tmp_path / "work", tmp_path / "state", FakeClock()).change(add)
