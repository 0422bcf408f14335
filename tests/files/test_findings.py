"""Findings counted in the journal, with their words and the cursors beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from daemon.files.findings import MOST, Counted, count, known_cursors
from daemon.files.journal import ProjectJournal
from daemon.rules.gather import Finding, Quote
from daemon.rules.journal import MAX_SIGNALS, Seen
from daemon.testing import FakeClock


@pytest.fixture
def book(tmp_path: Path) -> ProjectJournal:
    (tmp_path / "work").mkdir()
    return ProjectJournal(tmp_path / "work", tmp_path / "state", FakeClock())


def found(content: str = "Use strict mode", session: str = "a", message: str = "1") -> Finding:
    seen = Seen("correction", content, "high", "2025-11-27", session, message)
    return Finding(seen, Quote(f"no, {content}", "I did not.", "2025-11-27", session, "f.jsonl", 3))


def counted(book: ProjectJournal, *given: Finding, **more: Any) -> Counted:
    return count(book, given, now_ms=1, **more).result


def test_journal_words_and_cursors_are_written_together(book: ProjectJournal) -> None:
    """New signals, and those that came up again; the same a second time is neither."""
    assert counted(book, found(), cursors={"f": [1]}, asked={}).new == ["sig-20251127-001"]
    assert counted(book, found(session="b", message="2"), cursors={"g": [2]}).again == ["sig-20251127-001"]
    assert counted(book, found(), found(session="b", message="2")) == Counted()
    assert [q["session"] for q in book.state.load("quotes")["sig-20251127-001"]] == ["a", "b"]
    assert known_cursors(book, book.read().journal) == {"f": [1], "g": [2]}


def test_a_new_journal_is_filled_anew(book: ProjectJournal) -> None:
    """The cursors of one that was thrown away do not count, and its words are not shown beside a new signal,
    which has the same id.
    """
    counted(book, found(), cursors={"f": [1]})
    book.path.unlink()
    later = ProjectJournal(book.project, book.state.folder.parents[1], FakeClock(ms=1_800_000_000_000))
    assert known_cursors(later, later.read().journal) == {}
    assert counted(later, found("Run lint first"), cursors={"g": [2]}).new == ["sig-20251127-001"]
    assert known_cursors(later, later.read().journal) == {"g": [2]}
    assert [q["text"] for q in later.state.load("quotes")["sig-20251127-001"]] == ["no, Run lint first"]
    counted(later, found("Run lint first", session="b", message="2"))
    assert len(later.state.load("quotes")["sig-20251127-001"]) == 2


def test_a_dry_run_leaves_everything(book: ProjectJournal) -> None:
    """Neither the journal nor anything in the state folder is written."""
    assert counted(book, found(), cursors={"f": [1]}, asked={"k": {}}, dry_run=True).new
    assert not book.path.exists()
    assert not book.state.folder.exists()


@pytest.mark.shows("I44")
def test_what_is_stored_stays_bounded(book: ProjectJournal) -> None:
    """Signals, their words, cursors, and what a model decided."""
    many = [found(f"Rule about thing {n}", "a", str(n)) for n in range(MAX_SIGNALS + 2)]
    done = counted(book, *many)
    assert done.told == ["2 of the least signals were dropped: there are too many"]
    assert len(book.state.load("quotes")) == MAX_SIGNALS + 1, "and when their journal was created"
    names = [str(n) for n in range(MOST + 2)]
    counted(book, cursors=dict.fromkeys(names, 1), decided=dict.fromkeys(names, "none"))
    assert list(known_cursors(book, book.read().journal)) == list(book.state.load("decided")) == names[2:]
