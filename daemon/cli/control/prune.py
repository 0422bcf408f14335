"""``reflectd prune``: what is too old to keep, and a person's word that the clock is right.

The daemon deletes by itself, a day's worth a day. After its clock jumped it deletes nothing for a day;
``--yes`` ends that. This verb deletes nothing itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...client import request
from ...paths import find_socket
from ..render import clock, plain, print_json, standstill
from ..settings import add_flags, look
from ..terminal import say

if TYPE_CHECKING:
    import argparse

EPILOG = """examples:
  reflectd prune         what is too old, and whether deleting stands still
  reflectd prune --yes   after a jump of the clock: it is right, delete again"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = verbs.add_parser("prune", epilog=EPILOG)
    parser.add_argument("--yes", action="store_true", help="the clock is right: delete again after its jump")
    add_flags(parser, run, json="print it as JSON")


def run(args: argparse.Namespace) -> int:
    _, where = look(args)
    found = request(find_socket(where), "POST", "/v1/prune", {"trust": args.yes})
    if args.json:
        print_json({key: value for key, value in found.items() if key != "api"})
    else:
        say("\n".join(_lines(found)))
    return 0


def _lines(found: dict[str, Any]) -> list[str]:
    rows = ", ".join(f"{plain(table)} {number:,}" for table, number in found["old"].items())
    by = f"by the daemon's clock ({clock(found['now'])})"
    stands = [s for s in found["standstill"] if s["what"] not in found["ended"]]
    return [
        f"too old {by}, at most a day's worth of each table: {rows or 'nothing'}",
        *map(standstill, stands),
        *(f"old {what} are deleted again, a day's worth a day" for what in found["ended"]),
        *([] if found["standstill"] else ["the daemon deletes it by itself, once a day"]),
    ]
