"""Output for the person's terminal: lines are wrapped at its width, and written whole into a pipe or a file.

Below that: questions in plain lines, and the progress of a long command. The terminal is never put into
another mode, so it is as before when a command is ended.
"""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from typing import TYPE_CHECKING, Final, Self, TextIO

from msgspec import Struct

from ..core.errors import UserError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Sequence

NARROWEST = 16  # columns of text beside a hanging indent, however narrow the terminal is
NARROWEST_TEXT = 30  # columns beside a label; where there is less room, the text goes on below the label
_STYLE = re.compile(r"\x1b\[[\d;]*m")
_LABEL = re.compile(r" *+\S(?:\S| (?! ))*+ {2,}+(?=\S)")


def attended() -> bool:
    """Says whether a person sits there who can answer. A shell that an agent runs is no terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def width(stream: TextIO) -> int:
    """The columns of the terminal that the stream is; 0 when it is none, so that nothing is wrapped."""
    import shutil  # here, as what only a terminal needs, so that a pipe starts faster

    return shutil.get_terminal_size().columns if stream.isatty() else 0


def columns(text: str) -> int:
    """How many columns the text takes. Colours take none, wide characters two."""
    bare = _STYLE.sub("", text)
    return len(bare) if bare.isascii() else sum(map(_columns, bare))


def _columns(c: str) -> int:
    if unicodedata.category(c) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(c) in {"W", "F"} else 1


def fold(text: str, limit: int, hang: str = "") -> list[str]:
    """One line as lines of at most ``limit`` columns, broken between words; 0 breaks nothing. Each line but
    the first begins with ``hang``. A word that is longer has a line for itself: it may be a path, to be
    copied.
    """
    if not limit or columns(text) <= limit:
        return [text]
    indent = columns(hang)
    limit = max(limit, indent + NARROWEST)
    lines, line, used = list[str](), "", 0
    for piece in _pieces(text, limit - indent):
        size = columns(piece)
        if used + size > limit and line.strip() and line != hang:
            lines.append(line.rstrip())
            line, used = hang, indent
        if not (piece.isspace() and line == hang and lines):
            line, used = line + piece, used + size
    return [*lines, line] if line.strip() else lines


def _pieces(text: str, room: int) -> Iterator[str]:
    """Words, and the blanks between them; a command in backticks is one word where it fits into a line."""
    for piece in re.findall(r" +|`[^`\n]{1,60}`[^ ]*|[^ ]+", text):
        whole = columns(piece) <= room or piece[0] != "`"
        yield from [piece] if whole else re.findall(r" +|[^ ]+", piece)


def beginning(text: str, room: int) -> str:
    """As much of a text without colours as fits into ``room`` columns, at least one character."""
    used = 0
    for end, c in enumerate(text):
        used += _columns(c)
        if used > room and end:
            return text[:end]
    return text


def hang(line: str, limit: int) -> str:
    """The beginning of the next line, when this one is wrapped: the text goes on below the text of ``label
    text``, and more indented below an indented line.
    """
    label = _LABEL.match(line)
    if label and label.end() <= limit - NARROWEST_TEXT:
        return " " * label.end()
    return " " * (len(line) - len(line.lstrip()) + 4) if line.startswith(" ") else ""


def say(text: str, to: TextIO | None = None) -> None:
    """Print lines for a person, wrapped at the terminal's width, and at once. Into a pipe they are whole."""
    stream = sys.stdout if to is None else to
    limit = width(stream)
    for line in text.split("\n"):
        for part in fold(line, limit, hang(line, limit) or "  "):
            print(part, file=stream)
    stream.flush()


def show(lines: Iterable[str]) -> None:
    print("\n".join(lines))


# --- questions ----------------------------------------------------------------------------------------------


class Choice(Struct, frozen=True):
    """An answer to choose. ``key``: the letter that stands for it. ``note``: what it means."""

    key: str
    label: str
    note: str = ""


def choose(choices: Sequence[Choice], enter: str) -> str:
    """The key of the choice. ``enter``: the one that Enter alone means."""
    wide = max(columns(choice.label) for choice in choices)
    for choice in choices:
        say(f"  {choice.key}  {choice.label:<{wide}}  {choice.note}".rstrip())
    keys = [choice.key for choice in choices]
    while True:
        answer = entered(f"Letter (Enter is {enter}): ").lower()
        if not answer or answer in keys:
            return answer or enter
        say(f"Type one of {', '.join(keys)}.")


def entered(question: str) -> str:
    """The typed text. Bytes outside the terminal's encoding count as nothing."""
    import termios

    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    try:
        return input(question).strip()
    except UnicodeDecodeError:
        return ""


UNTRUSTED = "there is no terminal to ask on: look with --show, then add --yes. Nothing was trusted"


def agreed(args: argparse.Namespace, question: str, refusal: str = UNTRUSTED) -> bool:
    """Says whether the person says yes, or said ``--yes``. Raises ``UserError`` with ``refusal`` without a
    terminal.
    """
    if args.yes:
        return True
    if args.json:
        raise UserError(refusal)
    return asked(question, refusal)


def asked(question: str, refusal: str) -> bool:
    """Says whether the person says yes; the end of input is a no. Raises ``UserError`` with ``refusal``
    without a terminal.
    """
    if not attended():
        raise UserError(refusal)
    try:
        answer = input(f"{question} [y/N] ")
    except EOFError:
        print()
        return False
    return answer.strip().lower() in {"y", "yes"}


def insisted(question: str) -> bool:
    """Says whether the person says yes, asked until the answer is one; Enter is no. Raises ``EOFError`` and
    ``KeyboardInterrupt``.
    """
    while True:
        answer = input(question).strip().lower()
        if answer in {"", "n", "no", "y", "yes"}:
            return answer in {"y", "yes"}
        say("Type y or n.")


# --- how far a long command is ------------------------------------------------------------------------------

BAR: Final = 24  # of the bar
TEXT: Final = 200


class Progress:
    """A bar on a terminal, how many of all are done, and a few words. It never takes a second line, and is
    gone at the end of the block.
    """

    def __init__(self, total: int, stream: TextIO | None = None) -> None:
        self._out = stream or sys.stderr
        self._total = total
        self._on = self._out.isatty() and os.environ.get("TERM") != "dumb"

    def show(self, done: int, text: str) -> None:
        if self._on and self._total:
            full = BAR * done // self._total
            bar = "█" * full + "░" * (BAR - full)
            room = max(width(self._out) - 1, BAR)
            line = f"{bar} {done}/{self._total} {' '.join(text.split())[:TEXT]}"
            self._out.write(f"\r\x1b[K{beginning(line, room)}")
            self._out.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._on:
            self._out.write("\r\x1b[K")
            self._out.flush()
