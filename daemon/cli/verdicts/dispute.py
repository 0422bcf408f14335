"""``reflectd dispute``: says that a verdict was wrong. It saves the verdict's case and labels it, in one
command.

It changes no verdict and sends nothing. `make eval-judge` and `reflectd judge` can then measure judges by the
case. After a second dispute the later label counts. `reflectd case remove` takes it back.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from ...core.errors import Unavailable, UserError
from ...core.words import EXPECTED
from ...paths import find_socket
from ..render import count, short
from ..settings import add_flags, look
from ..terminal import say
from .case import newest_case
from .why import add_round

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

EPILOG = """examples:
  reflectd dispute --should-be complete                      the newest verdict of this project was wrong
  reflectd dispute ses_58c3f --should-be incomplete --why "the tests never ran"
  reflectd dispute --round 2 --should-be complete            the feedback of its second round was wrong
  reflectd dispute --should-be awaiting_user --dry-run       only show which case it is

undo: reflectd case remove NAME (the name is printed)
exit codes: 0 done, 1 not available, 2 wrong arguments"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the verb."""
    parser = verbs.add_parser(
        "dispute",
        help="say that a verdict was wrong, and keep its case as a test",
        epilog=EPILOG,
    )
    parser.add_argument("session", nargs="?", default="", metavar="SESSION", help="its id, or how it begins")
    add_round(parser)
    parser.add_argument(
        "--should-be", choices=EXPECTED, required=True, help="what the verdict should have been"
    )
    parser.add_argument("--why", default="", metavar="TEXT", help="one sentence, for whoever reads it")
    parser.add_argument("--dry-run", action="store_true", help="show what would be kept, write nothing")
    add_flags(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Save the newest case of the session, or that of a round, with the person's label."""
    from ...files.disputes import dispute

    _, where = look(args)
    source = newest_case(where, args.session, args.round)
    found = dispute(where.state_dir, source, args.should_be, args.why, dry_run=args.dry_run)
    case = found.case
    agrees = " (that is what the judge said)" if found.agrees else ""
    before = f" (before: {found.before})" if found.before else ""
    say(f"session   {case.session}")
    say(f"request   {short(case.request, 100)}")
    say(f"judged    {case.judged}{': ' if case.feedback else ''}{short(case.feedback, 160)}")
    say(f"should be {args.should_be}{agrees}{before}")
    say(f"{'would be kept as' if args.dry_run else 'kept as'} {found.path}")
    if not args.dry_run and not found.agrees:
        _taken_back(find_socket(where), case.session)
    if not args.dry_run:
        say(f"undo with: reflectd case remove {found.path.stem}")
    return 0


def _taken_back(socket: Path, session: str) -> None:
    """What the wrong verdict taught is taken back, where a daemon knows of it."""
    from ...client import request
    from ...files.disputes import TAUGHT

    for feature, route in TAUGHT:
        with suppress(Unavailable, UserError):
            found = request(socket, "POST", f"/v1/features/{feature}/{route}", {"session": session})
            if found.get("counts") or found.get("texts"):
                counted = count(found["counts"], "count of a point", "counts of points")
                say(f"learned   {counted} and {count(found['texts'], 'new text')} are taken back")
            if found.get("withdrawn"):
                say(f"learned   {count(found['withdrawn'], 'lesson')} taken back")
