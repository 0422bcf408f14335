"""The changes of a project's rules and preferences that reflectd made, in the state folder.

A change is noted before the file is replaced, and as done once the journal says so too: what was begun and
not done is what a killed process left, and the next one finishes or forgets it. Numbers count through all
files of the project; a file's revision has the number of its change.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from ..rules.journal import RULE_ID
from .revise import SUFFIX

if TYPE_CHECKING:
    from pathlib import Path

    from .reflect_state import ReflectState

KEPT: Final = 300
Pair = tuple[dict[str, Any] | None, dict[str, Any] | None]


@dataclass(frozen=True, slots=True)
class Change:
    """One change. ``file``: its path from the project, "" where nothing but Workshop was told. ``before`` and
    ``after``: digests of the file, "" for none. ``rules``: each entry of the journal before and after it.
    ``signals``: [id, status before, status after]. ``retired``: the playbook's revision that took out the
    point that said the same. ``undoes``: the number of the change that this one undid.
    """

    number: int
    at: int
    what: str
    file: str = ""
    soft: bool = False
    before: str = ""
    after: str = ""
    why: str = ""
    by: str = "you"
    rules: tuple[Pair, ...] = ()
    signals: tuple[tuple[str, str, str], ...] = ()
    retired: int = 0
    undoes: int = 0
    done: bool = False


class Changes:
    """Those of one project. Who writes holds the lock on the state's folder."""

    def __init__(self, state: ReflectState) -> None:
        self._state = state

    def all(self) -> list[Change]:
        """Newest first. One that can't be understood is left out."""
        found = self._state.load("changes").get("list")
        every = [_read(each) for each in found] if isinstance(found, list) else []
        return sorted((c for c in every if c is not None), key=lambda c: -c.number)

    def highest_rule(self) -> int:
        """The highest number that was ever given to a rule."""
        found = self._state.load("changes").get("highest")
        return found if type(found) is int else 0

    def next_number(self) -> int:
        """The number of the next change: above those of all changes and of all revisions that are kept."""
        kept = (path.name.partition(".")[0] for path in self._state.folder.glob(f"files/*/*{SUFFIX}"))
        numbers = [int(name) for name in kept if name.isdecimal()]
        return max([*numbers, *(c.number for c in self.all())], default=0) + 1

    def put(self, change: Change) -> None:
        """Note it, in place of what is noted under its number. Raises ``Unavailable``."""
        self._save([change, *(c for c in self.all() if c.number != change.number)], change.at)

    def drop(self, change: Change) -> None:
        """It did not come about. Raises ``Unavailable``."""
        self._save([c for c in self.all() if c.number != change.number], change.at)

    def finished(self, change: Change, *, retired: int = 0) -> Change:
        """It is done. Raises ``Unavailable``."""
        done = replace(change, done=True, retired=retired or change.retired)
        self.put(done)
        return done

    def entries(self) -> list[dict[str, Any]]:
        """Every entry of the journal that a change made, newest first."""
        return [after for c in self.all() for _, after in c.rules if after is not None]

    def folder(self, file: str) -> Path:
        """Where the revisions of a file are kept."""
        return self._state.folder / "files" / file.replace("/", "%")

    def _save(self, changes: list[Change], now_ms: int) -> None:
        ids = (RULE_ID.fullmatch(str(e["id"])) for c in changes for pair in c.rules for e in pair if e)
        highest = max([self.highest_rule(), *(int(m[1]) for m in ids if m)])
        newest = sorted(changes, key=lambda c: -c.number)[:KEPT]
        kept = {"highest": highest, "list": [asdict(c) for c in newest]}
        self._state.save("changes", kept, now_ms, durable=True)


def undone(changes: list[Change]) -> set[int]:
    """The numbers of those that are undone now. ``changes``: newest first; an undo may be undone itself."""
    found: set[int] = set()
    for change in changes:
        if change.undoes and change.number not in found:
            found.add(change.undoes)
    return found


def digest(content: bytes) -> str:
    """The mark of a file's content, "" of a missing or empty one."""
    return sha256(content).hexdigest() if content else ""


def _read(found: object) -> Change | None:
    if not isinstance(found, dict):
        return None
    try:
        change = Change(**found)
        rules = tuple((before, after) for before, after in change.rules)
        signals = tuple((str(name), str(was), str(now)) for name, was, now in change.signals)
        texts = (change.what, change.file, change.before, change.after, change.why, change.by)
        if not all(type(n) is int for n in (change.number, change.at, change.retired, change.undoes)):
            return None
        if not all(isinstance(text, str) for text in texts):
            return None
        if not all(entry is None or isinstance(entry, dict) for pair in rules for entry in pair):
            return None
        return replace(change, rules=rules, signals=signals)
    except (TypeError, ValueError):
        return None
