"""The learning journal as a plain dict, and all that is done with it (FR2, TR4).

A signal counts each session once: its ``sightings`` hold a digest of each session and of the messages in it.
So the same messages again change nothing, and a message that a fork of a session copied counts where it was
seen first. A dismissed signal stays dismissed, and a tombstone says so too when the signal itself is gone. A
rule's number is never given twice as long as the caller names the numbers that were ever given. Pure: no
clock, no file. Days are ``YYYY-MM-DD``. Unknown fields are kept. Raises ``UserError`` for an id that is not
there, ``ValueError`` for what is no journal.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from ...core.errors import UserError
from ...core.given import folded

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Journal = dict[str, Any]
Entry = dict[str, Any]
Type = Literal["correction", "instruction", "feedback"]
Polarity = Literal["", "positive", "negative"]
Severity = Literal["high", "medium", "low"]
Status = Literal["pending", "promoted", "dismissed"]
Target = Literal["claude_md", "workshop_preference"]
VERSION: Final = "1.0"
SEVERITIES: Final[tuple[str, ...]] = get_args(Severity)
SIGNAL_ID: Final = re.compile(r"sig-(?:(\d{8})-)?(\d{3,9})")
RULE_ID: Final = re.compile(r"rule-(\d{3,9})")
MAX_SIGNALS: Final = 5_000
MAX_SESSIONS: Final = 500  # of one signal
MAX_MESSAGES: Final = 50  # of one signal in one session
MAX_CONTENT: Final = 300
MAX_AGAINST: Final = 20
QUOTES: Final = 3
THRESHOLDS: Final[dict[str, int]] = {"high": 1, "medium": 2, "low": 3}
"""In how many sessions a signal of this severity must have come up before a rule is suggested (FR3)."""
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")
_CHOICES: Final[dict[str, tuple[str, ...]]] = {
    "type": get_args(Type),
    "severity": SEVERITIES,
    "status": get_args(Status),
}
_MEANT: Final = {"severity": "medium", "status": "pending"}


@dataclass(frozen=True, slots=True)
class Seen:
    """Something that a person said, as the journal counts it. ``session`` and ``message``: digests.
    ``against``: ids of rules that it contradicts.
    """

    type: Type
    content: str
    severity: Severity
    day: str
    session: str
    message: str
    polarity: Polarity = ""
    against: tuple[str, ...] = ()


def empty(project: str, created: str) -> Journal:
    """A new journal. ``created``: an ISO timestamp."""
    return {
        "version": VERSION,
        "project": project,
        "created": created,
        "signals": [],
        "learned_rules": [],
        "tombstones": [],
    }


def checked(found: object) -> Journal:
    """What a file held, as a journal; what may be missing is filled in. Raises ``ValueError``."""
    if not isinstance(found, dict):
        raise ValueError("it is no object")  # noqa: TRY004 - one kind of failure for the caller
    journal = {**found, "version": found.get("version", VERSION)}
    for key in ("signals", "learned_rules", "tombstones"):
        items = found.get(key, [])
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise ValueError(f"{key} is no list of objects")
        if not all(isinstance(item.get("content"), str) for item in items):
            raise ValueError(f"an entry of {key} has no content")
        journal[key] = [dict(item) for item in items]
    for signal in journal["signals"]:
        _check_signal(signal)
    for rule in journal["learned_rules"]:
        _check_rule(rule)
    for key in ("signals", "learned_rules"):
        names = [item["id"] for item in journal[key]]
        if len(set(names)) < len(names):
            raise ValueError(f"two entries of {key} have the same id")
    return journal


def _check_signal(signal: Entry) -> None:
    name = _id_of(signal, SIGNAL_ID, "signal")
    for key, allowed in _CHOICES.items():
        if signal.setdefault(key, _MEANT.get(key)) not in allowed:
            raise ValueError(f"the {key} of {name} is none of {', '.join(allowed)}")
    seen = signal.setdefault("occurrences", 1)
    if type(seen) is not int or seen < 1:
        raise ValueError(f"the occurrences of {name} are no number above 0")
    for key in ("first_seen", "last_seen"):
        if not isinstance(signal.setdefault(key, ""), str):
            raise ValueError(f"{key} of {name} is no day")  # noqa: TRY004 - as above
    sightings = signal.setdefault("sightings", {})
    if not isinstance(sightings, dict) or not all(map(_is_texts, sightings.values())):
        raise ValueError(f"the sightings of {name} are no lists by session")


def _check_rule(rule: Entry) -> None:
    name = _id_of(rule, RULE_ID, "rule")
    if not _is_texts(rule.setdefault("source_signals", [])):
        raise ValueError(f"the source_signals of {name} are no list of ids")
    if rule.setdefault("target", "claude_md") not in get_args(Target):
        raise ValueError(f"the target of {name} is none of {', '.join(get_args(Target))}")
    if type(rule.setdefault("active", True)) is not bool:
        raise ValueError(f"active of {name} is neither true nor false")


def _id_of(entry: Entry, form: re.Pattern[str], what: str) -> str:
    name = entry.get("id")
    if not isinstance(name, str) or not form.fullmatch(name):
        raise ValueError(f"{str(name)[:40]!r} is no id of a {what}")
    return name


def _is_texts(found: object) -> bool:
    return isinstance(found, list) and all(isinstance(each, str) for each in found)


def same(a: str, b: str) -> bool:
    """Whether two texts say the same word for word, but for case, blanks and the marks around them."""
    return folded(a) == folded(b)


def is_due(signal: Mapping[str, object]) -> bool:
    """Whether a signal of the journal came up in enough sessions to be suggested as a rule (FR3)."""
    if signal.get("status") != "pending" or signal.get("type") == "feedback":
        return False
    seen = signal.get("occurrences")
    return isinstance(seen, int) and seen >= THRESHOLDS[str(signal.get("severity"))]


def ranked(signals: Sequence[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """What is suggested first: severe before mild, often before seldom, new before old."""
    order = list(THRESHOLDS)
    new_first = sorted(signals, key=lambda s: str(s.get("last_seen")), reverse=True)
    return sorted(new_first, key=lambda s: (order.index(str(s["severity"])), -int(str(s["occurrences"]))))


class Adding:
    """Adds what was said to a journal, in place. Equal texts are one signal."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.new: list[str] = []
        self._by_id = {s["id"]: s for s in journal["signals"]}
        self._same: dict[tuple[str, str], str] = {}
        self._dead = {folded(stone["content"]) for stone in journal["tombstones"]}
        self._highest: dict[str, int] = {}
        self._counted: dict[str, str] = {}
        for signal in journal["signals"]:
            self._same.setdefault(_same_as(signal), signal["id"])
            self._counted.update((m, signal["id"]) for of in signal["sightings"].values() for m in of)
            day, number = _parts(signal["id"])
            self._highest[day] = max(number, self._highest.get(day, 0))

    def add(self, seen: Seen) -> tuple[str, bool]:
        """Count it: the id of the signal that it belongs to, and whether anything changed. A message counts
        once, whatever it was read as the first time, also when a fork of its session has a copy.
        """
        if (known := self._counted.get(seen.message)) is not None:
            return known, False
        key = _same_as({"type": seen.type, "polarity": seen.polarity, "content": seen.content})
        name = self._same.get(key, "")
        if not name:
            name = self._same[key] = self._make(seen)
        elif not _count(self._by_id[name], seen):
            return name, False
        self._counted[seen.message] = name
        return name, True

    def _make(self, seen: Seen) -> str:
        day = seen.day.replace("-", "") if _DAY.fullmatch(seen.day) else "00000000"
        number = self._highest[day] = self._highest.get(day, 0) + 1
        name = f"sig-{day}-{number:03d}"
        signal: Entry = {"id": name, "type": seen.type}
        if seen.polarity:
            signal["polarity"] = seen.polarity
        dead = seen.type != "feedback" and folded(seen.content) in self._dead
        signal |= {
            "content": seen.content,
            "occurrences": 1,
            "first_seen": seen.day,
            "last_seen": seen.day,
            "severity": seen.severity,
            "status": "dismissed" if dead else "pending",
            "sightings": {seen.session: [seen.message]},
        }
        if seen.against:
            signal["against"] = list(seen.against)[:MAX_AGAINST]
        self.journal["signals"].append(signal)
        self._by_id[name] = signal
        self.new.append(name)
        return name


def _same_as(signal: Mapping[str, Any]) -> tuple[str, str]:
    """What two signals that say the same have in common. Corrections and instructions are of one kind: both
    say how things shall be done.
    """
    kind = signal.get("polarity", "") or "feedback" if signal["type"] == "feedback" else "rule"
    return str(kind), folded(signal["content"])


def _count(signal: Entry, seen: Seen) -> bool:
    """Count one more sighting of a signal; whether anything changed."""
    sightings: dict[str, list[str]] = signal["sightings"]
    if seen.session in sightings:
        if len(sightings[seen.session]) >= MAX_MESSAGES:
            return False
        sightings[seen.session].append(seen.message)
    else:
        unseen = signal["occurrences"] - len(sightings)  # counted by hand, or before there were sightings
        sightings[seen.session] = [seen.message]
        signal["occurrences"] = len(sightings) + max(0, unseen)
        while len(sightings) > MAX_SESSIONS:
            del sightings[next(iter(sightings))]
    signal["first_seen"] = min(signal["first_seen"] or seen.day, seen.day)
    signal["last_seen"] = max(signal["last_seen"], seen.day)
    if SEVERITIES.index(seen.severity) < SEVERITIES.index(signal["severity"]):
        signal["severity"] = seen.severity
    if seen.against:
        signal["against"] = list(dict.fromkeys([*against(signal), *seen.against]))[:MAX_AGAINST]
    return True


def against(signal: Mapping[str, Any]) -> list[str]:
    """The ids of the rules that a signal contradicts."""
    found = signal.get("against", [])
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []


def trim(journal: Journal) -> list[str]:
    """Drop the least of too many signals that wait: mild, seldom and old ones first. Returns their ids."""
    signals: list[Entry] = journal["signals"]
    over = len(signals) - MAX_SIGNALS
    if over <= 0:
        return []
    waiting = [s for s in signals if s["status"] == "pending"]
    waiting.sort(key=lambda s: (-SEVERITIES.index(s["severity"]), s["occurrences"], s["last_seen"]))
    gone = {s["id"] for s in waiting[:over]}
    journal["signals"] = [s for s in signals if s["id"] not in gone]
    return sorted(gone)


def signal_named(journal: Journal, name: str) -> Entry:
    """The signal with this id, to be changed in place. Raises ``UserError``."""
    return _named(journal["signals"], name, "signal", "; `reflectd reflect status` lists them")


def rule_named(journal: Journal, name: str) -> Entry:
    """The rule with this id, to be changed in place. Raises ``UserError``."""
    return _named(journal["learned_rules"], name, "rule", "")


def _named(entries: Sequence[Entry], name: str, what: str, more: str) -> Entry:
    found = next((entry for entry in entries if entry["id"] == name), None)
    if found is None:
        raise UserError(f"there is no {what} {name[:40]!r}{more}")
    return found


def dismiss(journal: Journal, names: Iterable[str], day: str) -> list[Entry]:
    """Never suggest these signals again. Raises ``UserError`` before anything is changed."""
    found = [signal_named(journal, name) for name in names]
    for signal in found:
        if signal["status"] == "promoted":
            raise UserError(f"{signal['id']} is a rule by now; take the rule back first")
    for signal in found:
        signal["status"] = "dismissed"
        bury(journal, signal["content"], day, signal["id"])
    return found


def bury(journal: Journal, content: str, day: str, signal: str = "") -> None:
    """Never suggest or learn what says this again. ``signal``: the id of the one that said it, if any."""
    if not any(stone["content"] == content for stone in journal["tombstones"]):
        journal["tombstones"].append({"content": content, "signal": signal, "at": day})


def restore(journal: Journal, names: Iterable[str]) -> list[Entry]:
    """Take dismissals back, with what a tombstone says of the same. Raises ``UserError`` before anything is
    changed.
    """
    found = [signal_named(journal, name) for name in names]
    for signal in found:
        if signal["status"] != "dismissed":
            raise UserError(f"{signal['id']} was not dismissed; it is {signal['status']}")
    for signal in found:
        signal["status"] = "pending"
        journal["tombstones"] = [
            stone
            for stone in journal["tombstones"]
            if stone.get("signal") != signal["id"] and not same(stone["content"], signal["content"])
        ]
    return found


def new_rule(
    journal: Journal,
    names: Iterable[str],
    *,
    content: str,
    target: Target,
    file: str,
    day: str,
    taken: Iterable[str] = (),
) -> Entry:
    """The entry of a rule of these signals, or that a person states; ``put`` adds it. ``file``: which file it
    is written to. ``taken``: ids of rules that stand elsewhere, such as in that file.
    """
    used = [r["id"] for r in journal["learned_rules"]] + list(taken)
    numbers = [int(m[1]) for name in used if (m := RULE_ID.fullmatch(name))]
    return {
        "id": f"rule-{max(numbers, default=0) + 1:03d}",
        "content": content,
        "source_signals": list(dict.fromkeys(names)),
        "promoted_at": day,
        "target": target,
        "file": file,
        "active": True,
    }


def archived(rule: Entry, *, reason: str, day: str) -> Entry:
    """The entry of a rule that no longer applies; it is kept as history."""
    return {**rule, "active": False, "archived_at": day, "reason": reason}


def promoted(journal: Journal, names: Iterable[str]) -> tuple[tuple[str, str, str], ...]:
    """What becomes of signals that a rule is made of, as ``put`` takes it. Raises ``UserError``."""
    return tuple((name, signal_named(journal, name)["status"], "promoted") for name in names)


def put(
    journal: Journal,
    pairs: Sequence[tuple[Entry | None, Entry | None]],
    signals: Sequence[tuple[str, str, str]],
) -> None:
    """Make the journal say what each entry is after a change (before, after), and the signals' status (id,
    before, after).
    """
    rules: list[Entry] = journal["learned_rules"]
    for before, after in pairs:
        name = (after or before or {}).get("id")
        at = next((i for i, entry in enumerate(rules) if entry["id"] == name), len(rules))
        rules[at : at + 1] = [dict(after)] if after else []
    for name, was, now in signals:
        for signal in journal["signals"]:
            if signal["id"] == name and signal["status"] == was:
                signal["status"] = now


def _parts(name: str) -> tuple[str, int]:
    found = SIGNAL_ID.fullmatch(name)
    return ((found[1] or ""), int(found[2])) if found else ("", 0)
