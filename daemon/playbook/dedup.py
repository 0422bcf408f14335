"""Points with the same text become one: the first stays, with the sum of the counters. Points that say the
same in other words are the curator's to join.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.learned import folded
from .points import each, keep_only

if TYPE_CHECKING:
    from .points import Playbook, Point


def deduplicate(playbook: Playbook) -> list[tuple[Point, tuple[Point, ...]]]:
    """Make points with the same text one point, in place; case, blanks and the signs at the ends don't count.
    Returns each point that stayed, with those that are gone.
    """
    groups: dict[str, list[Point]] = {}
    for _, point in each(playbook):
        groups.setdefault(folded(point["text"]), []).append(point)
    joined = [(first, tuple(others)) for first, *others in groups.values() if others]
    for first, others in joined:
        for counter in ("helpful", "harmful"):
            first[counter] = sum(p.get(counter, 0) for p in (first, *others))
    if joined:
        keep_only(playbook, {id(p) for _, others in joined for p in others})
    return joined
