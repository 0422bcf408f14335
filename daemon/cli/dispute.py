"""``reflectd dispute``: "this verdict was wrong", in one command. The frozen case becomes a labelled one.

It changes no verdict and sends nothing: it keeps the case, so that `make eval-judge` and `reflectd judge` can
measure judges by it. Said twice, the later label counts. Undone by `reflectd case remove`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from daemon.cli.case import EXPECTED, newest_case
from daemon.cli.render import short
from daemon.cli.settings import add_flags, load

EPILOG = """examples:
  reflectd dispute --should-be complete                      the newest verdict of this folder was wrong
  reflectd dispute ses_58c3f --should-be incomplete --why "the tests never ran"
  reflectd dispute --should-be awaiting_user --dry-run       only show which case it is

undo: reflectd case remove NAME (the name is printed)
exit codes: 0 done, 1 not available, 2 wrong arguments"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the verb."""
    parser = verbs.add_parser(
        "dispute",
        help="say that a verdict was wrong, and keep its case as a test",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("session", nargs="?", default="", metavar="SESSION", help="its id, or how it begins")
    parser.add_argument(
        "--should-be", choices=EXPECTED, required=True, help="what the verdict should have been"
    )
    parser.add_argument("--why", default="", metavar="TEXT", help="one sentence, for whoever reads it")
    parser.add_argument("--dry-run", action="store_true", help="show what would be kept, write nothing")
    add_flags(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Keep the newest case of the session with the person's label."""
    from daemon.files.case_folder import CaseFolder, summary

    _, where = load(args)
    source = newest_case(where, args.session)
    case, folder = summary(source), CaseFolder(where.state_dir)
    path = folder.path / source.name
    before = ""
    if not args.dry_run:
        folder.save(source)
        replaced = folder.label(path, args.should_be, args.why)
        before = f" (before: {replaced.get('expect')})" if replaced else ""
    agrees = " (that is what the judge said)" if case.judged == args.should_be else ""
    print(f"session   {case.session}")
    print(f"request   {short(case.request, 100)}")
    print(f"judged    {case.judged}{': ' if case.feedback else ''}{short(case.feedback, 160)}")
    print(f"should be {args.should_be}{agrees}{before}")
    print(f"{'would be kept as' if args.dry_run else 'kept as'} {path}")
    if not args.dry_run:
        print(f"undo with: reflectd case remove {Path(path).stem}")
    return 0
