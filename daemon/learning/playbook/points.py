"""Points: the form of a playbook, names, counting, pruning, and points as text. Pure.

A playbook is a plain dict, as the file ``playbook.json`` has it::

    {"version": "1.0", "last_updated": "2026-02-18T14:30:00+00:00" or None,
     "sections": {"PATTERNS & APPROACHES": [{"name": "pat-001", "text": "…", "helpful": 0, "harmful": 0}], …}}

The five sections are always there, in their order. ``migrated`` makes this form of anything that was ever
written as a playbook: a flat list ``key_points``, bare texts, points with a ``score``. Fields that it does
not know stay. What is no playbook at all is a ``ValueError``. Counting and pruning change the playbook that
they are given; what could not be used is returned, a line each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ...core.given import folded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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
LEGACY: Final = "kpt"
COUNTERS: Final = ("helpful", "harmful")
LEAST_HARMFUL: Final = 3
_DIGITS: Final = 18
_NAME: Final = re.compile(rf"(pat|mis|pref|ctx|oth)-([0-9]{{1,{_DIGITS}}})|(kpt)_([0-9]{{1,{_DIGITS}}})")
_POINT: Final = frozenset({"name", "text", "helpful", "harmful", "score"})
_FORM: Final = frozenset({"version", "last_updated", "sections", "key_points", "score"})


# --- names: ``pat-001``, counted per section, and ``kpt_001`` for those of the old flat form --------------


def parts(name: object) -> tuple[str, int] | None:
    """How a name begins and its number; None for a name of another form, which would be read as more than a
    name where points are printed or given to agents.
    """
    match = _NAME.fullmatch(name) if isinstance(name, str) else None
    return (match[1] or match[3], int(match[2] or match[4])) if match else None


def form(slug: str, number: int) -> str:
    """The name with this number."""
    return f"{slug}{'_' if slug == LEGACY else '-'}{number:03d}"


def highest(names: Iterable[object]) -> dict[str, int]:
    """The highest number of each slug."""
    numbers: dict[str, int] = {}
    for slug, number in filter(None, map(parts, names)):
        numbers[slug] = max(number, numbers.get(slug, 0))
    return numbers


class Names:
    """Gives names: each time the lowest one that nobody has, above ``marks`` (slug → number). Above the
    highest possible number they begin at 1 again, where one is free.
    """

    def __init__(self, taken: Iterable[str], marks: Mapping[str, int]) -> None:
        self._taken = set(taken)
        self._last = dict(marks)

    def take(self, slug: str) -> str:
        """A new name, which nobody gets a second time."""
        number = self._last.get(slug, 0) + 1
        if number >= 10**_DIGITS:  # a file brought the highest name that there is
            number = 1
        while form(slug, number) in self._taken:
            number += 1
        self._last[slug] = number
        return self._given(form(slug, number))

    def keep(self, name: str) -> str:
        """``name`` itself, when nobody has or had it; else a new one that begins like it."""
        known = parts(name)
        if known is None:
            raise ValueError(f"{name!r} is no name of ours")
        slug, number = known
        if name in self._taken or number <= self._last.get(slug, 0) or form(slug, number) != name:
            return self.take(slug)
        return self._given(name)

    def _given(self, name: str) -> str:
        self._taken.add(name)
        return name


def names_of(playbook: Playbook, marks: Mapping[str, int] | None = None) -> Names:
    """Where the next names come from: none that a point has, and above each of ``marks`` (slug → number).

    Without ``marks`` a new name is above the highest of its section, so that no gap is filled.
    """
    taken = by_name(playbook).keys()
    return Names(taken, highest(taken) if marks is None else marks)


# --- the form ----------------------------------------------------------------------------------------------


class Migrated(NamedTuple):
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
    for section in SECTION_SLUGS:
        for point in playbook["sections"].get(section, ()):
            yield section, point


def by_name(playbook: Playbook) -> dict[str, Point]:
    """Every point by its name."""
    return {point["name"]: point for _, point in each(playbook)}


def said_in(playbook: Playbook) -> set[str]:
    """What the points say, ``folded``, as ``add`` compares it."""
    return {folded(point["text"]) for _, point in each(playbook)}


def drop(playbook: Playbook, gone: Iterable[Point]) -> None:
    """Remove these points themselves, not those that are equal."""
    ids, sections = {id(point) for point in gone}, playbook["sections"]
    for section in SECTION_SLUGS:
        sections[section] = [p for p in sections.get(section, ()) if id(p) not in ids]


def copy(playbook: Playbook) -> Playbook:
    """A playbook that can be changed without changing this one: its sections and points are new."""
    sections = {name: [dict(p) for p in points] for name, points in playbook["sections"].items()}
    return {**playbook, "sections": sections}


def migrated(data: object, marks: Mapping[str, int] | None = None) -> Migrated:
    """The playbook that ``data`` (parsed JSON) is, in today's form. ``data`` is not changed.

    ``marks`` (slug → number): a name that is given here is above it. Raises ``ValueError`` when it is no
    playbook.
    """
    if not isinstance(data, dict):
        raise ValueError("it is no object")  # noqa: TRY004 - one kind of failure for the caller
    entries = list(_entries(data))
    names = Names((name for _, _, entry in entries if (name := _name(entry))), marks or {})
    playbook, told, seen = empty(), list[str](), set[str]()
    playbook |= {key: data[key] for key in ("version", "last_updated") if isinstance(data.get(key), str)}
    for section, slug, entry in entries:
        point = _point(entry)
        if point is None:
            told.append(f"an entry of {section} is left out: it is no point with a text")
            continue
        name = point["name"]
        if not name or name in seen:
            known = parts(name)
            point["name"] = names.take(known[0] if known else slug)
            if name:
                told.append(f"two points were called {name}; the later one is {point['name']} now")
            elif isinstance(entry, dict) and entry.get("name"):
                told.append(f"a point of {section} had a name of another form; it is {point['name']} now")
        seen.add(point["name"])
        playbook["sections"][section].append(point)
    return Migrated(playbook | {k: v for k, v in data.items() if k not in _FORM}, tuple(told))


def _entries(data: Mapping[str, Any]) -> Iterator[tuple[str, str, object]]:
    """Each entry with its section and how a name for it begins. ``sections`` wins over ``key_points``."""
    if not data.keys() & {"sections", "key_points"}:
        raise ValueError("it has neither `sections` nor `key_points`")
    sections = data.get("sections")
    if sections is None:
        yield from ((OTHERS, LEGACY, entry) for entry in _list(data.get("key_points"), "`key_points`"))
        return
    if not isinstance(sections, dict):
        raise ValueError("`sections` is no object")  # noqa: TRY004 - as above
    lists = [(section_of(name), _list(e, f"the section {name[:60]!r}")) for name, e in sections.items()]
    for section, slug in SECTION_SLUGS.items():
        yield from ((section, slug, entry) for name, entries in lists if name == section for entry in entries)


def _list(value: object, what: str) -> list[object]:
    if not isinstance(value, list | None):
        raise ValueError(f"{what} is no list")  # noqa: TRY004 - as above
    return value or []


def _name(entry: object) -> str:
    """The name that an entry brings, "" when it has none or one that is no name."""
    name = entry.get("name") if isinstance(entry, dict) else None
    return str(name) if parts(name) else ""


def _point(entry: object) -> Point | None:
    """The entry as a point, its name still as it was; None when it has no text."""
    fields: Mapping[str, Any] = entry if isinstance(entry, dict) else {"text": entry}
    text, score = fields.get("text"), _number(fields.get("score"))
    if not isinstance(text, str) or not text.strip():
        return None
    point = {
        "name": _name(entry),
        "text": text,
        "helpful": max(0, _number(fields.get("helpful", score))),
        "harmful": max(0, _number(fields.get("harmful", -score))),
    }
    return point | {key: value for key, value in fields.items() if key not in _POINT}


def _number(value: object) -> int:
    """A counter of a file as a whole number; 0 for what is none."""
    if type(value) is int:
        return value
    return int(value) if type(value) is float and abs(value) < 2**53 else 0


# --- as text -----------------------------------------------------------------------------------------------


def line(point: Point) -> str:
    """``[pat-001] helpful=3 harmful=0 :: the text``, on one line."""
    text = " ".join(point["text"].splitlines())
    return f"[{point['name']}] helpful={point.get('helpful', 0)} harmful={point.get('harmful', 0)} :: {text}"


def lines_of(playbook: Playbook) -> str:
    """All points, each section under its heading; empty sections are left out. "" without a point."""
    sections = playbook["sections"]
    blocks = (
        "\n".join((f"## {name}", *map(line, points)))
        for name in SECTION_SLUGS
        if (points := sections.get(name))
    )
    return "\n\n".join(blocks)


# --- counting, pruning, merging ----------------------------------------------------------------------------


def apply_tags(playbook: Playbook, given: object, field: str = "tag") -> list[str]:
    """Count each tag (``{"name", field}``) once, those of one point too (REQ-REFL-007, INV-REFL-004)."""
    known, told = by_name(playbook), list[str]()
    for item in given if isinstance(given, list | tuple) else ():
        name, value = (item.get("name"), item.get(field)) if isinstance(item, Mapping) else (None, None)
        point = known.get(name) if isinstance(name, str) else None
        if point is None:
            told.append(f"no point is called {short(name)}: its {field} is left out")
        elif isinstance(value, str) and value in COUNTERS:
            point[value] += 1
        elif value != "neutral":
            told.append(f"{short(value)} is no {field} for {short(name)}: left out")
    return told


def short(value: object) -> str:
    """What stood where a point was wanted, for a message."""
    return ascii(value)[:80]


def harms(point: Mapping[str, Any]) -> bool:
    """Whether the point is to be dropped: it harmed at least three times, and more often than it helped."""
    helpful, harmful = point.get("helpful", 0), point.get("harmful", 0)
    return bool(harmful >= LEAST_HARMFUL and harmful > helpful)


def prune(playbook: Playbook) -> list[Point]:
    """Drop the points that harm. Returns them."""
    dropped = [point for _, point in each(playbook) if harms(point)]
    drop(playbook, dropped)
    return dropped


def sum_counters(into: Point, points: Iterable[Point]) -> None:
    """``into`` has the sum of the counters of these points."""
    points = list(points)
    for counter in COUNTERS:
        into[counter] = sum(p.get(counter, 0) for p in points)


def deduplicate(playbook: Playbook) -> list[Point]:
    """Make points with the same text the first of them, with the sum of the counters, in place; case, blanks
    and the signs at the ends don't count. Returns those that are gone. Points that say the same in other
    words are the curator's to join.
    """
    groups: dict[str, list[Point]] = {}
    for _, point in each(playbook):
        groups.setdefault(folded(point["text"]), []).append(point)
    gone: list[Point] = []
    for points in groups.values():
        sum_counters(points[0], points)
        gone += points[1:]
    drop(playbook, gone)
    return gone


def add(playbook: Playbook, text: object, section: object, names: Names, said: set[str]) -> Point | None:
    """Add a point at the end of its section. None when there is no text, or it is in ``said``, to which it is
    added.
    """
    if not isinstance(text, str) or not text.strip() or folded(text) in said:
        return None
    said.add(folded(text))
    into = section_of(section)
    point = {"name": names.take(SECTION_SLUGS[into]), "text": text, "helpful": 0, "harmful": 0}
    playbook["sections"].setdefault(into, []).append(point)
    return point
