"""How far a long command is: one line on stderr, drawn over again. Where that is no terminal, nothing."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

from . import terminal
from .render import short

if TYPE_CHECKING:
    from typing import TextIO

WIDTH: Final = 24  # of the bar
TEXT: Final = 200


class Progress:
    """A bar, how many of all are done, and a few words. It never takes a second line."""

    def __init__(self, total: int, stream: TextIO | None = None) -> None:
        self._out = stream or sys.stderr
        self._total = total
        self._on = self._out.isatty() and os.environ.get("TERM") != "dumb"

    def show(self, done: int, text: str) -> None:
        """Draw it. ``text``: what is done now, or what came of it so far."""
        if self._on and self._total:
            full = WIDTH * done // self._total
            bar = "█" * full + "░" * (WIDTH - full)
            room = max(terminal.width(self._out) - 1, WIDTH)
            line = f"{bar} {done}/{self._total} {short(text, TEXT)}"
            self._out.write(f"\r\x1b[K{terminal.beginning(line, room)}")
            self._out.flush()

    def clear(self) -> None:
        """Remove it, so that a line can be printed in its place."""
        if self._on:
            self._out.write("\r\x1b[K")
            self._out.flush()
