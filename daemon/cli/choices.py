"""Asks a person at a terminal for one of several choices, or for a text, in plain lines.

What was typed before a question is no answer to it, and Enter alone means the choice that the caller names.
The terminal is never put into another mode, so whoever ends the command finds it as it was. Raises
``KeyboardInterrupt`` for Ctrl-C, ``EOFError`` for Ctrl-D or when the terminal is gone.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .terminal import columns, say

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Choice:
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
    """What the person types. What is no text of the terminal's encoding counts as nothing."""
    import termios

    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    try:
        return input(question).strip()
    except UnicodeDecodeError:
        return ""
