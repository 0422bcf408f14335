"""``reflectd reflect restore``: take dismissals back. A person at a terminal decides that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .action import action, consent, opened

if TYPE_CHECKING:
    import argparse


def add_parser(what: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the action."""
    parser = action(what, "restore", "suggest dismissed signals again", run)
    parser.add_argument("names", nargs="+", metavar="ID", help="their ids, such as sig-20251127-001")


def run(args: argparse.Namespace) -> int:
    """Restore them."""
    from ...learning.rules.journal import restore
    from .status import tell_changed

    consent("restoring a signal")
    done = opened(args).change(lambda journal: restore(journal, args.names))
    tell_changed(args, done, "restored")
    return 0
