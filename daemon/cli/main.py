"""Entry point. Knows the verbs and the exit codes; imports the one module that is asked for.

Exit codes: 0 done · 1 something outside does not work (no daemon, disk full) · 2 wrong arguments or
settings · 3 `status`: not running, `service status`: not installed · 10 `judge`: incomplete · 11 `judge`:
unscored · 130 interrupted.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module

from daemon.core.errors import ReflectdError, UserError

VERBS: dict[str, tuple[str, str]] = {
    "serve": ("serve", "run the daemon in the foreground"),
    "start": ("start", "start the daemon in the background"),
    "stop": ("stop", "stop the daemon"),
    "status": ("status", "is it running, and what does it see"),
    "why": ("why", "why a session was judged as it was"),
    "watch": ("watch", "verdicts as they come"),
    "cost": ("cost", "what judging cost"),
    "doctor": ("doctor", "what is wrong with this installation, and how to mend it"),
    "logs": ("logs", "show the daemon's log"),
    "service": ("service", "run the daemon as a service (systemd, launchd)"),
    "setup": ("setup", "connect a coding agent to reflectd"),
    "on": ("switch", "judge this project (or one session) again"),
    "off": ("switch", "leave this project (or one session) alone"),
    "trust": ("trust", "let a project's own prompts be used, after looking at them"),
    "judge": ("judge", "judge a saved case or a session, without a daemon"),
    "dispute": ("dispute", "say that a verdict was wrong, and keep its case as a test"),
    "case": ("case", "keep cases, label, list or remove them"),
    "config": ("config", "show every setting, its value and where it comes from"),
    "completion": ("completion", "completion of verbs, flags and session ids for your shell"),
}

EPILOG = """examples:
  reflectd setup opencode          add the plugin line to opencode's settings
  reflectd setup claude-code       load the plugin in Claude Code
  reflectd status                  is it running, and what does it see
  reflectd why                     why the last turn was judged as it was
  reflectd watch --exec notify-me  run a command for each verdict
  reflectd off --session ses_123   leave one session alone
  reflectd doctor                  what is wrong, and how to mend it

exit codes: 0 done, 1 not available, 2 wrong arguments or settings, 3 not running (status),
10 incomplete and 11 unscored (judge)
`reflectd VERB --help` says more about each."""


def build(verb: str) -> argparse.ArgumentParser:
    """The parser; only ``verb`` is built in full."""
    parser = argparse.ArgumentParser(
        prog="reflectd",
        description="Judges whether your coding agent is really done, and makes it go on if not.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", title="verbs")
    for name, (module, text) in VERBS.items():
        if name == verb:
            import_module(f"daemon.cli.{module}").add_parser(verbs)
        elif VERBS.get(verb, ("",))[0] != module:
            verbs.add_parser(name, help=text, add_help=False)
    return parser


def main(argv: list[str]) -> int:
    """Run one command line; returns the exit code."""
    verb = next((a for a in argv if not a.startswith("-")), "")
    parser = build(verb)
    args = parser.parse_args(argv)
    if args.version:
        from daemon import __version__

        print(f"reflectd {__version__}")
        return 0
    if not args.verb:
        parser.print_help()
        return 0
    try:
        code: int = args.run(args)
    except UserError as e:
        print(f"reflectd: {e}", file=sys.stderr)
        return 2
    except ReflectdError as e:
        print(f"reflectd: {e}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return code


def entry() -> None:
    """``reflectd`` and ``python -m daemon``."""
    try:
        try:
            code = main(sys.argv[1:])
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        import os

        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter complains at exit
        code = 0
    sys.exit(code)
