"""Points as text: for a person, for a prompt, for an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.template import fill
from .points import SECTION_SLUGS

if TYPE_CHECKING:
    from .points import Playbook, Point


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


def offered(playbook: Playbook, template: str) -> str:
    """What an agent is given: ``lines_of`` in the template ``playbook.txt``, which asks it to cite. ""
    without a point. Raises ``UserError`` when the template has no ``{key_points}``.
    """
    found = lines_of(playbook)
    return fill(template, {"key_points": found}) if found else ""
