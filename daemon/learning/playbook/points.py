"""Points: the form of a playbook, names, counting, points as text, and changes of them. Pure.

A playbook is a plain dict, as the file ``playbook.json`` has it::

    {"version": "1.0", "last_updated": "2026-02-18T14:30:00+00:00" or None,
     "sections": {"PATTERNS & APPROACHES": [{"name": "pat-001", "text": "…", "helpful": 0, "harmful": 0}], …}}

The five sections are always there, in their order. ``migrated`` makes this form of anything that was ever
written as a playbook: a flat list ``key_points``, bare texts, points with a ``score``. Fields that it does
not know stay. An object that is no playbook at all is a ``ValueError``. Counting and pruning change the
playbook that they are given; what could not be used is returned, a line each.

A curator answers with objects that have ``type``, and

* ADD: ``text``, ``section`` (OTHERS when it is none of ours);
* UPDATE: ``target_id``, ``text``; name and counters stay;
* MERGE: ``source_ids`` (two or more), ``merged_text``, ``section`` (that of the first source when missing).
  The sources go, and a new point has the sum of their counters;
* DELETE: ``target_id``, ``reason``.

A wrong one is skipped with a reason, and at most ten count. ``apply`` is for the library: it does all of
them at once, to a copy. In the daemon nothing that a model wrote reaches the playbook by this alone
(``proposed``): a new text is kept apart until another session shows that it is true, and what it is to
replace stays until then. A point that a person approved is neither removed nor replaced.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ...core.given import folded
from ..texts import refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

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
MOST: Final = 10  # operations of one answer
WHY_CHARS: Final = 300
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
    return f"{slug}{'_' if slug == LEGACY else '-'}{number:03d}"


def highest(names: Iterable[object]) -> dict[str, int]:
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
    return {point["name"]: point for _, point in each(playbook)}


def said_in(playbook: Playbook) -> set[str]:
    """The texts of the points, ``folded``, as ``add`` compares them."""
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
    return ascii(value)[:80]


def harms(point: Mapping[str, Any]) -> bool:
    """Says whether to drop the point: it harmed at least three times, and more often than it helped."""
    helpful, harmful = point.get("helpful", 0), point.get("harmful", 0)
    return bool(harmful >= LEAST_HARMFUL and harmful > helpful)


def prune(playbook: Playbook) -> list[Point]:
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


# --- operations --------------------------------------------------------------------------------------------


class Operation(Struct, frozen=True):
    """One change of points. With ``text`` a point says it: a new one; the one in ``names``; of several a new
    one that takes their place. With ``into`` those in ``names`` become that point, whose text stays. With
    neither they are removed.
    """

    text: str = ""
    names: tuple[str, ...] = ()
    section: str = ""
    into: str = ""
    why: str = ""


class Tag(Struct, frozen=True):
    """A session's word on a point that it was given."""

    name: str
    tag: Literal["helpful", "harmful", "neutral"]
    rationale: str = ""


class Change(Struct, frozen=True):
    """The changes of the playbook. They can be applied to the file as it is then, in spite of edits since.

    ``taken_back``: tags that were counted and are not true.
    """

    tags: tuple[Tag, ...] = ()
    operations: tuple[Operation, ...] = ()
    taken_back: tuple[Tag, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.tags or self.operations or self.taken_back)


class Proposed(NamedTuple):
    """``new``: those whose texts are kept apart. ``now``: those that bring in no new text. ``skipped``: why
    the others are neither.
    """

    new: tuple[Operation, ...]
    now: tuple[Operation, ...]
    skipped: tuple[str, ...]


class Skip(ValueError):
    """An operation that can't be applied, and why."""


def apply(playbook: Playbook, operations: object) -> tuple[Playbook, list[str]]:
    """A copy of the playbook with the operations applied in their order, and why some were skipped."""
    changed = copy(playbook)
    names = names_of(changed)
    return changed, _in_order(operations, lambda raw: carry_out(changed, operation(raw, changed), names))


def _in_order(operations: object, act: Callable[[object], None]) -> list[str]:
    """Do this with each operation that counts. Why the others were skipped: ``act`` raises ``Skip``."""
    skipped = []
    for number, raw in enumerate(operations if isinstance(operations, list | tuple) else (), 1):
        try:
            if number > MOST:
                raise Skip(f"only {MOST} operations count")
            act(raw)
        except Skip as e:
            kind = _kind(raw)
            label = f"operation {number}{f' ({kind[:20]})' if kind else ''}"
            skipped.append(f"{label} is skipped: {e}")
    return skipped


def _kind(raw: object) -> str:
    return str(raw.get("type", "")).strip().upper() if isinstance(raw, Mapping) else ""


def operation(raw: object, playbook: Playbook) -> Operation:
    """A curator's object as an operation on this playbook. Raises ``Skip``."""
    kind, known = _kind(raw), by_name(playbook)
    if not isinstance(raw, Mapping) or kind not in {"ADD", "UPDATE", "MERGE", "DELETE"}:
        raise Skip("it has no type that is known")
    reason, section = raw.get("reason"), raw.get("section")
    why = reason[:WHY_CHARS] if isinstance(reason, str) else ""
    into = section if isinstance(section, str) and section.strip() else ""
    if kind == "ADD":
        return Operation(_text(raw, "text"), (), into, why=why)
    if kind == "MERGE":
        sources = raw.get("source_ids", raw.get("names"))
        sources = sources if isinstance(sources, list | tuple) else ()
        names = tuple(dict.fromkeys(n for n in sources if isinstance(n, str) and n in known))
        if len(names) < 2:
            raise Skip("it names fewer than two points that are there")
        return Operation(_text(raw, "merged_text", "text"), names, into, why=why)
    text = _text(raw, "text") if kind == "UPDATE" else ""
    target = raw.get("target_id", raw.get("name"))
    if not isinstance(target, str) or not target.strip():
        raise Skip("it names no point")
    if target not in known:
        raise Skip(f"there is no point {short(target)}")
    return Operation(text, (target,), why=why)


def _text(raw: Mapping[str, Any], *fields: str) -> str:
    for name in fields:
        text = raw.get(name)
        if isinstance(text, str) and text.strip():
            return text
    raise Skip(f"it has no {fields[0]}")


def carry_out(playbook: Playbook, wanted: Operation, names: Names) -> None:
    """Apply one operation in place; its points are there. Raises ``Skip``, and nothing is changed then."""
    known = by_name(playbook)
    points = [known[name] for name in wanted.names]
    if wanted.into:
        sum_counters(known[wanted.into], (known[wanted.into], *points))
        drop(playbook, points)
        return
    if not wanted.text:
        drop(playbook, points)
        return
    others = said_in(playbook) - {folded(p["text"]) for p in points}
    if folded(wanted.text) in others:
        raise Skip(f"{'another' if points else 'a'} point says so already")
    if len(points) == 1:
        if points[0]["text"] == wanted.text:
            raise Skip("it says so already")
        points[0]["text"] = wanted.text
        return
    section = wanted.section or next((s for s, p in each(playbook) if points and p is points[0]), "")
    drop(playbook, points)
    made = add(playbook, wanted.text, section, names, others)
    if made is not None and points:
        sum_counters(made, points)


# --- what follows from one look back -----------------------------------------------------------------------


def counted(tags: Iterable[Tag], given: Collection[str], before: Collection[str]) -> tuple[Tag, ...]:
    """The tags that count: of points that the session was given, the first of each, each point once a
    session. ``before``: the points that this session was counted for already.
    """
    first: dict[str, Tag] = {}
    for tag in tags:
        if tag.name in given and tag.name not in before:
            first.setdefault(tag.name, replace(tag, rationale=tag.rationale[:WHY_CHARS]))
    return tuple(first.values())


def proposed(playbook: Playbook, operations: object, kept: Collection[str] = ()) -> Proposed:
    """The changes that the operations make, each by itself, and each point in one of them. ``playbook``: the
    part that the curator saw. ``kept``: the points that a person approved.
    """
    new, now, named = list[Operation](), list[Operation](), set[str]()
    sections = {p["name"]: section for section, p in each(playbook)}

    def propose(raw: object) -> None:
        wanted = operation(raw, playbook)
        carry_out(copy(playbook), wanted, names_of(playbook))
        if len(wanted.names) > 1 and (into := _same(wanted, playbook)):
            wanted = Operation(names=tuple(n for n in wanted.names if n != into), into=into)
        if approved := next((n for n in wanted.names if n in kept), ""):
            raise Skip(f"a person approved {approved}")
        if wanted.text and (why := refusal(wanted.text)):
            raise Skip(why)
        if twice := named.intersection((*wanted.names, wanted.into)):
            raise Skip(f"an earlier operation names {min(twice)}")
        named.update(wanted.names, [wanted.into] if wanted.into else [])
        if not wanted.text:
            now.append(wanted)
        elif wanted.names and (len(wanted.names) == 1 or not wanted.section):
            new.append(replace(wanted, section=sections[wanted.names[0]]))
        else:
            new.append(replace(wanted, section=section_of(wanted.section)))

    skipped = tuple(_in_order(operations, propose))
    return Proposed(tuple(new), tuple(now), skipped)


def _same(wanted: Operation, playbook: Playbook) -> str:
    """The first of the points to merge that has the text already: then no new text comes in."""
    known = by_name(playbook)
    return next((n for n in wanted.names if folded(known[n]["text"]) == folded(wanted.text)), "")


def changed(playbook: Playbook, change: Change, names: Names, kept: Collection[str] = ()) -> list[str]:
    """Make the change, in place: tags, operations, duplicates, harmful points. Points of an operation that
    are gone, or that a person approved meanwhile, are left out of it. Returns notes for the log.
    """
    known = by_name(playbook)
    for tag in change.taken_back:
        if tag.name in known and tag.tag in COUNTERS:
            known[tag.name][tag.tag] = max(0, known[tag.name][tag.tag] - 1)
    told = apply_tags(playbook, [{"name": t.name, "tag": t.tag} for t in change.tags])
    for wanted in change.operations:
        known = by_name(playbook)
        left = replace(wanted, names=tuple(n for n in wanted.names if n in known and n not in kept))
        if left.text and refusal(left.text):
            told.append("a text may not be offered any more")
        elif left.text or (left.names and (not left.into or left.into in known)):
            try:
                carry_out(playbook, left, names)
            except Skip as e:
                told.append(f"an operation is skipped: {e}")
    told += [f"{p['name']} says what another point says" for p in deduplicate(playbook)]
    told += [f"{p['name']} harmed more often than it helped" for p in prune(playbook)]
    return told
