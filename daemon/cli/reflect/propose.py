"""``reflectd reflect propose``: what the person teaches, as questions for the question tool of a host.

Alone it asks about the patterns of the journal. With ``--rule`` an agent proposes a wording for messages that
no model read (``reflectd reflect scan``): the question shows it beside the person's own words, which come
from the scan and not from the agent. ``--none`` names messages that teach nothing. It changes nothing but the
journal and the list of questions that are open; `apply` does what the person answered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..render import print_json
from .action import action

if TYPE_CHECKING:
    import argparse


def add_parser(what: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the action."""
    text = "inside Claude Code or opencode: what was learned as questions for the person"
    parser = action(what, "propose", text, run)
    parser.add_argument(
        "--rule",
        nargs=2,
        action="append",
        default=[],
        metavar=("IDS", "TEXT"),
        help="messages of `scan`, with commas between them, and the rule that they ask for",
    )
    parser.add_argument("--none", default="", metavar="IDS", help="messages that teach nothing")


def run(args: argparse.Namespace) -> int:
    """Print them."""
    from ...files.findings import drop
    from .host_decisions import HostDecisions
    from .in_host import opened

    inside = opened(args)
    decisions = HostDecisions(inside)
    if args.rule or args.none:
        made = [decisions.worded(_ids(ids), text) for ids, text in args.rule]
        found, more = [p for p in made if p is not None], 0
        if args.none:
            drop(inside.rules.journal, _ids(args.none), inside.now())
    else:
        found, more = decisions.patterns()
    print_json({"project": str(inside.rules.journal.project), "ask": inside.ask(found), "more": more})
    return 0


def _ids(text: str) -> list[str]:
    return [name for part in text.split(",") if (name := part.strip())]
