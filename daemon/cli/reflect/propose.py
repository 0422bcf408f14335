"""``reflectd reflect propose``: the patterns as questions for the question tool of a host.

It changes nothing but the list of questions that are open. The agent passes them on; `apply` does what the
person answered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..render import print_json
from .action import action

if TYPE_CHECKING:
    import argparse


def add_parser(what: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the action."""
    action(what, "propose", "inside Claude Code or opencode: the patterns as questions for the person", run)


def run(args: argparse.Namespace) -> int:
    """Print them."""
    from .host_decisions import HostDecisions
    from .in_host import opened

    inside = opened(args)
    found, more = HostDecisions(inside).patterns()
    print_json({"project": str(inside.rules.journal.project), "ask": inside.ask(found), "more": more})
    return 0
