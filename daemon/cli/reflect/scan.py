"""``reflectd reflect scan``: reads what the person typed in past sessions, and counts signals in the journal.

Changes nothing but the journal and what belongs to it in the state folder. It suggests, and never writes a
rule. After Ctrl-C what was read so far is counted.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from ...core.errors import UserError
from ..moments import moment
from ..render import Paint, count, place, plain, print_json
from ..settings import look as look_at_settings
from ..terminal import add_flag, attended, say, show
from .action import action, opened
from .status import lines_of, summary, tell

if TYPE_CHECKING:
    import argparse

    from ...files.journal import ProjectJournal
    from ...rules.gather import Held
    from ...rules.journal import Journal
    from .scanning import Scan

TOLD: Final = 5  # files that could not be read, by name


def add_parser(what: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the action."""
    text = "read past sessions, and say what you keep correcting"
    parser = action(what, "scan", text, run)
    parser.add_argument(
        "paths",
        nargs="*",
        metavar="FILE",
        help="transcripts of Claude Code, exports of opencode, or folders of them (the sessions of this "
        "project: Claude Code's, and opencode's while one is open in it)",
    )
    parser.add_argument("--all", action="store_true", help="Claude Code's sessions of all projects")
    parser.add_argument(
        "--since", metavar="WHEN", default="", help="only what was said since then, such as 30d"
    )
    parser.add_argument(
        "--model",
        action="store_true",
        help="have a small model look too, at what was not looked at; asks first",
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would be found, change nothing")
    add_flag(parser)


def run(args: argparse.Namespace) -> int:
    """Read, count, and say what is suggested."""
    from ...files.findings import known_cursors
    from ...rules.gather import Gathering
    from .past import read_past
    from .scanning import Scan, read_all
    from .sources import named, of_project

    if args.paths and args.all:
        raise UserError("give FILE or --all, not both")
    if args.model and (args.json or args.dry_run):
        raise UserError(
            "--model asks on a terminal first, and counts what comes of it: not with --json or --dry-run"
        )
    if args.model and not attended():
        raise UserError("a model costs something, so a person is asked first: do it on a terminal")
    since = moment(args.since) if args.since else 0
    book = opened(args)
    listed = named(args.paths) or of_project(book.project, os.environ, everywhere=args.all)
    before = book.read().journal
    held = _held(book, before) if args.model else None
    cursors = {} if args.model else known_cursors(book, before)
    scan = Scan(book, Gathering(book.state.load("asked"), held), cursors, since, args.dry_run, held)
    try:
        read_all(scan, [s for s in listed if s.found.st_mtime_ns // 1_000_000 >= since], quiet=args.json)
        asked = not (args.paths or args.all) and read_past(scan, look_at_settings(args)[1], quiet=args.json)
        if held is not None:
            _ask(scan, held, args)
    finally:
        scan.end()  # also after Ctrl-C: what was read is not read again
    _report(args, scan, found=bool(listed) or asked)
    return 0


def _held(book: ProjectJournal, journal: Journal) -> Held:
    """Where messages wait for a model: those that neither it nor the rules decided before."""
    from ...rules.gather import Held
    from ...rules.journal import messages

    return Held(messages(journal) | set(book.state.load("decided")))


def _ask(scan: Scan, held: Held, args: argparse.Namespace) -> None:
    """Have the model look, if the person wants that."""
    if not held.messages:
        say("there is nothing for a model to look at")
        return
    from .model import agreed, look, template_of

    _, where = look_at_settings(args)
    template = template_of(scan.book.project, where.state_dir)
    if agreed(held, template):
        look(held, scan, template)


def _report(args: argparse.Namespace, scan: Scan, *, found: bool) -> None:
    """``found``: whether there was anything to read."""
    journal, quotes = scan.journal, scan.book.state.load("quotes")
    signals = summary(journal, quotes)
    told = list(dict.fromkeys(scan.told))
    told += scan.failed[:TOLD] + (
        [f"{len(scan.failed) - TOLD} more files could not be read"] if len(scan.failed) > TOLD else []
    )
    if args.json:
        read = {
            "files": scan.read,
            "unchanged": scan.unchanged,
            "failed": len(scan.failed),
            "messages": scan.gathering.messages,
            "bytes": scan.bytes,
        }
        fields = {"changed": not scan.dry_run and bool(scan.new or scan.again), "read": read}
        signals = {"new": scan.new, "again": sorted(scan.again), **signals}
        print_json(
            {
                "project": str(scan.book.project),
                "file": str(scan.book.path),
                **fields,
                **signals,
                "told": told,
            }
        )
        return
    tell(told)
    if not found:
        say(
            f"Claude Code has no sessions of {place(scan.book.project)}, and no opencode is open there; name "
            "transcripts or exports of opencode, or use --all"
        )
    else:
        many = count(scan.gathering.messages, "new message")
        say(
            f"read {count(scan.read, 'session')} ({scan.unchanged} unchanged), {many} of yours: "
            f"{count(len(scan.new), 'new signal')}, {len(scan.again)} came up again"
        )
    where = plain(place(scan.book.project)) + (" (nothing was written)" if scan.dry_run else "")
    show(lines_of(journal, where, quotes, Paint()), pager=not args.no_pager)
