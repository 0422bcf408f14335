"""The curator: what is to be changed in the playbook? Its case, prompt and reply, and its operations applied.

A curator sees the reflector's output and the points, never the session. Its operations are applied in their
order to a copy of the playbook. An operation is a dict with ``type``, and

* ADD: ``text``, ``section`` (OTHERS when it is none of ours);
* UPDATE: ``target_id``, ``text``; name and counters stay;
* MERGE: ``source_ids`` (two or more), ``merged_text``, ``section`` (that of the first source when missing).
  The sources go, and a new point has the sum of their counters;
* DELETE: ``target_id``, ``reason``.

A wrong operation is skipped with a reason. At most ten count.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Literal

from ...core.cuts import tokens, within
from ...core.given import folded
from .points import (
    SECTION_SLUGS,
    Names,
    Playbook,
    Point,
    add,
    by_name,
    copy,
    drop,
    each,
    line,
    lines_of,
    names_of,
    said_in,
    sum_counters,
)  # fmt: skip
from .reflector import HEADING, NONE, TEXT, Question, ask, closed, dicts_in, kept, listed, prompt_of, text_in

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from .reflector import Confirmed, Flow, Json

CURATOR_TOKENS: Final = 4_000
ALIKE: Final = 10  # pairs of points that may say the same, in one question
MOST: Final = 10
Kind = Literal["ADD", "UPDATE", "MERGE", "DELETE"]
OPERATIONS: Final = closed(
    nonce=TEXT,
    reasoning=TEXT,
    operations=listed(
        closed(
            type={"type": "string", "enum": ["ADD", "UPDATE", "MERGE", "DELETE"]},
            section=TEXT,
            text=TEXT,
            target_id=TEXT,
            source_ids=listed(TEXT),
            merged_text=TEXT,
            reason=TEXT,
        )
    ),
)


@dataclass(frozen=True, slots=True)
class Curation:
    """What a curator is asked about: ``reflection``, a reflector's output as JSON, and ``points``."""

    question: Question
    reflection: str
    points: str


def curate(case: Curation) -> Flow:
    """What is to be changed in the playbook? ``{"reasoning": text, "operations": [{"type", …}]}``."""
    question, points = case.question, case.points
    values = {"nonce": question.nonce, "playbook": points, "reflector_output": case.reflection}

    def read(data: Mapping[str, Any]) -> tuple[Json, tuple[Confirmed, ...]]:
        return {"reasoning": text_in(data, "reasoning"), "operations": dicts_in(data, "operations")}, ()

    return (
        yield from ask(prompt_of(question, "curate", values, OPERATIONS), question, ("operations",), read)
    )


def curation(
    question: Question,
    reflection: Mapping[str, Any],
    playbook: Playbook,
    *,
    largest: int = 0,
    alike: Iterable[tuple[str, str]] = (),
) -> Curation:
    """What a curator is asked about. ``largest``: tokens of its prompt, 0 for no limit; where the points
    don't fit, those that the reflector tagged are kept first, then those that were counted most often.
    ``alike``: names of two points each that may say the same; ``ALIKE`` of them are shown, others in another
    session.
    """
    output = {"analysis": reflection.get("analysis", ""), "bullet_tags": reflection.get("bullet_tags", [])}
    said, points = json.dumps(output, indent=1, ensure_ascii=False, default=str), lines_of(playbook)
    pairs = sorted(alike, key=lambda pair: sha256(f"{question.session} {pair}".encode()).digest())[:ALIKE]
    if largest:
        room = largest - tokens(question.template) - 4 * HEADING - tokens(_alike(pairs))
        said = within(said, room // 2)
        points = _fitted(playbook, output["bullet_tags"], room - tokens(said))
    there = {p["name"] for p in shown(playbook, points)}
    points += _alike([pair for pair in pairs if there.issuperset(pair)])
    return Curation(question, said, points or NONE)


def shown(playbook: Playbook, points: str) -> list[Point]:
    """The points whose lines stand in this text."""
    lines = set(points.splitlines())
    return [p for _, p in each(playbook) if line(p) in lines]


def _alike(pairs: Iterable[tuple[str, str]]) -> str:
    """The pairs, below the points; "" without any."""
    rows = "\n".join(f"[{a}] and [{b}]" for a, b in pairs)
    return f"\n\n## These may say the same\n{rows}" if rows else ""


def _fitted(playbook: Playbook, tags: object, most: int) -> str:
    """The points under their headings, in at most ``most`` tokens."""
    tagged = {t.get("name") for t in tags if isinstance(t, Mapping)} if isinstance(tags, list) else set()
    items = [
        (0 if p["name"] in tagged else 1 + max(0, 9 - p.get("helpful", 0) - p.get("harmful", 0)), line(p))
        for _, p in each(playbook)
    ]
    found = kept(items, most - len(SECTION_SLUGS) * HEADING).split("\n")
    fit, blocks = set(found), []
    for section in SECTION_SLUGS:
        lines = [text for of, p in each(playbook) if of == section and (text := line(p)) in fit]
        blocks += ["\n".join((f"## {section}", *lines))] if lines else []
    left_out = [text for text in found if text.endswith("left out: no room)") and text[0] == "("]
    return "\n\n".join([*blocks, *left_out])


# --- operations --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Done:
    """One operation that was applied. ``name``: the point that it made, changed or removed. ``before``: the
    points that it took away or changed, as they were. ``why``: the curator's reason.
    """

    kind: Kind
    name: str
    before: tuple[Point, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class Applied:
    """The changed copy, what was done, and why the other operations were skipped."""

    playbook: Playbook
    done: tuple[Done, ...]
    skipped: tuple[str, ...]


class Skip(ValueError):
    """An operation that can't be applied, and why."""


def apply(
    playbook: Playbook, operations: object, *, names: Names | None = None, kept: Collection[str] = ()
) -> Applied:
    """``operations`` applied to a copy of ``playbook``.

    ``names`` gives the names of new points; without it they are above the highest of their section. ``kept``:
    names of points that no DELETE removes.
    """
    changed = copy(playbook)
    names = names or names_of(changed)
    done, skipped = list[Done](), list[str]()
    for number, operation in enumerate(operations if isinstance(operations, list | tuple) else (), 1):
        kind = str(operation.get("type", "")).strip().upper() if isinstance(operation, Mapping) else ""
        try:
            if number > MOST:
                raise Skip(f"only {MOST} operations count")
            done.append(_applied(changed, kind, operation, names, kept))
        except Skip as e:
            skipped.append(f"operation {number}{f' ({kind[:20]})' if kind else ''} is skipped: {e}")
    return Applied(changed, tuple(done), tuple(skipped))


def _applied(
    playbook: Playbook, kind: str, operation: Mapping[str, Any], names: Names, kept: Collection[str]
) -> Done:
    """Apply one operation, in place. Raises ``Skip``."""
    if kind not in {"ADD", "UPDATE", "MERGE", "DELETE"}:
        raise Skip("it has no type that is known")
    said, why = said_in(playbook), operation.get("reason")
    why = why[:300] if isinstance(why, str) else ""
    match kind:
        case "ADD":
            added = add(playbook, _text(operation, "text"), operation.get("section"), names, said)
            if added is None:
                raise Skip("a point says so already")
            return Done("ADD", added["name"], why=why)
        case "UPDATE":
            text, point = _text(operation, "text"), _target(playbook, operation)
            if folded(text) in said - {folded(point["text"])}:
                raise Skip("another point says so already")
            if text == point["text"]:
                raise Skip("it says so already")
            before = dict(point)
            point["text"] = text
            return Done("UPDATE", point["name"], (before,), why)
        case "MERGE":
            return _merged(playbook, operation, names, said, why)
        case _:
            point = _target(playbook, operation)
            if point["name"] in kept:
                raise Skip(f"{point['name']} may not be removed")
            drop(playbook, [point])
            return Done("DELETE", point["name"], (point,), why)


def _merged(playbook: Playbook, operation: Mapping[str, Any], names: Names, said: set[str], why: str) -> Done:
    text, known = _text(operation, "merged_text", "text"), by_name(playbook)
    given = operation.get("source_ids", operation.get("names"))
    given = given if isinstance(given, list | tuple) else ()
    gone = tuple(known[n] for n in dict.fromkeys(n for n in given if isinstance(n, str)) if n in known)
    if len(gone) < 2:
        raise Skip("it names fewer than two points that are there")
    said -= {folded(p["text"]) for p in gone}
    if folded(text) in said:
        raise Skip("another point says so already")
    into = operation.get("section")
    if not isinstance(into, str) or not into.strip():
        into = next(section for section, p in each(playbook) if p is gone[0])
    drop(playbook, gone)
    made = add(playbook, text, into, names, said)
    if made is None:
        raise AssertionError("its text was checked above")
    sum_counters(made, gone)
    return Done("MERGE", made["name"], gone, why)


def _target(playbook: Playbook, operation: Mapping[str, Any]) -> Point:
    target = operation.get("target_id", operation.get("name"))
    if not isinstance(target, str) or not target.strip():
        raise Skip("it names no point")
    point = by_name(playbook).get(target)
    if point is None:
        raise Skip(f"there is no point {ascii(target)[:80]}")
    return point


def _text(operation: Mapping[str, Any], *fields: str) -> str:
    for name in fields:
        text = operation.get(name)
        if isinstance(text, str) and text.strip():
            return text
    raise Skip(f"it has no {fields[0]}")
