"""The rules and preferences that stand in a project's files, matched with its journal, and how they wear.

The files decide. A person may edit them, delete a line, move it, take over a colleague's on a merge; the
journal follows. A rule in a file that this journal never knew is another's: it is shown and never changed.
A model said which rules a signal contradicts when it read it (``signals``); here that is only counted, for a
person to look at.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Any, Final, Literal

from .journal import against, same
from .section import PREFERENCES, Rule

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .journal import Entry, Journal
    from .section import Document

WORKSHOP: Final = "workshop"  # in place of a file
GONE: Final = "not in the file any more"
Note = Literal["", "edited", "gone", "another"]
NOTES: Final[dict[str, str]] = {
    "": "",
    "edited": "edited by hand",
    "gone": GONE,
    "another": "somebody else's",
}
"""What a note means, in words for a person."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A rule or a preference. ``soft``: a preference. ``file`` and ``line``: where it stands. ``note``: it
    was "edited" by hand (``content``: what the journal says), is "gone" from its file, or is "another"
    person's. ``rule``: as the file has it.
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
    content: str = ""
    sources: tuple[str, ...] = ()
    rule: Rule | None = None

    @property
    def where(self) -> str:
        """Its file, with the line where it is known."""
        return f"{self.file}:{self.line}" if self.line else self.file


def standing(journal: Journal, files: Sequence[tuple[str, Document]]) -> list[Standing]:
    """All of them, by their ids: the journal's, and those in the files (name and document) that are
    another's.
    """
    claimed = _claimed(journal["learned_rules"], files)
    taken = {id(place[1]) for place in claimed.values()}
    found = [_of_journal(entry, claimed.get(entry["id"])) for entry in journal["learned_rules"]]
    found += [
        Standing(
            rule.id, rule.text, rule.active, doc.form is PREFERENCES, name,
            *((rule.day, "") if rule.active else ("", rule.day)), rule.reason, rule.line, "another",
            rule=rule,
        )
        for name, doc in files
        for rule in doc.rules
        if id(rule) not in taken
    ]  # fmt: skip
    return sorted(found, key=lambda s: (int(s.id.rpartition("-")[2]), s.file, s.line))


def reconcile(
    journal: Journal, files: Sequence[tuple[str, Document]], ours: Iterable[Mapping[str, Any]], day: str
) -> None:
    """Make the journal say what the files say, in place. ``ours``: entries that this journal had once, also
    if it was thrown away since.
    """
    rules: list[Entry] = journal["learned_rules"]
    claimed = _claimed(rules, files)
    taken, ids = {id(rule) for _, rule in claimed.values()}, {entry["id"] for entry in rules}
    known = {(entry["id"], entry["content"]): entry for entry in ours}
    for name, doc in files:
        for rule in doc.rules:
            entry = known.get((rule.id, rule.text))
            if id(rule) not in taken and entry is not None and rule.id not in ids:
                rules.append({**entry, "file": name})
                ids.add(rule.id)
                claimed[rule.id] = (name, rule)
    for entry in rules:
        if entry.get("file") == WORKSHOP:
            continue
        place = claimed.get(entry["id"])
        if place is None:
            if entry["active"]:
                entry |= {"active": False, "archived_at": day, "reason": GONE}
            continue
        name, rule = place
        entry["file"] = name
        if rule.active and not entry["active"]:
            entry["active"] = True
            entry.pop("archived_at", None)
            entry.pop("reason", None)
        elif entry["active"] and not rule.active:
            entry |= {"active": False, "archived_at": rule.day or day, "reason": rule.reason}


def _claimed(entries: Sequence[Entry], files: Sequence[tuple[str, Document]]) -> dict[str, tuple[str, Rule]]:
    """By id, the file and the line of each of the journal's rules: the same text before one that was edited,
    its own file before another one.
    """
    found: dict[str, tuple[str, Rule]] = {}
    for entry in entries:
        soft = entry["target"] == "workshop_preference"
        places = [
            (name, rule)
            for name, doc in files
            if (doc.form is PREFERENCES) == soft
            for rule in doc.rules
            if rule.id == entry["id"]
        ]
        places.sort(key=lambda p: (p[1].text != entry["content"], p[0] != entry.get("file"), not p[1].active))
        if places and entry.get("file") != WORKSHOP:
            found[entry["id"]] = places[0]
    return found


def _of_journal(entry: Entry, place: tuple[str, Rule] | None) -> Standing:
    name, file = entry["id"], str(entry.get("file", ""))
    found = Standing(
        name,
        entry["content"],
        entry["active"],
        entry["target"] == "workshop_preference",
        file,
        str(entry.get("promoted_at", "")),
        str(entry.get("archived_at", "")),
        str(entry.get("reason", "")),
        content=entry["content"],
        sources=tuple(entry["source_signals"]),
    )
    if place is None:
        gone = found.active and file != WORKSHOP
        return replace(found, active=False, note="gone") if gone else found
    file, rule = place
    archived, reason = (rule.day or found.archived, rule.reason or found.reason)
    if rule.active:
        archived = reason = ""
    return replace(
        found, text=rule.text, active=rule.active, file=file, archived=archived, reason=reason,
        line=rule.line, note="edited" if rule.text != found.content else "", rule=rule,
    )  # fmt: skip


# --- how rules wear ------------------------------------------------------------------------------------

CONTRADICTED: Final = 2
"""How often a person must have contradicted a rule before unlearning it is suggested (FR8)."""
STALE_DAYS: Final = 90


@dataclass(frozen=True, slots=True)
class Wear:
    """``contradicted``: how often, with ``by``, the signals. ``confirmed``: the last day on which the person
    said it, "" when unknown. ``days``: since then.
    """

    contradicted: int = 0
    by: tuple[str, ...] = ()
    confirmed: str = ""
    days: int = 0

    @property
    def worn(self) -> bool:
        """Whether unlearning it is suggested."""
        return self.contradicted >= CONTRADICTED

    @property
    def stale(self) -> bool:
        """Whether nobody said it for long."""
        return self.days > STALE_DAYS


def wear(row: Standing, signals: Iterable[Mapping[str, Any]], today: str) -> Wear:
    """How an active rule wore until today."""
    times, by, said = 0, list[str](), row.learned
    for signal in signals:
        first, last = signal["first_seen"], signal["last_seen"]
        if signal["status"] == "dismissed" or signal["type"] == "feedback":
            continue
        if signal["id"] in row.sources or same(row.text, signal["content"]):
            said = max(said, last)
        elif last > row.learned and row.id in against(signal):
            times += signal["occurrences"] if first > row.learned else 1
            by.append(signal["id"])
    return Wear(times, tuple(by), said, _days(said, today))


def _days(since: str, today: str) -> int:
    try:
        return max(0, (date.fromisoformat(today) - date.fromisoformat(since)).days)
    except ValueError:
        return 0
