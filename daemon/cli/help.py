"""The parser of the command line and of its verbs: its help fits the terminal, also what we laid out by hand.

Lines of a paragraph flow together. An example that is too long goes on below what it explains.
Wrong arguments are an error like any other, with a guess at what was meant.
"""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Any, NoReturn

from ..core.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

_CHOICE = re.compile(r"invalid choice: '?(.{0,200}?)'? \(choose from ([^)]{0,4000}+)", re.DOTALL)
_HELP = frozenset({"-h", "--help"})
_NUMBER = re.compile(r"invalid int value: (.+)", re.DOTALL)


class WrongArguments(UserError):
    """What argparse refuses; ``usage`` is that of the verb."""

    def __init__(self, message: str, usage: str) -> None:
        super().__init__(message)
        self.usage = usage


class Parser(argparse.ArgumentParser):
    """As argparse has it, with a help that is as wide as the terminal, and 80 columns without one. Our
    examples stay as they are laid out. It raises ``WrongArguments`` where argparse would print and exit.
    ``bare``: the action below this verb that is meant where none of ``actions`` (or no word) is named.
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
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return found, rest

    def _names(self, word: str) -> bool:
        return word in self._of if self._of else not word.startswith("-")

    def error(self, message: str) -> NoReturn:
        """Refuse the arguments."""
        message = _NUMBER.sub(r"\1 is no whole number", message)
        if (found := _CHOICE.search(message)) is not None:
            message += nearest(found[1], re.findall(r"[\w-]+", found[2]))
        raise WrongArguments(message, self.format_usage())

    def format_help(self) -> str:
        """The help, with a line end."""
        from shutil import get_terminal_size

        from .terminal import fold, hang

        limit = get_terminal_size().columns
        lines = _flowing(super().format_help().split("\n"))
        return "\n".join(part for line in lines for part in fold(line, limit, hang(line, limit)))


def _flowing(lines: list[str]) -> list[str]:
    """The lines, with those of a paragraph as one. Headings, indented and empty lines stay as they are."""
    found: list[str] = []
    for line in lines:
        if found and _is_text(line) and _is_text(found[-1]) and not found[-1].endswith(":"):
            found[-1] += f" {line}"
        else:
            found.append(line)
    return found


def _is_text(line: str) -> bool:
    return bool(line) and not line.startswith(" ")


def nearest(word: str, known: Iterable[str]) -> str:
    """A question that names the one of ``known`` that is like ``word``; "" when none is."""
    from difflib import get_close_matches

    found = get_close_matches(word[:60].lower(), list(known), 1)
    return f", did you mean `{found[0]}`?" if found else ""
