"""``reflectd backtest``: what reflectd would have done in past sessions, before it is let do anything.

Every stop is judged as it was, by the rules, for free and without a daemon; by a model after an estimate and
a yes on a terminal. Nothing is sent to an agent, and no setting is changed. What was found is kept, so
whoever ends it, or kills it, goes on later. Exit codes: 0 shown · 1 a limit, no answer of a model or the file
system ended it, or the person said no · 2 wrong arguments, no session, or nobody to ask · 130 Ctrl-C.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Final

from ...core.errors import UserError
from ..render import Paint, count, plain, print_json
from ..settings import add_flags, look
from ..terminal import add_flag, attended, say, show

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from ...store.backtests import Backtests
    from .judging import Judging
    from .reading import Source

PROVIDERS: Final = ("anthropic", "openai", "claude-cli")
DAY_MS: Final = 86_400_000
PROBLEMS: Final = 5  # that are named
EPILOG: Final = """\
It reads all of Claude Code's sessions, and those of an opencode that is open while the daemon runs; or
those in DIR, where `opencode export SESSION > DIR/SESSION.json` writes one of opencode's.

The fixed rules judge, for free. With --provider a model does: you are told first how many calls, tokens
and USD that takes, and asked on the terminal. Nothing is sent to an agent.

--label shows up to 20 of the feedbacks that would have been sent, one by one; one key for each says
whether it was right. That gives the precision with its interval, and a proposal for judge.mode. What you
say is kept as a case of yours (`reflectd dispute list`).

examples:
  reflectd backtest                          all sessions
  reflectd backtest --days 30
  reflectd backtest ~/exports --json
  reflectd backtest --label
  reflectd backtest --days 7 --provider anthropic --dry-run

exit codes: 0 shown; 1 a limit on spending, no answer of a model or the file system ended it, or you said
no; 2 wrong arguments, no session, or nobody to ask; 130 Ctrl-C (run it again to go on)"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the verb."""
    parser = verbs.add_parser(
        "backtest",
        epilog=EPILOG,
    )
    parser.add_argument("dir", nargs="?", metavar="DIR", help="a folder with transcripts and exports")
    parser.add_argument("--days", type=int, metavar="N", help="only the last N days")
    parser.add_argument(
        "--provider", choices=PROVIDERS, help="have a model judge, after an estimate and a yes"
    )
    parser.add_argument("--dry-run", action="store_true", help="with --provider: only show the estimate")
    parser.add_argument("--label", action="store_true", help="look at 20 of the feedbacks, one by one")
    parser.add_argument("--json", action="store_true", help="for scripts")
    add_flag(parser)
    add_flags(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Read, judge, and show."""
    _check(args)
    settings, where = look(args)
    from ...store.backtests import Backtests
    from .judging import Judging
    from .reading import sessions_of
    from .scanning import RULES, scan

    since = int(time.time() * 1000) - args.days * DAY_MS if args.days else 0
    files = sessions_of(os.environ, where, args.dir, since)
    judging = Judging(settings, where)
    with Backtests(where.state_dir) as kept:
        kept.choose(f.name for f in files)
        try:
            scan(files, kept, judging)
            code, judge = 0, RULES
            if args.provider:
                from .asking import ask_model

                judge = args.provider
                spent = ask_model(args, files, kept, judging, settings, where, since)
                code = spent.code
                if not spent.ran:
                    return code
            return _shown(args, files, kept, judging, judge, since) or code
        except KeyboardInterrupt:
            say("Stopped. What was judged is kept; run it again to go on.", sys.stderr)
            return 130


def _check(args: argparse.Namespace) -> None:
    """Whether the flags go together. Raises ``UserError``."""
    if args.days is not None and not 1 <= args.days <= 36_500:
        raise UserError("--days must be from 1 to 36500")
    if args.dry_run and not args.provider:
        raise UserError("--dry-run shows what a model would cost: name one with --provider")
    if args.label and (args.json or not attended()):
        raise UserError("--label asks a person: run it on a terminal, without --json")


def _shown(
    args: argparse.Namespace,
    files: Sequence[Source],
    kept: Backtests,
    judging: Judging,
    judge: str,
    since: int,
) -> int:
    """The report in the form that was asked for. Returns the exit code."""
    from .label import found_so_far, label
    from .scanning import report_of
    from .text import lines

    report = report_of(kept, judge, judging, since)
    if args.label:
        label(files, kept, judging, judge, since, look(args)[1])
    quality = found_so_far(kept, judging, judge, since)
    problems = kept.problems(judge)
    if args.json:
        from .label import quality_object

        bad = [{"file": name, "why": why} for name, why in problems]
        print_json({**report.json(), "files": len(files), "problems": bad, "labels": quality_object(quality)})
    elif args.label:
        return 0
    else:
        show(lines(report, quality, len(files), Paint()), pager=not args.no_pager)
        _told(problems)
    return 0


def _told(problems: list[tuple[str, str]]) -> None:
    """What was left out."""
    for name, why in problems[:PROBLEMS]:
        say(f"left out: {plain(name)}: {plain(why)}", sys.stderr)
    if len(problems) > PROBLEMS:
        say(f"left out: {count(len(problems) - PROBLEMS, 'more file')} (--json names all)", sys.stderr)
