"""Runs one command line: finds the verb, imports its module and no other, and gives the exit code.

A failure is one line on stderr, or with ``--json`` an object ``{"error": …}`` on stdout: indented as every
answer, on one line where a verb prints a line for each answer. The exit codes are in docs/exit-codes.md.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from ..core.errors import ReflectdError, UserError, told
from .help import Parser, WrongArguments, nearest
from .verbs import BELOW, OLDER, USAGE, VERBS, page

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

HELP = frozenset({"help", "--help", "-h"})
VERSION = frozenset({"version", "--version", "-V"})
DAEMON = "`reflectd help VERB` says more about each. `reflectd start` is the same as `reflectd daemon start`."


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``daemon``, which alone explains the verbs below it."""
    lines = "\n".join(f"  {verb:8} {VERBS[verb][1]}" for verb in BELOW["daemon"])
    parser = verbs.add_parser("daemon", epilog=f"verbs:\n{lines}\n\n{DAEMON}")
    parser.add_argument("action", choices=BELOW["daemon"], metavar="VERB", help="what to do with the daemon")


def build(verb: str, known: Mapping[str, tuple[str, str]] = VERBS) -> Parser:
    """The parser of a verb."""
    parser = Parser(prog="reflectd")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    import_module(known[verb][0], __package__).add_parser(verbs)
    verbs.choices[verb].description = verbs.choices[verb].description or _sentence(known[verb][1])
    return parser


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def main(argv: list[str], known: Mapping[str, tuple[str, str]] = VERBS) -> int:
    """Run one command line; returns the exit code."""
    try:
        return _run(argv, known)
    except (ReflectdError, OSError) as e:
        if isinstance(e, BrokenPipeError):
            raise
        return _failed(e, argv)
    except KeyboardInterrupt:
        return 130


def _run(argv: list[str], known: Mapping[str, tuple[str, str]]) -> int:
    verb, rest = (argv[0], argv[1:]) if argv else ("help", [])
    if verb in VERSION:
        from .. import __version__

        print(f"reflectd {__version__}")
        return 0
    if verb in HELP:
        words = [word for word in rest if word not in HELP]
        if words:
            return _run([*words, "--help"], known)
        print(page(known))
        return 0
    if rest and rest[0] in BELOW.get(verb, ()):
        verb, rest = rest[0], rest[1:]
    verb, *rest = *OLDER.get(verb, (verb,)), *rest
    if verb.startswith("-"):
        raise WrongArguments(f"unrecognized arguments: {verb}", f"{USAGE}\n")
    if verb not in known:
        raise UserError(f"there is no verb {verb!r}{nearest(verb, known) or ';'} `reflectd help` lists all")
    args = build(verb, known).parse_args([verb, *rest])
    code: int = args.run(args)
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
