"""What a scan found is counted in the journal, with its words and where reading stopped beside it.

In this order: the journal, the words, the cursors. So a scan that is killed reads some files a second time,
and counts nothing twice. Two scans at once add up. Cursors and words belong to one journal: with a new one
everything is read again. Raises ``Unavailable``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from ...core.errors import UserError
from ...files.safe import alone
from ...redact import redact
from .candidates import Gathering, keep_quotes, merged, stored
from .journal import Adding, same, trim

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .candidates import Candidate, Finding
    from .journal import Entry, Journal
    from .journal_file import Changed, ProjectJournal

Json = dict[str, Any]
JOURNAL: Final = "journal"  # among quotes and cursors: when their journal was created
MOST: Final = 100_000  # cursors of files, and texts that were decided; what is dropped is read again


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
    kept: Mapping[str, Candidate] | None = None,
    decided: Mapping[str, str] | None = None,
    dry_run: bool = False,
) -> Changed[Counted]:
    """Count findings. ``cursors``: path → where reading stopped. ``kept`` and ``decided``: candidates, and
    what became of others, as ``rules.candidates`` has them.
    """
    quoted: list[tuple[str, Finding]] = []
    became = dict(decided or {})

    def edit(journal: Journal) -> Counted:
        adding, found = Adding(journal), Counted()
        for finding in findings:
            name, changed = adding.add(finding.seen)
            quoted.append((name, finding))
            if finding.key:
                became[finding.key] = name
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
            _keep_quotes(book, journal, quoted, now_ms)
        known = {**state.load("decided"), **became}
        if became:
            state.save("decided", _newest(known), now_ms)
        if kept is not None or became:  # what a kill left in both is decided
            ids = {"none", *(signal["id"] for signal in journal["signals"])}
            found = merged(kept or {}, stored(state.load("candidates")))
            left = {key: c.object() for key, c in found.items() if known.get(key) not in ids}
            state.save("candidates", left, now_ms)
        if cursors is not None:
            files = _newest({**known_cursors(book, journal), **cursors})
            state.save("cursors", {JOURNAL: journal.get("created", ""), "files": files}, now_ms)

    return book.change(edit, dry_run=dry_run, after=after)


def _keep_quotes(
    book: ProjectJournal, journal: Journal, quoted: Sequence[tuple[str, Finding]], now_ms: int
) -> None:
    there = {signal["id"] for signal in journal["signals"]}
    quotes = {name: of for name, of in _of_journal(book, "quotes", journal).items() if name in there}
    for name, finding in quoted:
        if name in there:
            known = quotes.get(name)
            quotes[name] = keep_quotes(known if isinstance(known, list) else (), finding.quote)
    book.state.save("quotes", {JOURNAL: journal.get("created", ""), **quotes}, now_ms)


def gathering(book: ProjectJournal, journal: Journal) -> Gathering:
    """What waits to be read, and what became of the rest, for a scan that goes on."""
    state = book.state
    return Gathering(stored(state.load("candidates")), state.load("decided"), journal["signals"])


def word(book: ProjectJournal, keys: Sequence[str], content: str, now_ms: int) -> Entry:
    """Somebody worded what these candidates say: the signal that they are counted in. Raises ``UserError``
    for a candidate that is not there, and ``Unavailable``.
    """
    found = gathering(book, book.read().journal)
    for candidate in _named(found, keys):
        stopped = {"refused", "interrupted"} & set(candidate.why)
        found.settle(candidate, "correction" if stopped else "instruction", content)
    done = count(book, found.found, now_ms=now_ms, decided=found.nothing)
    messages = {f.seen.message for f in found.found}
    counted = (s for s in done.journal["signals"] if any(messages & {*of} for of in s["sightings"].values()))
    mine: Entry | None = next((s for s in counted if same(s["content"], redact(content))), None)
    if mine is None:
        raise UserError("these messages were counted as something else meanwhile: scan again")
    return mine


def drop(book: ProjectJournal, keys: Sequence[str], now_ms: int) -> None:
    """These candidates teach nothing: they are not shown again. Raises as ``word`` does."""
    found = gathering(book, book.read().journal)
    for candidate in _named(found, keys):
        found.settle(candidate, "none")
    count(book, (), now_ms=now_ms, decided=found.nothing)


def take_back(book: ProjectJournal, candidate: Candidate, now_ms: int) -> None:
    """A candidate that was dropped waits again. Raises ``Unavailable``."""
    state = book.state
    with alone(state.folder):
        decided = {k: v for k, v in state.load("decided").items() if k != candidate.key}
        state.save("decided", decided, now_ms)
        waiting = {**state.load("candidates"), candidate.key: candidate.object()}
        state.save("candidates", waiting, now_ms)


def unread(book: ProjectJournal) -> list[Candidate]:
    """The candidates that nobody read yet."""
    return list(stored(book.state.load("candidates")).values())


def _named(found: Gathering, keys: Sequence[str]) -> list[Candidate]:
    """Raises ``UserError`` before anything is settled."""
    gone = [key for key in keys if key not in found.kept]
    if gone:
        raise UserError(f"no message {gone[0][:40]!r} waits to be read; `reflectd reflect scan` lists them")
    return [found.kept[key] for key in dict.fromkeys(keys)]


def known_cursors(book: ProjectJournal, journal: Journal) -> Json:
    """Where reading stopped in each file, by its path; nothing when that was for another journal."""
    files = _of_journal(book, "cursors", journal).get("files")
    return dict(files) if isinstance(files, dict) else {}


def _of_journal(book: ProjectJournal, name: Literal["cursors", "quotes"], journal: Journal) -> Json:
    """What is kept for this journal; nothing of another one, which gave the same ids to others."""
    found = book.state.load(name)
    return found if found.get(JOURNAL) == journal.get("created", "") else {}


def _newest(found: Json) -> Json:
    """The newest ``MOST`` entries."""
    return dict(list(found.items())[-MOST:])
