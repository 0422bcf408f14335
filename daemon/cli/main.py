"""Runs one command line. Knows the verbs and the exit codes, and imports only the module of the verb that was
typed.

A failure is one line on stderr, or with ``--json`` an object ``{"error": …}`` on stdout: indented as every
answer, on one line where a verb prints a line for each answer. The exit codes are in docs/exit-codes.md.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from ..core.errors import ReflectdError, UserError, told
from .help import Parser, WrongArguments, nearest

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

VERBS: dict[str, tuple[str, str]] = {
    "serve": (".control.serve", "run the daemon in the foreground"),
    "start": (".control.start", "start the daemon in the background"),
    "stop": (".control.start", "stop the daemon"),
    "restart": (".control.start", "restart the daemon, after an upgrade or a change of settings"),
    "daemon": (".about", "start, stop or restart it, serve, service, logs"),
    "status": (".control.status", "is it running, and what does it see"),
    "line": (".control.line", "one line for prompts and status bars: where a session stands"),
    "why": (".verdicts.why", "why a session was judged as it was"),
    "history": (".verdicts.history", "what was judged: sessions and their rounds"),
    "dashboard": (".control.dashboard", "what happens, why, and what it costs, in your browser"),
    "watch": (".verdicts.watch", "verdicts as they come"),
    "cost": (".verdicts.cost", "what judging cost"),
    "doctor": (".doctor.doctor", "what is wrong with this installation, and how to mend it"),
    "logs": (".control.logs", "show the daemon's log"),
    "prune": (".control.prune", "what is too old to keep, and that the clock is right after a jump"),
    "service": (".control.service", "run the daemon as a service (systemd, launchd)"),
    "setup": (".setup.setup", "connect a coding agent to reflectd"),
    "uninstall": (".setup.uninstall", "remove all that reflectd left on this machine"),
    "on": (".control.switch", "judge this project (or one session) again"),
    "off": (".control.switch", "leave this project (or one session) alone"),
    "trust": (".setup.trust", "let a project's own prompts be used, after looking at them"),
    "judge": (".verdicts.judge", "judge a saved case or a session, without a daemon"),
    "backtest": (".backtest.backtest", "what reflectd would have done in your past sessions"),
    "dispute": (".verdicts.case", "say that a verdict was wrong, and keep its case as a test"),
    "case": (".verdicts.case", "keep cases, label, list or remove them"),
    "learned": (".learned.learned", "all that was learned about this project: show, approve, take back"),
    "playbook": (".learned.learned", "what agents learned about this project: its points"),
    "memory": (".learned.learned", "lessons from tasks that ended badly"),
    "reflect": (".reflect.reflect", "what you keep correcting in past sessions, as rules to approve"),
    "mcp": (".mcp", "serve the memory to MCP clients, on stdin and stdout"),
    "config": (".setup.config", "show every setting, its value and where it comes from"),
    "examples": (".setup.examples", "scripts that tell you of verdicts: speech, Telegram, desktop"),
    "completion": (".setup.completion", "completion of verbs, flags and session ids for your shell"),
    "help": (".about", "explain reflectd, or one verb"),
    "version": (".about", "print the version"),
}
"""Verb → (module, its line in `--help`). The module has ``add_parser``. A leading dot: in this package."""

DAEMON = ("start", "stop", "restart", "serve", "service", "logs")
"""Verbs below ``daemon``. Typed without it they do the same; the list of verbs shows only ``daemon``."""

EPILOG = """examples:
  reflectd setup opencode          add the plugin line to opencode's settings
  reflectd setup claude-code       load the plugin in Claude Code
  reflectd status                  is it running, and what does it see
  reflectd why                     why the last turn was judged as it was
  reflectd watch --exec notify-me  run a command for each verdict
  reflectd off --session ses_123   leave one session alone
  reflectd doctor                  what is wrong, and how to mend it

exit codes: 0 done, 1 not available, 2 wrong arguments or settings, 3 not running (status),
10 incomplete and 11 unscored (judge).
`reflectd help VERB` says more about each."""


def build(verb: str, known: Mapping[str, tuple[str, str]] = VERBS) -> argparse.ArgumentParser:
    """The parser. Only the parser of ``verb`` has its flags; of the others the names and help texts are
    known.
    """
    parser = Parser(
        prog="reflectd",
        description="Judges whether your coding agent is really done, and makes it go on if not.",
        epilog=EPILOG,
    )
    parser.add_argument("--version", "-V", action="store_true", help="print the version and exit")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", title="verbs")
    for name, (module, text) in known.items():
        if name == verb:
            import_module(module, __package__).add_parser(verbs)
        elif known.get(verb, ("",))[0] != module and name not in DAEMON:
            verbs.add_parser(name, help=text, add_help=False)
    return parser


def main(argv: list[str], known: Mapping[str, tuple[str, str]] = VERBS) -> int:
    """Run one command line; returns the exit code."""
    if argv[:1] == ["daemon"] and argv[1:2] and argv[1] in DAEMON:
        argv = argv[1:]
    verb = next((a for a in argv if not a.startswith("-")), "")
    try:
        if verb and verb not in known:
            raise UserError(
                f"there is no verb {verb!r}{nearest(verb, known) or ';'} `reflectd help` lists all"
            )
        parser = build(verb, known)
        args = parser.parse_args(argv)
        if args.version:
            from .. import __version__

            print(f"reflectd {__version__}")
            return 0
        if not args.verb:
            parser.print_help()
            return 0
        code: int = args.run(args)
    except (ReflectdError, OSError) as e:
        if isinstance(e, BrokenPipeError):
            raise
        return _failed(e, argv)
    except KeyboardInterrupt:
        return 130
    return code


def _failed(e: ReflectdError | OSError, argv: list[str]) -> int:
    """Say what failed, as JSON where that was asked for. Returns the exit code."""
    text = told(e)
    if "--json" in argv:
        from .render import print_json

        print_json({"error": text}, line="watch" in argv[:1])
    else:
        from .render import plain
        from .terminal import say

        if isinstance(e, WrongArguments):
            print(e.usage, end="", file=sys.stderr)
        say(f"reflectd: {plain(text)}", sys.stderr)
    return 2 if isinstance(e, UserError) else 1
