"""What a curator wants changed: ADD, UPDATE, MERGE, DELETE, in their order, on a copy of the playbook.

An operation is a dict with ``type``, and

* ADD: ``text``, ``section`` (OTHERS when it is none of ours);
* UPDATE: ``target_id``, ``text``; name and counters stay;
* MERGE: ``source_ids`` (two or more), ``merged_text``, ``section`` (that of the first source when missing).
  The sources go, and a new point has the sum of their counters;
* DELETE: ``target_id``, ``reason``.

A wrong operation is skipped with a reason. At most ten count.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from ..core.learned import folded
from .names import Names
from .points import Playbook, Point, copy, each, names_of
from .scoring import add, said_in

MOST: Final = 10
Kind = Literal["ADD", "UPDATE", "MERGE", "DELETE"]


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


@dataclass(slots=True)
class _State:
    playbook: Playbook
    names: Names
    kept: Collection[str]
    said: set[str] = field(default_factory=set)

    def find(self, name: object) -> tuple[str, int, Point]:
        """The section of the point, its place there, and itself. Raises ``Skip``."""
        for section, points in self.playbook["sections"].items():
            for i, point in enumerate(points):
                if point["name"] == name:
                    return section, i, point
        raise Skip(f"there is no point {ascii(name)[:80]}")

    def remove(self, name: str) -> Point:
        section, i, point = self.find(name)
        del self.playbook["sections"][section][i]
        self.said.discard(folded(point["text"]))
        return point


def apply(
    playbook: Playbook, operations: object, *, names: Names | None = None, kept: Collection[str] = ()
) -> Applied:
    """``operations`` applied to a copy of ``playbook``.

    ``names`` gives the names of new points; without it they are above the highest of their section. ``kept``:
    names of points that no DELETE removes.
    """
    changed = copy(playbook)
    state = _State(changed, names or names_of(changed), kept, said_in(changed))
    done, skipped = list[Done](), list[str]()
    wanted = list(operations) if isinstance(operations, list | tuple) else []
    for number, operation in enumerate(wanted, 1):
        kind = str(operation.get("type", "")).strip().upper() if isinstance(operation, Mapping) else ""
        try:
            if number > MOST:
                raise Skip(f"only {MOST} operations count")
            if kind not in _APPLY:
                raise Skip("it has no type that is known")
            done.append(_APPLY[kind](state, operation))
        except Skip as e:
            skipped.append(f"operation {number}{f' ({kind[:20]})' if kind else ''} is skipped: {e}")
    return Applied(changed, tuple(done), tuple(skipped))


def _add(state: _State, operation: Mapping[str, Any]) -> Done:
    text = _text(operation, "text")
    point = add(state.playbook, text, operation.get("section"), state.names, state.said)
    if point is None:
        raise Skip("a point says so already")
    return Done("ADD", point["name"], why=_why(operation))


def _update(state: _State, operation: Mapping[str, Any]) -> Done:
    text = _text(operation, "text")
    _, _, point = state.find(_target(operation))
    others = state.said - {folded(point["text"])}
    if folded(text) in others:
        raise Skip("another point says so already")
    if text == point["text"]:
        raise Skip("it says so already")
    before = dict(point)
    point["text"] = text
    state.said = others | {folded(text)}
    return Done("UPDATE", point["name"], (before,), _why(operation))


def _merge(state: _State, operation: Mapping[str, Any]) -> Done:
    text = _text(operation, "merged_text", "text")
    given = operation.get("source_ids", operation.get("names"))
    wanted = dict.fromkeys(n for n in given if isinstance(n, str)) if isinstance(given, list | tuple) else {}
    known = {point["name"]: section for section, point in each(state.playbook)}
    sources = [name for name in wanted if name in known]
    if len(sources) < 2:
        raise Skip("it names fewer than two points that are there")
    own = {folded(state.find(name)[2]["text"]) for name in sources}
    if folded(text) in state.said - own:
        raise Skip("another point says so already")
    section = operation.get("section")
    into = section if isinstance(section, str) and section.strip() else known[sources[0]]
    gone = tuple(state.remove(name) for name in sources)
    state.said.discard(folded(text))
    point = add(state.playbook, text, into, state.names, state.said)
    if point is None:
        raise AssertionError("its text was checked above")
    for counter in ("helpful", "harmful"):
        point[counter] = sum(p.get(counter, 0) for p in gone)
    return Done("MERGE", point["name"], gone, _why(operation))


def _delete(state: _State, operation: Mapping[str, Any]) -> Done:
    target = _target(operation)
    if target in state.kept:
        raise Skip(f"{target} may not be removed")
    return Done("DELETE", target, (state.remove(target),), _why(operation))


_APPLY: Final[dict[str, Callable[[_State, Mapping[str, Any]], Done]]] = {
    "ADD": _add,
    "UPDATE": _update,
    "MERGE": _merge,
    "DELETE": _delete,
}


def _target(operation: Mapping[str, Any]) -> str:
    target = operation.get("target_id", operation.get("name"))
    if not isinstance(target, str) or not target.strip():
        raise Skip("it names no point")
    return target


def _text(operation: Mapping[str, Any], *fields: str) -> str:
    for name in fields:
        text = operation.get(name)
        if isinstance(text, str) and text.strip():
            return text
    raise Skip(f"it has no {fields[0]}")


def _why(operation: Mapping[str, Any]) -> str:
    why = operation.get("reason", "")
    return why[:300] if isinstance(why, str) else ""
