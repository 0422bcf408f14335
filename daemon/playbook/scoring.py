"""What helped and what harmed is counted, and what harmed most of the time is dropped.

Everything here changes the playbook that it is given. What could not be used is returned, a line each.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Final

from ..core.learned import folded
from .points import OTHERS, SECTION_SLUGS, by_name, each, keep_only, names_of, section_of

if TYPE_CHECKING:
    from .names import Names
    from .points import Playbook, Point

TAGS: Final = ("helpful", "harmful", "neutral")
LEAST_HARMFUL: Final = 3


def apply_tags(playbook: Playbook, tags: object) -> list[str]:
    """Count each tag (``{"name", "tag"}``) once, those of one point too (REQ-REFL-007, INV-REFL-004)."""
    return _count(playbook, tags, "tag")


def apply_ratings(playbook: Playbook, evaluations: object) -> list[str]:
    """As ``apply_tags``, for evaluations (``{"name", "rating"}``)."""
    return _count(playbook, evaluations, "rating")


def _count(playbook: Playbook, given: object, field: str) -> list[str]:
    known, told = by_name(playbook), list[str]()
    for item in given if isinstance(given, list | tuple) else ():
        name, value = (item.get("name"), item.get(field)) if isinstance(item, Mapping) else (None, None)
        point = known.get(name) if isinstance(name, str) else None
        if point is None:
            told.append(f"no point is called {_short(name)}: its {field} is left out")
        elif isinstance(value, str) and value in {"helpful", "harmful"}:
            point[value] += 1
        elif value != "neutral":
            told.append(f"{_short(value)} is no {field} for {_short(name)}: left out")
    return told


def of_session(tags: object, given: Collection[str]) -> list[dict[str, Any]]:
    """The tags that count for one session: of each point that it was given the first one. The others are left
    out, because a session can say nothing of what it did not see, and counts once.
    """
    found: dict[str, dict[str, Any]] = {}
    for item in tags if isinstance(tags, list | tuple) else ():
        name = item.get("name") if isinstance(item, Mapping) else None
        if isinstance(name, str) and name in given:
            found.setdefault(name, dict(item))
    return list(found.values())


def harms(point: Mapping[str, Any]) -> bool:
    """Whether the point is to be dropped: it harmed at least three times, and more often than it helped."""
    helpful, harmful = point.get("helpful", 0), point.get("harmful", 0)
    return bool(harmful >= LEAST_HARMFUL and harmful > helpful)


def prune(playbook: Playbook) -> list[Point]:
    """Drop the points that harm. Returns them."""
    dropped = [point for _, point in each(playbook) if harms(point)]
    if dropped:
        keep_only(playbook, {id(point) for point in dropped})
    return dropped


def said_in(playbook: Playbook) -> set[str]:
    """What the points say, without the difference of case and spaces, as ``add`` compares it."""
    return {folded(point["text"]) for _, point in each(playbook)}


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


def update(playbook: Playbook, found: Mapping[str, Any]) -> list[str]:
    """Add the new points of an extraction, count its evaluations, and prune, in this order.

    ``found``: ``{"new_key_points": [text or {"text", "section"}], "evaluations": [{"name", "rating"}]}``.
    """
    told: list[str] = []
    names, said = names_of(playbook), said_in(playbook)
    new = found.get("new_key_points")
    for item in new if isinstance(new, list | tuple) else ():
        given: Mapping[str, Any] = item if isinstance(item, Mapping) else {"text": item}
        if add(playbook, given.get("text"), given.get("section", OTHERS), names, said) is None:
            told.append(f"{_short(given.get('text'))} is no new point: left out")
    told += apply_ratings(playbook, found.get("evaluations"))
    prune(playbook)
    return told


def _short(value: object) -> str:
    return ascii(value)[:80]
