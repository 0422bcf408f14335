"""``reflectd reflect scan``: gathers what the person typed in past sessions, and has a model read it.

The model is asked on a terminal, after a yes to what it takes, and inside a host, where the person typed
`/reflect`. Without one the messages are printed for whoever words them: the person, or their agent. Only new
messages are read. Changes nothing but the journal and what belongs to it in the state folder. Raises
``Unavailable`` when it can't be written.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from ...core.errors import ReflectdError, UserError
from ...learning.rules.candidates import for_a_model, for_a_person
from ..moments import moment
from ..render import Paint, count, place, plain, print_json
from ..settings import look as look_at_settings
from ..terminal import say, show
from .decisions import rules_of
from .reading import Scan, named, of_project
from .status import lines_of, summary, tell

if TYPE_CHECKING:
    import argparse

    from ...learning.rules.candidates import Candidate
    from ...learning.rules.learned_rules import LearnedRules
    from ...paths import Paths

Json = dict[str, Any]
TOLD: Final = 5  # files that could not be read, by name
SHOWN: Final = 40  # messages that nobody read yet: an agent's shell shows some 30,000 characters
SHOWN_TEXT: Final = 300
SHOWN_BEFORE: Final = 120


def run(args: argparse.Namespace) -> int:
    """Gather, have it read, and say what is suggested."""
    if args.paths and args.all:
        raise UserError("give FILE or --all, not both")
    since = moment(args.since) if args.since else 0
    rules, paths = rules_of(args), look_at_settings(args)[1]
    listed = named(args.paths) or of_project(rules.journal.project, os.environ, everywhere=args.all)
    some = [source for source in listed if source.stat.st_mtime_ns // 1_000_000 >= since]
    scan = Scan(rules, since, dry_run=args.dry_run)
    asked = scan.all(some, None if args.paths or args.all else paths, quiet=args.json)
    if not args.dry_run:
        _have_it_read(args, scan)
    _report(args, scan, found=bool(listed) or asked)
    return 0


def read_new(rules: LearnedRules, where: Paths) -> None:
    """Gather what the person said in this project's sessions since the last time, with a bar: Claude Code's,
    and opencode's while one is open in the project. A model reads it, where there is one.
    """
    listed = of_project(rules.journal.project, os.environ, everywhere=False)
    scan = Scan(rules)
    asked = scan.all(listed, where, quiet=False)
    _ask_own_model(scan)
    tell(dict.fromkeys(scan.told + scan.failed))
    if listed or asked:
        say(f"Read {_read(scan)}.")
    else:
        say(
            "Claude Code has no sessions of this project, and no opencode is open in it. "
            "`reflectd reflect scan FILE` reads what you name."
        )


def waiting(rules: LearnedRules) -> Json:
    """The patterns that the journal has, the messages that nobody read, and the options of a decision."""
    from .decisions import Decisions, answers

    book, decisions = rules.journal, Decisions(rules)
    return {
        "project": str(book.project),
        "files": [str(p.path) for p in decisions.places],
        "patterns": summary(book.usable(), book.state.load("quotes"))["suggested"],
        "unread": [shown(c) for c in for_a_person(book.unread())],
        "options": list(answers(decisions.base())),
    }


def _have_it_read(args: argparse.Namespace, scan: Scan) -> None:
    from .in_host import MOST_READ, InHost, sessions_here

    if sessions_here():
        try:
            inside = InHost(args)
        except ReflectdError as error:
            scan.told.append(f"no model read these messages: {error}")
            return
        scan.have_read(inside, most=MOST_READ, quiet=True)
    elif not args.json:
        _ask_own_model(scan)


def _ask_own_model(scan: Scan) -> None:
    """Have the person's own model read the candidates, if there is one and they say yes to what it takes."""
    from ..terminal import asked
    from .model import own_model, stands_in

    waiting = for_a_model(scan.gathering.kept.values())
    model = own_model(scan.rules) if waiting else None
    if model is not None:
        say(model.estimate(waiting, stands_in(scan.rules)))
        if asked("Ask the model?", "no terminal"):
            scan.have_read(model, quiet=False)


def shown(candidate: Candidate) -> dict[str, Any]:
    """A message that nobody read yet, for whoever words it."""
    said = candidate.quote(max(candidate.seen, key=lambda s: s.day))
    return {
        "id": candidate.key,
        "text": said["text"][:SHOWN_TEXT],
        "before": said["context"][-SHOWN_BEFORE:],
        "day": said["day"],
        "sessions": candidate.sessions,
        "why": list(candidate.reasons),
    }


def _read(scan: Scan) -> str:
    many = count(scan.gathering.messages, "new message")
    return f"{count(scan.read, 'session')} ({scan.unchanged} unchanged), {many} of yours"


def _report(args: argparse.Namespace, scan: Scan, *, found: bool) -> None:
    """``found``: there was anything to read."""
    quotes, waiting = scan.book.state.load("quotes"), list(scan.gathering.kept.values())
    told = [*dict.fromkeys(scan.told), *scan.failed[:TOLD]]
    if more := len(scan.failed[TOLD:]):
        told.append(f"{more} more files could not be read")
    if args.json:
        unread = for_a_model(waiting)
        print_json({
            "project": str(scan.book.project),
            "file": str(scan.book.path),
            "changed": not scan.dry_run and bool(scan.new or scan.again),
            "read": {
                "files": scan.read, "unchanged": scan.unchanged, "failed": len(scan.failed),
                "messages": scan.gathering.messages, "bytes": scan.bytes,
            },
            "new": scan.new,
            "again": sorted(scan.again),
            **summary(scan.journal, quotes),
            "candidates": [shown(c) for c in unread[:SHOWN]],
            "more_candidates": len(unread[SHOWN:]),
            "told": told,
        })  # fmt: skip
        return
    tell(told)
    if not found:
        say(
            f"Claude Code has no sessions of {place(scan.book.project)}, and no opencode is open there; name "
            "transcripts or exports of opencode, or use --all"
        )
    else:
        signals = f"{count(len(scan.new), 'new signal')}, {len(scan.again)} came up again"
        say(f"read {_read(scan)}: {signals}")
    where = plain(place(scan.book.project)) + (" (nothing was written)" if scan.dry_run else "")
    lines = lines_of(scan.journal, where, quotes, Paint())
    if left := for_a_person(waiting):
        many = count(len(left), "message")
        lines += ["", f"{many} of yours that nobody read yet: `reflectd reflect` asks what they teach"]
    show(lines, pager=not args.no_pager)
