"""The learning journal as a plain dict, and all that is done with it (FR2, TR4).

A signal counts each session once: its ``sightings`` hold a digest of each session, with the first message of
it. A dismissed signal stays dismissed, and a tombstone says so too when the signal itself is gone; those are
kept beside the file (``ReflectState.tombstones``).
Pure: no clock, no file. Days are ``YYYY-MM-DD``. Unknown fields are kept. Raises ``UserError`` for an id that
is not there, ``ValueError`` for a dict that is no journal.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple, get_args

import msgspec
from msgspec import Struct

from ...core.errors import UserError
from ...core.given import folded

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Journal = dict[str, Any]
Entry = dict[str, Any]
Kind = Literal["correction", "instruction", "positive", "negative", "none"]
Type = Literal["correction", "instruction", "feedback"]
Severity = Literal["high", "medium", "low"]
Status = Literal["pending", "promoted", "dismissed"]
Target = Literal["claude_md", "workshop_preference"]
Pair = tuple[dict[str, Any] | None, dict[str, Any] | None]
"""An entry of the journal before and after a change."""
Turn = tuple[str, str, str]
"""The id of a signal, its status before a change and after it."""
VERSION: Final = "1.0"
SEVERITIES: Final[tuple[str, ...]] = get_args(Severity)
SIGNAL_ID: Final = re.compile(r"\Asig-(?:(\d{8})-)?(\d{3,9})\Z")
RULE_ID: Final = re.compile(r"\Arule-(\d{3,9})\Z")
MAX_SIGNALS: Final = 5_000
MAX_SESSIONS: Final = 500  # of one signal
MAX_CONTENT: Final = 300
MAX_AGAINST: Final = 20
THRESHOLDS: Final[dict[str, int]] = {"high": 1, "medium": 2, "low": 3}
"""In how many sessions a signal of this severity must have come up before a rule is suggested (FR3)."""
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")


# --- the form of the file -------------------------------------------------------------------------------


class _Signal(msgspec.Struct):
    id: Annotated[str, msgspec.Meta(pattern=SIGNAL_ID.pattern)]
    type: Type
    content: str
    severity: Severity = "medium"
    status: Status = "pending"
    occurrences: Annotated[int, msgspec.Meta(ge=1)] = 1
    first_seen: str = ""
    last_seen: str = ""
    sightings: dict[str, list[str]] = {}


class _Rule(msgspec.Struct):
    id: Annotated[str, msgspec.Meta(pattern=RULE_ID.pattern)]
    content: str
    source_signals: list[str] = []
    target: Target = "claude_md"
    active: bool = True


class _Journal(msgspec.Struct):
    signals: list[_Signal] = []
    learned_rules: list[_Rule] = []


def empty(project: str, created: str) -> Journal:
    """A new journal. ``created``: an ISO timestamp."""
    lists: Journal = {"signals": [], "learned_rules": [], "tombstones": []}
    return {"version": VERSION, "project": project, "created": created, **lists}


def checked(found: object) -> Journal:
    """The JSON of a file as a journal; fields that may be missing are filled in. Raises ``ValueError``."""
    try:
        form = msgspec.convert(found, _Journal)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None
    given: dict[str, Any] = msgspec.convert(found, dict[str, Any])
    journal = {**given, "version": given.get("version", VERSION), "tombstones": []}
    for key, entries in msgspec.to_builtins(form).items():
        journal[key] = [{**a, **b} for a, b in zip(given.get(key, []), entries, strict=True)]
        names = [entry["id"] for entry in journal[key]]
        if len(set(names)) < len(names):
            raise ValueError(f"two entries of {key} have the same id")
    return journal


# --- signals --------------------------------------------------------------------------------------------


class Sighting(NamedTuple):
    """A place where a text was said. ``session``: the host's id. ``message``: a digest."""

    session: str
    message: str
    day: str
    file: str = ""
    line: int = 0


class Reading(Struct, frozen=True):
    """The meaning of a text. ``content``: its wording. ``against``: ids of rules that it contradicts."""

    type: Kind
    content: str
    severity: Severity = "medium"
    against: tuple[str, ...] = ()


def digest(name: str) -> str:
    """The digest by which the journal knows a session or a message, and candidates know a text."""
    return blake2b(name.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def same(a: str, b: str) -> bool:
    """Says whether two texts are equal but for case, blanks and the marks around them."""
    return folded(a) == folded(b)


def is_due(signal: Mapping[str, Any]) -> bool:
    """Says whether a signal came up in enough sessions to be suggested as a rule (FR3)."""
    waits = signal.get("status") == "pending" and signal.get("type") != "feedback"
    return waits and int(signal["occurrences"]) >= THRESHOLDS[str(signal["severity"])]


def ranked(signals: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Signals in the order of their suggestion: severe before mild, often before seldom, new before old."""
    new_first = sorted(signals, key=lambda s: str(s["last_seen"]), reverse=True)
    return sorted(new_first, key=lambda s: (SEVERITIES.index(str(s["severity"])), -int(s["occurrences"])))


def due(journal: Journal) -> list[Mapping[str, Any]]:
    """The signals that are suggested as rules, the most pressing first."""
    return ranked([s for s in journal["signals"] if is_due(s)])


class Adding:
    """Counts readings in a journal, in place. Equal texts are one signal."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self._same: dict[tuple[str, str], Entry] = {}
        self._dead = {folded(stone["content"]) for stone in journal["tombstones"]}
        self._highest: dict[str, int] = {}
        for signal in journal["signals"]:
            self._same.setdefault(_same_as(signal), signal)
            day, number = SIGNAL_ID.findall(signal["id"])[0]
            self._highest[day] = max(int(number), self._highest.get(day, 0))

    def add(self, reading: Reading, at: Sighting) -> str:
        """Count a sighting; the id of its signal."""
        made = {**typed(reading.type), "content": reading.content}
        signal = self._same.get(_same_as(made))
        if signal is None:
            signal = self._same[_same_as(made)] = self._append(made, reading, at)
        count(signal, at, reading)
        return str(signal["id"])

    def _append(self, made: Entry, reading: Reading, at: Sighting) -> Entry:
        day = at.day.replace("-", "") if _DAY.fullmatch(at.day) else "00000000"
        number = self._highest[day] = self._highest.get(day, 0) + 1
        dead = made["type"] != "feedback" and folded(reading.content) in self._dead
        signal = {
            "id": f"sig-{day}-{number:03d}",
            **made,
            "occurrences": 0,
            "first_seen": at.day,
            "last_seen": at.day,
            "severity": reading.severity,
            "status": "dismissed" if dead else "pending",
            "sightings": {},
        }
        self.journal["signals"].append(signal)
        return signal


def typed(kind: Kind) -> Entry:
    """The fields by which the journal knows a kind of reading. Raises ``ValueError`` for "none"."""
    match kind:
        case "correction" | "instruction":
            return {"type": kind}
        case "positive" | "negative":
            return {"type": "feedback", "polarity": kind}
        case _:
            raise ValueError("it is no signal")


def _same_as(signal: Mapping[str, Any]) -> tuple[str, str]:
    """The key of equal signals; corrections and instructions are of one kind."""
    kind = signal.get("polarity", "") or "feedback" if signal["type"] == "feedback" else "rule"
    return str(kind), folded(signal["content"])


def count(signal: Entry, at: Sighting, reading: Reading | None = None) -> None:
    """Count one more sighting in place, once a session. ``reading``: as it was read this time."""
    sightings: dict[str, list[str]] = signal["sightings"]
    session = digest(at.session)
    if session in sightings:
        return
    sightings[session] = [at.message]
    signal["occurrences"] += 1
    while len(sightings) > MAX_SESSIONS:
        del sightings[next(iter(sightings))]
    signal["first_seen"] = min(signal["first_seen"] or at.day, at.day)
    signal["last_seen"] = max(signal["last_seen"], at.day)
    if reading is None:
        return
    signal["severity"] = min(signal["severity"], reading.severity, key=SEVERITIES.index)
    if reading.against:
        signal["against"] = list(dict.fromkeys([*against(signal), *reading.against]))[:MAX_AGAINST]


def against(signal: Mapping[str, Any]) -> list[str]:
    """The ids of the rules that a signal contradicts."""
    names = signal.get("against", [])
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def trim(journal: Journal) -> int:
    """Drop the least of too many signals that wait: mild, seldom and old ones first. Returns how many."""
    signals: list[Entry] = journal["signals"]
    waiting = [s for s in signals if s["status"] == "pending"]
    waiting.sort(key=lambda s: (-SEVERITIES.index(s["severity"]), s["occurrences"], s["last_seen"]))
    gone = {s["id"] for s in waiting[: max(0, len(signals) - MAX_SIGNALS)]}
    journal["signals"] = [s for s in signals if s["id"] not in gone]
    return len(gone)


def signal_named(journal: Journal, name: str) -> Entry:
    """The signal with this id, to be changed in place. Raises ``UserError``."""
    signals: list[Entry] = journal["signals"]
    entry = next((entry for entry in signals if entry["id"] == name), None)
    if entry is None:
        raise UserError(f"there is no signal {name[:40]!r}; `reflectd reflect status` lists them")
    return entry


def bury(journal: Journal, content: str, day: str, signal: str = "") -> None:
    """Never suggest or learn a text that says this again. ``signal``: the id of the one that said it."""
    if not any(stone["content"] == content for stone in journal["tombstones"]):
        journal["tombstones"].append({"content": content, "signal": signal, "at": day})


# --- rules ----------------------------------------------------------------------------------------------


def highest(names: Iterable[object]) -> int:
    """The highest number among these ids of rules; others do not count."""
    return max((int(m[1]) for name in names if (m := RULE_ID.fullmatch(str(name)))), default=0)


def archived(rule: Entry, *, reason: str, day: str) -> Entry:
    """The entry of a rule that no longer applies; it is kept as history."""
    return {**rule, "active": False, "archived_at": day, "reason": reason}


def becoming(journal: Journal, names: Iterable[str], status: Status) -> list[Turn]:
    """The change of status of these signals. Raises ``UserError``."""
    return [(name, signal_named(journal, name)["status"], status) for name in names]


def put(journal: Journal, pairs: Sequence[Pair], turns: Sequence[Turn], day: str) -> None:
    """Give entries and signals their state after a change; a dismissed signal has a tombstone."""
    rules: list[Entry] = journal["learned_rules"]
    for before, after in pairs:
        name = (after or before or {}).get("id")
        at = next((i for i, entry in enumerate(rules) if entry["id"] == name), len(rules))
        rules[at : at + 1] = [dict(after)] if after else []
    for name, was, now in turns:
        for signal in journal["signals"]:
            if signal["id"] == name and signal["status"] == was:
                signal["status"] = now
                if now == "dismissed":
                    bury(journal, signal["content"], day, name)
        if was == "dismissed":
            journal["tombstones"] = [stone for stone in journal["tombstones"] if stone.get("signal") != name]
