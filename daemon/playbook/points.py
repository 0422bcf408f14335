"""The form of a playbook: sections with points, and what older forms become. Values in, values out; no file.

A playbook is a plain dict, as the file ``playbook.json`` has it::

    {"version": "1.0", "last_updated": "2026-02-18T14:30:00+00:00" or None,
     "sections": {"PATTERNS & APPROACHES": [{"name": "pat-001", "text": "…", "helpful": 0, "harmful": 0}], …}}

The five sections are always there, in their order. ``migrated`` makes this form of anything that was ever
written as a playbook: a flat list ``key_points``, bare texts, points with a ``score``. Fields that it does
not know stay. What is no playbook at all is a ``ValueError``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from .names import LEGACY, Names, highest, is_name, slug_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Point = dict[str, Any]
Playbook = dict[str, Any]

VERSION: Final = "1.0"
OTHERS: Final = "OTHERS"
SECTION_SLUGS: Final[dict[str, str]] = {
    "PATTERNS & APPROACHES": "pat",
    "MISTAKES TO AVOID": "mis",
    "USER PREFERENCES": "pref",
    "PROJECT CONTEXT": "ctx",
    OTHERS: "oth",
}
"""Section → how the names of its points begin, in the order of the file and of every text."""
_POINT: Final = frozenset({"name", "text", "helpful", "harmful", "score"})
_FORM: Final = ("version", "last_updated", "sections", "key_points", "score")


@dataclass(frozen=True, slots=True)
class Migrated:
    """``told``: what a person should know, a line each: points with another name, entries that are none."""

    playbook: Playbook
    told: tuple[str, ...] = ()


def empty() -> Playbook:
    """A playbook without points, never saved."""
    return {"version": VERSION, "last_updated": None, "sections": {name: [] for name in SECTION_SLUGS}}


def section_of(name: object) -> str:
    """The section of that name, whatever its case and the spaces around it; OTHERS for any other name."""
    wanted = " ".join(name.split()).casefold() if isinstance(name, str) else ""
    return next((known for known in SECTION_SLUGS if known.casefold() == wanted), OTHERS)


def each(playbook: Playbook) -> Iterator[tuple[str, Point]]:
    """Every point with its section, in the order of the file."""
    sections = playbook["sections"]
    for section in SECTION_SLUGS:
        for point in sections.get(section, ()):
            yield section, point


def by_name(playbook: Playbook) -> dict[str, Point]:
    """Every point by its name."""
    return {point["name"]: point for _, point in each(playbook)}


def names_of(playbook: Playbook, marks: Mapping[str, int] | None = None) -> Names:
    """Where the next names come from: none that a point has, and above each of ``marks`` (slug → number).

    Without ``marks`` a new name is above the highest of its section, so that no gap is filled.
    """
    taken = [point["name"] for _, point in each(playbook)]
    return Names(taken, highest(taken) if marks is None else marks)


def keep_only(playbook: Playbook, gone: set[int]) -> None:
    """Remove the points whose ``id()`` is in ``gone``."""
    sections = playbook["sections"]
    for section in SECTION_SLUGS:
        sections[section] = [p for p in sections.get(section, ()) if id(p) not in gone]


def copy(playbook: Playbook) -> Playbook:
    """A playbook that can be changed without changing this one: its sections and points are new."""
    sections = {name: [dict(p) for p in points] for name, points in playbook["sections"].items()}
    return {**playbook, "sections": sections}


def migrated(data: object, marks: Mapping[str, int] | None = None) -> Migrated:
    """The playbook that ``data`` (parsed JSON) is, in today's form. ``data`` is not changed.

    ``marks`` (slug → number): a name that is given here is above it. Raises ``ValueError`` when it is no
    playbook.
    """
    data = _object(data)
    found = [*_entries(data)]
    told: list[str] = []
    taken = [name for _, _, entry in found if (name := _name(entry))]
    names, seen = Names(taken, marks or {}), set[str]()
    playbook = empty()
    playbook["version"] = data["version"] if isinstance(data.get("version"), str) else VERSION
    if isinstance(data.get("last_updated"), str):
        playbook["last_updated"] = data["last_updated"]
    for section, slug, entry in found:
        point = _point(entry)
        if point is None:
            told.append(f"an entry of {section} is left out: it is no point with a text")
            continue
        name = _name(entry)
        if not name or name in seen:
            point["name"] = names.take(slug_of(name) or slug)
            if name:
                told.append(f"two points were called {name}; the later one is {point['name']} now")
            elif isinstance(entry, dict) and entry.get("name"):
                told.append(f"a point of {section} had a name of another form; it is {point['name']} now")
        seen.add(point["name"])
        playbook["sections"][section].append(point)
    playbook |= {key: value for key, value in data.items() if key not in _FORM}
    return Migrated(playbook, tuple(told))


def is_todays(playbook: object) -> bool:
    """Tells whether it is in the form that ``migrated`` makes, so that it can be changed in place."""
    if not isinstance(playbook, dict) or "key_points" in playbook:
        return False
    sections, seen = playbook.get("sections"), set[str]()
    if not isinstance(sections, dict) or sections.keys() != SECTION_SLUGS.keys():
        return False
    for entries in sections.values():
        if not isinstance(entries, list):
            return False
        for point in entries:
            if not isinstance(point, dict) or "score" in point or not _is_point(point):
                return False
            seen.add(point["name"])
    return len(seen) == sum(map(len, sections.values()))


def _is_point(point: Mapping[str, Any]) -> bool:
    text, counters = point.get("text"), (point.get("helpful"), point.get("harmful"))
    return (
        is_name(point.get("name"))
        and isinstance(text, str)
        and bool(text.strip())
        and all(type(n) is int and n >= 0 for n in counters)
    )


def check_form(data: object) -> None:
    """Raise ``ValueError`` when ``migrated`` would, in less time."""
    for _ in _entries(_object(data)):
        pass


def _object(data: object) -> Mapping[str, Any]:
    if not isinstance(data, dict):
        raise ValueError("it is no object")  # noqa: TRY004 - one kind of failure for the caller
    return data


def _entries(data: Mapping[str, Any]) -> Iterator[tuple[str, str, object]]:
    """Each entry with its section and how a name for it begins. ``sections`` wins over ``key_points``."""
    if not data.keys() & {"sections", "key_points"}:
        raise ValueError("it has neither `sections` nor `key_points`")
    sections = data.get("sections")
    if sections is not None:
        if not isinstance(sections, dict):
            raise ValueError("`sections` is no object")
        held: dict[str, list[object]] = {name: [] for name in SECTION_SLUGS}
        for name, entries in sections.items():
            if not isinstance(entries, list | None):
                raise ValueError(f"the section {name[:60]!r} is no list")  # noqa: TRY004 - as above
            held[section_of(name)] += entries or ()
        for section, slug in SECTION_SLUGS.items():
            yield from ((section, slug, entry) for entry in held[section])
        return
    flat = data.get("key_points")
    if not isinstance(flat, list | None):
        raise ValueError("`key_points` is no list")  # noqa: TRY004 - as above
    yield from ((OTHERS, LEGACY, entry) for entry in flat or ())


def _name(entry: object) -> str:
    """The name that an entry brings, "" when it has none or one that is no name."""
    name = entry.get("name") if isinstance(entry, dict) else None
    return name if isinstance(name, str) and is_name(name) else ""


def _point(entry: object) -> Point | None:
    """The entry as a point, its name still as it was; None when it has no text."""
    given: Mapping[str, Any] = entry if isinstance(entry, dict) else {"text": entry}
    text = given.get("text")
    if not isinstance(text, str) or not text.strip():
        return None
    score = _number(given["score"]) if "score" in given else 0
    point = {
        "name": _name(entry),
        "text": text,
        "helpful": max(0, _number(given["helpful"])) if "helpful" in given else max(score, 0),
        "harmful": max(0, _number(given["harmful"])) if "harmful" in given else max(-score, 0),
    }
    if given.keys() - _POINT:
        point |= {key: value for key, value in given.items() if key not in _POINT}
    return point


def _number(value: object) -> int:
    """A counter of a file as a whole number; 0 for what is none."""
    if type(value) is int:
        return value
    return int(value) if type(value) is float and abs(value) < 2**53 else 0
