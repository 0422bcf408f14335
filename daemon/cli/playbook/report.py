"""``reflectd playbook report``: what became of each point, and of sessions with points against those without.

The daemon counts. The comparison needs sessions that were held out (`playbook.holdout_percent`), and says
nothing where the numbers are too few.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from ...client import request
from ...paths import find_socket
from ..render import Paint, count, place, print_json, short
from ..settings import look
from .shown import opened

if TYPE_CHECKING:
    import argparse


def report(args: argparse.Namespace) -> int:
    """Ask the daemon and say it. Raises ``Unavailable`` without one."""
    project, _ = opened(args)
    query = urlencode({"directory": str(project)})
    found = request(find_socket(look(args)[1]), "GET", f"/v1/features/playbook/report?{query}")
    if args.json:
        print_json(found)
        return 0
    print("\n".join(lines(found, Paint())))
    return 0


def lines(found: dict[str, Any], paint: Paint) -> list[str]:
    """The report for a person."""
    told = paint.row("", paint(f"points in {place(found['directory'])}", "bold"), "  ")
    for p in found["points"]:
        said = f"given to {count(p['given'], 'session')}, cited in {p['cited']}, "
        said += f"helped in {p['helpful']}, harmed in {p['harmful']}"
        told += paint.row(f"  {short(p['name'], 40):<9} ", said)
    if not found["points"]:
        told += paint.row("  ", "no session was given a point yet")
    told.append("")
    for name, side in (("with points", found["with_points"]), ("without", found["held_out"])):
        told += paint.row(f"  {name:<12} ", _side(side))
    return told + paint.row("  ", found["shows"])


def _side(side: dict[str, Any]) -> str:
    if not side["tasks"]:
        return "no task was judged"
    low, high = round(100 * side["low"]), round(100 * side["high"])
    return (
        f"{side['complete']:,} of {count(side['tasks'], 'task')} complete at their first verdict "
        f"({low} to {high} %)"
    )
