"""``reflectd reflect scan``: gathers what the person typed in past sessions, and has a model read it.

The model is asked on a terminal, after a yes to what it takes, and inside a host, where the person typed
`/reflect`. Without one the messages are printed for whoever words them: the person, or their agent. Changes
nothing but the journal and what belongs to it in the state folder. After Ctrl-C what was read is counted.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from ...core.errors import ReflectdError, UserError
from ..moments import moment
from ..render import Paint, count, place, plain, print_json
from ..settings import look as look_at_settings
from ..terminal import add_flag, say, show
from .action import action, rules_of
from .status import lines_of, summary, tell

if TYPE_CHECKING:
    import argparse

    from ...files.learned_rules import LearnedRules
    from ...learning.rules.candidates import Candidate
    from .scanning import Scan

TOLD: Final = 5  # files that could not be read, by name
SHOWN: Final = 40  # messages that nobody read yet: an agent's shell shows some 30,000 characters
SHOWN_TEXT: Final = 300
SHOWN_BEFORE: Final = 120


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
    parser.add_argument("--dry-run", action="store_true", help="say what would be found, change nothing")
    add_flag(parser)


def run(args: argparse.Namespace) -> int:
    """Gather, have it read, and say what is suggested."""
    from ...files.findings import gathering, known_cursors
    from .past import read_past
    from .scanning import Scan, read_all
    from .sources import named, of_project

    if args.paths and args.all:
        raise UserError("give FILE or --all, not both")
    since = moment(args.since) if args.since else 0
    rules = rules_of(args)
    book = rules.journal
    listed = named(args.paths) or of_project(book.project, os.environ, everywhere=args.all)
    before = book.read().journal
    scan = Scan(book, gathering(book, before), known_cursors(book, before), since, args.dry_run)
    try:
        read_all(scan, [s for s in listed if s.found.st_mtime_ns // 1_000_000 >= since], quiet=args.json)
        asked = not (args.paths or args.all) and read_past(scan, look_at_settings(args)[1], quiet=args.json)
    finally:
        scan.count()  # also after Ctrl-C: what was read is not read again
    if not args.dry_run:
        _have_it_read(args, scan, rules)
    _report(args, scan, found=bool(listed) or asked)
    return 0


def _have_it_read(args: argparse.Namespace, scan: Scan, rules: LearnedRules) -> None:
    from .in_host import opened, sessions_here
    from .model import MOST_IN_HOST, HostModel, read_with

    if sessions_here():
        try:
            inside = opened(args)
        except ReflectdError as error:
            scan.told.append(f"no model read these messages: {error}")
            return
        model = HostModel(inside.session, inside.where)
        read_with(model, scan, rules, most=MOST_IN_HOST, quiet=True)
    elif not args.json:
        ask_own_model(scan, rules)


def ask_own_model(scan: Scan, rules: LearnedRules) -> bool:
    """Have the person's own model read the candidates, if there is one and they say yes to what it takes.
    Whether it read them all.
    """
    from ...learning.rules.candidates import for_a_model
    from ..setup.confirm import asked
    from .model import own_model, read_with, stands_in

    waiting = for_a_model(scan.gathering.kept.values())
    model = own_model(rules.journal.project, rules.state_dir) if waiting else None
    if model is None:
        return not waiting
    say(model.estimate(waiting, stands_in(rules, scan.journal)))
    return asked("Ask the model?", "no terminal") and read_with(model, scan, rules, quiet=False)


def shown(found: Candidate) -> dict[str, Any]:
    """A message that nobody read yet, for whoever words it."""
    from ...learning.rules.candidates import quote_of

    said = quote_of(found, max(found.seen, key=lambda s: s.day))
    return {
        "id": found.key,
        "text": said.text[:SHOWN_TEXT],
        "before": said.context[-SHOWN_BEFORE:],
        "day": said.day,
        "sessions": found.sessions,
        "why": list(found.reasons),
    }


def _report(args: argparse.Namespace, scan: Scan, *, found: bool) -> None:
    """``found``: whether there was anything to read."""
    from ...learning.rules.candidates import for_a_model, for_a_person

    journal, quotes = scan.journal, scan.book.state.load("quotes")
    waiting = list(scan.gathering.kept.values())
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
        unread = for_a_model(waiting)
        signals = {
            "new": scan.new,
            "again": sorted(scan.again),
            **signals,
            "candidates": [shown(c) for c in unread[:SHOWN]],
            "more_candidates": len(unread[SHOWN:]),
        }
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
    lines = lines_of(journal, where, quotes, Paint())
    if left := for_a_person(waiting):
        many = count(len(left), "message")
        lines += ["", f"{many} of yours that nobody read yet: `reflectd reflect` asks what they teach"]
    show(lines, pager=not args.no_pager)
