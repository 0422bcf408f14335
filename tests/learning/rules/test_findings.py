"""Findings counted in the journal, with their words and the cursors beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from daemon.core.errors import UserError
from daemon.learning.rules.candidates import Candidate, Finding, Quote, Sighting, stored
from daemon.learning.rules.findings import MOST, Counted, count, drop, known_cursors, take_back, unread, word
from daemon.learning.rules.journal import MAX_SIGNALS, Seen
from daemon.learning.rules.journal_file import ProjectJournal
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


def waiting(*keys: str) -> dict[str, Candidate]:
    """Candidates of two sessions each."""
    seen = {key: tuple(Sighting(s, f"{key}-{s}", "2025-11-27") for s in "ab") for key in keys}
    return {key: Candidate(key, f"no, {key}", "I did not.", ("correction",), seen[key]) for key in keys}


def test_journal_words_and_cursors_are_written_together(book: ProjectJournal) -> None:
    """New signals, and those that came up again; the same a second time is neither."""
    assert counted(book, found(), cursors={"f": [1]}, kept={}).new == ["sig-20251127-001"]
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
    assert counted(book, found(), cursors={"f": [1]}, kept=waiting("k"), dry_run=True).new
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


def test_somebody_words_what_waits(book: ProjectJournal) -> None:
    """The signal has the sessions and quotes of all of them, and they are not asked about again."""
    counted(book, kept=waiting("one", "two", "three"))
    signal = word(book, ["one", "two"], "Use strict  mode", 1)
    assert (signal["content"], signal["type"], signal["occurrences"]) == ("Use strict mode", "instruction", 2)
    assert {q["text"] for q in book.state.load("quotes")[signal["id"]]} <= {"no, one", "no, two"}
    assert [c.key for c in unread(book)] == ["three"]
    counted(book, kept=waiting("one", "two", "three"))
    assert [c.key for c in unread(book)] == ["three"], "another scan read the same again"
    with pytest.raises(UserError, match="no message 'two' waits"):
        word(book, ["three", "two"], "x", 1)
    assert [c.key for c in unread(book)] == ["three"]


def test_what_teaches_nothing_is_dropped_until_that_is_taken_back(book: ProjectJournal) -> None:
    """Nothing is counted, also by the next scan."""
    counted(book, kept=waiting("one"))
    (candidate,) = unread(book)
    drop(book, ["one"], 1)
    counted(book, kept=waiting("one"))
    assert (unread(book), book.read().journal["signals"]) == ([], [])
    take_back(book, candidate, 1)
    assert unread(book) == [candidate]


def test_with_a_new_journal_words_are_read_anew(book: ProjectJournal) -> None:
    """What became a signal of the old one waits again; what taught nothing does not."""
    counted(book, kept=waiting("one", "two"))
    word(book, ["one"], "Use bun", 1)
    drop(book, ["two"], 1)
    book.path.unlink()
    later = ProjectJournal(book.project, book.state.folder.parents[1], FakeClock(ms=1_800_000_000_000))
    counted(later, kept=waiting("one", "two"))
    assert list(stored(later.state.load("candidates"))) == ["one"]
