"""``reflectd reflect dismiss``: never suggest these signals again. A person at a terminal decides that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .action import action, consent, opened

if TYPE_CHECKING:
    import argparse

    from ...learning.rules.journal import Entry, Journal


def add_parser(what: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the action."""
    parser = action(what, "dismiss", "never suggest these signals again", run)
    parser.add_argument("names", nargs="+", metavar="ID", help="their ids, such as sig-20251127-001")


def run(args: argparse.Namespace) -> int:
    """Dismiss them."""
    from ...learning.rules.journal import dismiss
    from .status import tell_changed

    consent("dismissing a signal")
    book = opened(args)

    def edit(journal: Journal) -> list[Entry]:
        return dismiss(journal, args.names, book.day())

    tell_changed(args, book.change(edit), "dismissed", "take that back with: reflectd reflect restore")
    return 0
