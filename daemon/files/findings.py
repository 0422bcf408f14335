"""What a scan found is counted in the journal, with its words and where reading stopped beside it.

In this order: the journal, the words, the cursors. So a scan that is killed reads some files a second time,
and counts nothing twice. Two scans at once add up. Cursors and words belong to one journal: with a new one
everything is read again. Raises ``Unavailable``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ..rules.gather import keep_quotes, merge_asked
from ..rules.journal import Adding, trim

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..rules.gather import Finding
    from ..rules.journal import Journal
    from .journal import Changed, ProjectJournal

Json = dict[str, Any]
JOURNAL: Final = "journal"  # among the quotes: when their journal was created
MOST: Final = 100_000  # cursors of files, and messages that were decided; what is dropped is read again


@dataclass(slots=True)
class Counted:
    """What came of findings: ids of new signals, and of those that came up again."""

    new: list[str] = field(default_factory=list)
    again: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)


def count(
    book: ProjectJournal,
    findings: Sequence[Finding],
    *,
    now_ms: int,
    cursors: Json | None = None,
    asked: Json | None = None,
    decided: Json | None = None,
    dry_run: bool = False,
) -> Changed[Counted]:
    """Count findings. ``cursors``: path → where reading stopped; ``asked``: see ``rules.gather``;
    ``decided``: digests of messages that a model decided.
    """
    quoted: list[tuple[str, Finding]] = []

    def edit(journal: Journal) -> Counted:
        adding, found = Adding(journal), Counted()
        for finding in findings:
            name, changed = adding.add(finding.seen)
            quoted.append((name, finding))
            if changed and name not in adding.new:
                found.again.append(name)
        found.new = adding.new
        found.again = sorted(set(found.again))
        gone = trim(journal)
        if gone:
            found.told.append(f"{len(gone)} of the least signals were dropped: there are too many")
        return found

    def after(journal: Journal, _: Counted) -> None:
        state = book.state
        if quoted:
            there = {signal["id"] for signal in journal["signals"]}
            quotes = {name: of for name, of in _known_quotes(book, journal).items() if name in there}
            for name, finding in quoted:
                if name in there:
                    quotes[name] = keep_quotes(_list(quotes.get(name)), finding.quote)
            state.save("quotes", {JOURNAL: journal.get("created", ""), **quotes}, now_ms)
        if asked is not None:
            merge_asked(asked, state.load("asked"))
            state.save("asked", asked, now_ms)
        if decided:
            state.save("decided", _newest({**state.load("decided"), **decided}), now_ms)
        if cursors is not None:
            kept = {**known_cursors(book, journal), **cursors}
            files = _newest(kept)
            state.save("cursors", {"journal": journal.get("created", ""), "files": files}, now_ms)

    return book.change(edit, dry_run=dry_run, after=after)


def known_cursors(book: ProjectJournal, journal: Journal) -> Json:
    """Where reading stopped in each file, by its path; nothing when that was for another journal."""
    found = book.state.load("cursors")
    files = found.get("files")
    return (
        dict(files) if isinstance(files, dict) and found.get("journal") == journal.get("created", "") else {}
    )


def _known_quotes(book: ProjectJournal, journal: Journal) -> Json:
    """What was said, by the ids of signals; nothing of another journal, which gave the same ids to others."""
    found = book.state.load("quotes")
    return found if found.get(JOURNAL, journal.get("created", "")) == journal.get("created", "") else {}


def _newest(found: Json) -> Json:
    """The newest ``MOST`` entries."""
    return dict(list(found.items())[-MOST:])


def _list(found: object) -> list[Json]:
    return found if isinstance(found, list) else []
