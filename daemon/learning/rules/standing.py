"""The rules and preferences that stand in a project's files, matched with its journal, and what contradicts
them.

The files decide. A person may edit them, delete a line, move it, take over a colleague's on a merge; the
journal follows. A rule in a file that this journal never knew is another's: it is shown and never changed.
A model said which rules a signal contradicts when it read it (``against``); here that is only counted.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct

from .journal import against
from .section import PREFERENCES, Rule

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .journal import Entry, Journal
    from .section import Document

WORKSHOP: Final = "workshop"  # in place of a file
GONE: Final = "not in the file any more"
Note = Literal["", "edited", "another", "by hand"]
NOTES: Final[dict[str, str]] = {
    "": "",
    "edited": "edited by hand",
    "another": "somebody else's",
    "by hand": "your own words",
}
"""The notes in words for a person."""
CONTRADICTED: Final = 2
"""How often a person must have contradicted a rule before unlearning it is suggested (FR8)."""
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+")  # cuts a paragraph into pieces that a question can quote


class Standing(Struct, frozen=True):
    """A rule, a preference, or a line that somebody wrote by hand (``id`` is ""). ``soft``: a preference.
    ``file`` and ``line``: where it stands. ``note``: it was "edited" by hand, is "another" person's, or "by
    hand". ``rule``: as the file has it; None where no file has it.
    """

    id: str
    text: str
    active: bool
    soft: bool
    file: str
    learned: str = ""
    archived: str = ""
    reason: str = ""
    line: int = 0
    note: Note = ""
    sources: tuple[str, ...] = ()
    rule: Rule | None = None

    @property
    def where(self) -> str:
        """Its file, with the line where it is known."""
        return f"{self.file}:{self.line}" if self.line else self.file

    @property
    def mine(self) -> bool:
        """Says whether reflectd may change it."""
        return self.note in {"", "edited"}


def matched(
    journal: Journal, files: Sequence[tuple[str, Document]], ours: Iterable[Mapping[str, Any]], day: str
) -> list[Standing]:
    """All rules and preferences by their ids, those of others too; the journal is made to say what the files
    (name and document) say, in place. ``ours``: entries that this journal had once, also if it was thrown
    away since.
    """
    rules: list[Entry] = journal["learned_rules"]
    known = {(entry["id"], entry["content"]): entry for entry in ours}
    ids = {entry["id"] for entry in rules}
    claimed = {entry["id"]: place for entry in rules if (place := _place_of(entry, files))}
    taken = {id(rule) for _, rule in claimed.values()}
    others = []
    for name, doc in files:
        for rule in doc.rules:
            entry = known.get((rule.id, rule.text))
            if id(rule) in taken:
                continue
            if entry is not None and rule.id not in ids:
                rules.append({**entry, "file": name})
                ids.add(rule.id)
                claimed[rule.id] = (name, rule)
            else:
                others.append(_of_file(rule, name, soft=doc.form is PREFERENCES))
    for entry in rules:
        _follow(entry, claimed.get(entry["id"]), day)
    rows = [*(_of_journal(entry, claimed.get(entry["id"])) for entry in rules), *others]
    return sorted(rows, key=lambda s: (int(s.id.rpartition("-")[2]), s.file, s.line))


def by_hand(name: str, doc: Document, *, sentences: bool = False) -> list[Standing]:
    """Handwritten lines among the active rules; with ``sentences`` all sentences but archived ones."""
    soft = doc.form is PREFERENCES
    return [
        Standing("", text, True, soft, name, line=own.line, note="by hand")
        for own in doc.own()
        if own.part == "active" or (sentences and own.part != "archived")
        for text in (_SENTENCE_END.split(own.text) if sentences else [own.text])
    ]


def _place_of(entry: Entry, files: Sequence[tuple[str, Document]]) -> tuple[str, Rule] | None:
    """The file and line of a journal's rule: the same text first, then its own file."""
    soft = entry["target"] == "workshop_preference"
    places = [
        (name, rule)
        for name, doc in files
        if (doc.form is PREFERENCES) == soft
        for rule in doc.rules
        if rule.id == entry["id"] and entry.get("file") != WORKSHOP
    ]
    places.sort(key=lambda p: (p[1].text != entry["content"], p[0] != entry.get("file"), not p[1].active))
    return places[0] if places else None


def _follow(entry: Entry, place: tuple[str, Rule] | None, day: str) -> None:
    """Make an entry of the journal say what its file says."""
    if place is None:
        if entry["active"] and entry.get("file") != WORKSHOP:
            entry |= {"active": False, "archived_at": day, "reason": GONE}
        return
    entry["file"], rule = place
    if rule.active and not entry["active"]:
        entry["active"] = True
        entry.pop("archived_at", None)
        entry.pop("reason", None)
    elif entry["active"] and not rule.active:
        entry |= {"active": False, "archived_at": rule.day or day, "reason": rule.reason}


def _of_journal(entry: Entry, place: tuple[str, Rule] | None) -> Standing:
    _, rule = place or ("", None)
    return Standing(
        entry["id"],
        rule.text if rule else entry["content"],
        entry["active"],
        entry["target"] == "workshop_preference",
        str(entry.get("file", "")),
        str(entry.get("promoted_at", "")),
        str(entry.get("archived_at", "")),
        str(entry.get("reason", "")),
        rule.line if rule else 0,
        "edited" if rule and rule.text != entry["content"] else "",
        tuple(entry["source_signals"]),
        rule,
    )


def _of_file(rule: Rule, name: str, *, soft: bool) -> Standing:
    """Another person's."""
    learned, archived = (rule.day, "") if rule.active else ("", rule.day)
    return Standing(
        rule.id, rule.text, rule.active, soft, name, learned, archived, rule.reason, rule.line, "another",
        rule=rule,
    )  # fmt: skip


def contradicting(row: Standing, signals: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """How often the person contradicted a rule of theirs since they learned it, by the ids of signals."""
    found = Counter[str]()
    for signal in signals if row.active and row.mine else ():
        later = signal["last_seen"] > row.learned and row.id in against(signal)
        if later and signal["status"] != "dismissed" and signal["type"] != "feedback":
            found[signal["id"]] = signal["occurrences"] if signal["first_seen"] > row.learned else 1
    return found


def facts(row: Standing, signals: Iterable[Mapping[str, Any]]) -> str:
    """In words: since when it stands, whose it is, how often the person contradicted it, how it ended."""
    found = [f"learned {row.learned}" if row.learned else "", NOTES[row.note]]
    found.append(in_words(contradicting(row, signals)))
    if not row.active:
        found += [f"archived {row.archived}" if row.archived else "", row.reason]
    return ", ".join(fact for fact in found if fact)


def in_words(contradicted: Counter[str]) -> str:
    """The result of ``contradicting`` for a person, "" where there is none."""
    times = contradicted.total()
    often = f"{'once' if times == 1 else f'{times} times'} ({', '.join(list(contradicted)[:3])})"
    return f"you contradicted it {often}" if times else ""
