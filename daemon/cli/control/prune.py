"""``reflectd prune``: what is too old to keep, and a person's word that the clock is right.

The daemon deletes by itself, a day's worth a day. After its clock jumped it deletes nothing for a day; this
verb ends that. It deletes nothing itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...client import request
from ...paths import find_socket
from ..render import clock, plain, print_json, standstill
from ..settings import add_flags, look
from ..terminal import agreed, say

if TYPE_CHECKING:
    import argparse

EPILOG = """examples:
  reflectd prune --dry-run         what is too old, and whether deleting stands still
  reflectd prune                   the same; after a jump of the clock it asks whether the clock is right"""
REFUSAL = "there is no terminal to ask on: look with --dry-run, then add --yes. Nothing was changed"


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the verb."""
    parser = verbs.add_parser("prune", epilog=EPILOG)
    parser.add_argument("--dry-run", action="store_true", help="show it, ask and change nothing")
    parser.add_argument("--yes", action="store_true", help="the clock is right: ask nothing")
    add_flags(parser, run, json="print it as JSON; with --dry-run or --yes")


def run(args: argparse.Namespace) -> int:
    """Show what is too old. Where the clock keeps it from being deleted, ask whether the clock is right."""
    _, where = look(args)
    found = request(find_socket(where), "POST", "/v1/prune", {"trust": False})
    stands = bool(found["standstill"])
    if not args.json:
        say("\n".join(_lines(found)))
    if stands and not args.dry_run:
        if not agreed(args, f"Is it {clock(found['now'])} now?", REFUSAL):
            say("nothing was changed")
            return 1
        found = request(find_socket(where), "POST", "/v1/prune", {"trust": True})
        if not args.json:
            say(_ended(found))
    if args.json:
        print_json({key: value for key, value in found.items() if key != "api"})
    return 0


def _lines(found: dict[str, Any]) -> list[str]:
    rows = ", ".join(f"{plain(table)} {number:,}" for table, number in found["old"].items())
    by = f"by the daemon's clock ({clock(found['now'])})"
    lines = [f"too old {by}, at most a day's worth of each table: {rows or 'nothing'}"]
    lines += [standstill(s) for s in found["standstill"]]
    if not found["standstill"]:
        lines.append("the daemon deletes it by itself, once a day")
    return lines


def _ended(found: dict[str, Any]) -> str:
    left = [s["what"] for s in found["standstill"] if s["what"] not in found["ended"]]
    parts = (
        [f"old {' and '.join(found['ended'])} are deleted again, a day's worth a day"]
        if found["ended"]
        else []
    )
    if left:
        parts.append(
            f"{' and '.join(left)} were deleted at a time that is still to come: they wait for the day"
        )
    return "; ".join(parts)
