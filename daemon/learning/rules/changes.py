"""The changes of a project's rules and preferences: revisions that say what the journal was before and after.

The file is replaced before the journal. So after a kill between the two the journal is still as it was before
the newest change; the next change makes it say what the file says (``settle``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from ..revisions import Revision, RevisionsOf, digest
from .journal import RULE_ID, Entry, Journal, put

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..state import ReflectState
    from .rules_file import Place
    from .section import Document

FOLDER: Final = "changes"  # in the project's folder of the state
Pair = tuple[dict[str, Any] | None, dict[str, Any] | None]
Files = list[tuple["Place", "Document"]]


@dataclass(frozen=True, slots=True)
class Change(Revision):
    """One change. ``file``: its path from the project, "" where none was changed. ``soft``: of preferences.
    ``rules``: each entry of the journal before and after it. ``signals``: id, status before, status after.
    """

    noun: ClassVar[str] = "change"
    file: str = ""
    soft: bool = False
    rules: tuple[Pair, ...] = ()
    signals: tuple[tuple[str, str, str], ...] = ()

    @property
    def new(self) -> Entry | None:
        """The entry of the rule that it brought in."""
        return next((after for before, after in self.rules if after and not before), None)


Changes = RevisionsOf[Change]


def changes_of(state: ReflectState) -> Changes:
    """Those of one project, numbered through all of its files."""
    return RevisionsOf(state.folder / FOLDER, state.folder, Change)


def entries(changes: Changes) -> list[Entry]:
    """Every entry of the journal that a change made, newest first."""
    return [after for change in changes.all() for _, after in change.rules if after is not None]


def highest_rule(changes: Changes) -> str:
    """The highest id of a rule that a change was about."""
    pairs = (pair for change in changes.all() for pair in change.rules)
    numbers = (RULE_ID.fullmatch(str(entry.get("id"))) for pair in pairs for entry in pair if entry)
    return f"rule-{max((int(m[1]) for m in numbers if m), default=0):03d}"


def settle(changes: Changes, journal: Journal, files: Files) -> None:
    """Make the journal say what a killed change wrote; one that wrote nothing is forgotten."""
    newest = next(iter(changes.all()), None)
    if newest is None or not _is_before(journal, newest.rules):
        return
    if not newest.file or _came_about(newest, files):
        put(journal, newest.rules, newest.signals)
    else:
        changes.drop(newest)


def _is_before(journal: Journal, pairs: Iterable[Pair]) -> bool:
    entries = {entry["id"]: entry for entry in journal["learned_rules"]}
    return all(entries.get((before or after or {}).get("id")) == before for before, after in pairs)


def _came_about(change: Change, files: Files) -> bool:
    """Whether the file was replaced; where somebody edited it since, whether it says what was meant."""
    found = next(((place, doc) for place, doc in files if place.name == change.file), None)
    now = digest(found[0].read()) if found else ""
    if now in {change.before, change.after}:
        return now == change.after
    there = {(r.id, r.text, r.active) for r in found[1].rules} if found else set()
    gone = [_said(before) in there for before, after in change.rules if before and before != after]
    return all(_said(after) in there for _, after in change.rules if after) and not any(gone)


def _said(entry: Entry) -> tuple[str, str, bool]:
    return entry["id"], entry["content"], entry["active"]
