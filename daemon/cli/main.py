"""Runs one command line: finds the verb, imports its module and no other, and gives the exit code.

A failure is one line on stderr, or with ``--json`` an object ``{"error": …}`` on stdout: indented as every
answer, on one line where a verb prints a line for each answer. Wrong arguments are an error like any other,
with a guess at what was meant. The exit codes are in docs/exit-codes.md.
"""

from __future__ import annotations

import argparse
import re
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

from ..core.errors import ReflectdError, UserError, told
from .verbs import BELOW, OLDER, USAGE, VERBS, page

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence


HELP = frozenset({"help", "--help", "-h"})
VERSION = frozenset({"version", "--version", "-V"})
DAEMON = "`reflectd help VERB` says more about each. `reflectd start` is the same as `reflectd daemon start`."


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``daemon``, which alone explains the verbs below it."""
    lines = "\n".join(f"  {verb:8} {VERBS[verb][1]}" for verb in BELOW["daemon"])
    parser = verbs.add_parser("daemon", epilog=f"verbs:\n{lines}\n\n{DAEMON}")
    parser.add_argument("action", choices=BELOW["daemon"], metavar="VERB", help="what to do with the daemon")


def build(verb: str, known: Mapping[str, tuple[str, str]] = VERBS) -> Parser:
    parser = Parser(prog="reflectd")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    import_module(known[verb][0], __package__).add_parser(verbs)
    verbs.choices[verb].description = verbs.choices[verb].description or _sentence(known[verb][1])
    return parser


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def main(argv: list[str], known: Mapping[str, tuple[str, str]] = VERBS) -> int:
    try:
        return _run(argv, known)
    except (ReflectdError, OSError) as e:
        if isinstance(e, BrokenPipeError):
            raise
        return failed(e, argv)
    except KeyboardInterrupt:
        return 130


def _run(argv: list[str], known: Mapping[str, tuple[str, str]]) -> int:
    verb, rest = (argv[0], argv[1:]) if argv else ("help", [])
    if verb in VERSION:
        from .. import __version__

        if "--json" in rest:
            from .render import print_json

            print_json({"version": __version__})
        else:
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


def failed(e: ReflectdError | OSError, argv: list[str]) -> int:
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


_CHOICE = re.compile(r"invalid choice: '?(.{0,200}?)'? \(choose from ([^)]{0,4000}+)", re.DOTALL)
_HELP = frozenset({"-h", "--help"})
_NUMBER = re.compile(r"invalid int value: (.+)", re.DOTALL)


class WrongArguments(UserError):
    """Arguments that argparse refuses; ``usage`` is that of the verb."""

    def __init__(self, message: str, usage: str) -> None:
        super().__init__(message)
        self.usage = usage


class Parser(argparse.ArgumentParser):
    """As argparse has it, with our examples as they are laid out. It raises ``WrongArguments`` where argparse
    would print and exit. ``bare``: the action below this verb that is meant where none of ``actions`` (or no
    word) is named.
    """

    def __init__(self, *args: Any, bare: str = "", actions: Collection[str] = (), **more: Any) -> None:  # noqa: ANN401 - argparse has many
        super().__init__(*args, **{"formatter_class": argparse.RawDescriptionHelpFormatter, **more})
        self._bare, self._of = bare, actions

    def parse_known_args(  # type: ignore[override] # argparse's own has overloads
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """As argparse has it, but the verb itself refuses what it does not know: argparse lets the outermost
        parser do that, whose usage does not help.
        """
        if self._bare and args is not None and not (args and (self._names(args[0]) or args[0] in _HELP)):
            args = [self._bare, *args]
        found, rest = super().parse_known_args(args, namespace)
        if rest:
            flags = [name for name in self._option_string_actions if name.startswith("--")]
            self.error(f"unrecognized arguments: {' '.join(rest)}{nearest(rest[0], flags)}")
        return found, rest

    def _names(self, word: str) -> bool:
        return word in self._of if self._of else not word.startswith("-")

    def error(self, message: str) -> NoReturn:
        message = _NUMBER.sub(r"\1 is no whole number", message)
        if (found := _CHOICE.search(message)) is not None:
            message += nearest(found[1], re.findall(r"[\w-]+", found[2]))
        raise WrongArguments(message, self.format_usage())

    def format_help(self) -> str:
        from shutil import get_terminal_size

        from .terminal import fold, hang

        limit, lines = get_terminal_size().columns, super().format_help().split("\n")
        return "\n".join(part for line in lines for part in fold(line, limit, hang(line, limit)))


def nearest(word: str, known: Iterable[str]) -> str:
    """A question that names the one of ``known`` that is like ``word``; "" when none is."""
    from difflib import get_close_matches

    found = get_close_matches(word[:60].lower(), list(known), 1)
    return f", did you mean `{found[0]}`?" if found else ""
