"""Changes of a playbook: a curator's operations, and all that follows from one look back. Pure.

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

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from ...core.given import folded
from ..texts import refusal
from .points import (
    COUNTERS,
    add,
    apply_tags,
    by_name,
    copy,
    deduplicate,
    drop,
    each,
    names_of,
    prune,
    said_in,
    section_of,
    short,
    sum_counters,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from .points import Names, Playbook

MOST: Final = 10
WHY_CHARS: Final = 300


@dataclass(frozen=True, slots=True)
class Operation:
    """One change of points. With ``text`` a point says it: a new one; the one in ``names``; of several a new
    one that takes their place. With ``into`` those in ``names`` become that point, whose text stays. With
    neither they are removed.
    """

    text: str = ""
    names: tuple[str, ...] = ()
    section: str = ""
    into: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Tag:
    """A session's word on a point that it was given."""

    name: str
    tag: Literal["helpful", "harmful", "neutral"]
    rationale: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """What changes in the playbook. It can be applied to the file as it is then, whoever edited it since.

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
    changed, skipped = copy(playbook), list[str]()
    names = names_of(changed)
    for label, raw in _numbered(operations, skipped):
        try:
            carry_out(changed, operation(raw, changed), names)
        except Skip as e:
            skipped.append(f"{label} is skipped: {e}")
    return changed, skipped


def _numbered(operations: object, skipped: list[str]) -> Iterator[tuple[str, object]]:
    """Those that count, each with how a message names it."""
    for number, raw in enumerate(operations if isinstance(operations, list | tuple) else (), 1):
        kind = _kind(raw)
        label = f"operation {number}{f' ({kind[:20]})' if kind else ''}"
        if number > MOST:
            skipped.append(f"{label} is skipped: only {MOST} operations count")
        else:
            yield label, raw


def _kind(raw: object) -> str:
    return str(raw.get("type", "")).strip().upper() if isinstance(raw, Mapping) else ""


def operation(raw: object, playbook: Playbook) -> Operation:
    """What a curator's object means for this playbook. Raises ``Skip``."""
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
    """What the operations come to, each by itself, and each point in one of them. ``playbook``: the part that
    the curator saw. ``kept``: the points that a person approved.
    """
    new, now, skipped, named = list[Operation](), list[Operation](), list[str](), set[str]()
    sections = {p["name"]: section for section, p in each(playbook)}
    for label, raw in _numbered(operations, skipped):
        try:
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
        except Skip as e:
            skipped.append(f"{label} is skipped: {e}")
            continue
        named.update(wanted.names, [wanted.into] if wanted.into else [])
        if not wanted.text:
            now.append(wanted)
        elif wanted.names and (len(wanted.names) == 1 or not wanted.section):
            new.append(replace(wanted, section=sections[wanted.names[0]]))
        else:
            new.append(replace(wanted, section=section_of(wanted.section)))
    return Proposed(tuple(new), tuple(now), tuple(skipped))


def _same(wanted: Operation, playbook: Playbook) -> str:
    """The first of the points to merge that has the text already: then no new text comes in."""
    known = by_name(playbook)
    return next((n for n in wanted.names if folded(known[n]["text"]) == folded(wanted.text)), "")


def changed(playbook: Playbook, change: Change, names: Names, kept: Collection[str] = ()) -> list[str]:
    """Make the change, in place: tags, operations, duplicates, and what harms. What an operation names and is
    gone, or was approved by a person meanwhile, is left out of it. Returns what else a log may tell.
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
