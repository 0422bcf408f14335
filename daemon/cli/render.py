"""How the command line writes for people: colours on a terminal only, no control character of anyone else's.

What models, agents and files say is shown through ``plain`` or ``short``: a terminal would obey its escape
sequences. ``NO_COLOR`` (any value) and a dumb terminal switch colours off. Standard library only.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import TYPE_CHECKING, Literal, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Style = Literal["bold", "dim", "red", "green", "yellow", "blue"]
_CODES: dict[Style, str] = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34"}
_SHOWN = {c: " " if chr(c) in "\r\v\f\t" else f"\\x{c:02x}" for c in (*range(32), *range(127, 160))}
_SHOWN |= dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), "�")  # they reorder a line
_LINES = {k: v for k, v in _SHOWN.items() if chr(k) != "\n"}

STATES: dict[str, Style] = {
    "complete": "green",
    "incomplete": "yellow",
    "awaiting_user": "blue",
    "stopped": "red",
    "error": "red",
    "unscored": "dim",
    "skipped": "dim",
    "judging": "dim",
}


class Paint:
    """``paint("text", "red")``: coloured when the stream is a terminal that wants it."""

    def __init__(self, stream: TextIO | None = None) -> None:
        out = sys.stdout if stream is None else stream
        dumb = os.environ.get("TERM") == "dumb" or bool(os.environ.get("NO_COLOR"))
        self._on = out.isatty() and not dumb

    def __call__(self, text: str, *styles: Style) -> str:
        """The text, in these styles."""
        if not self._on or not styles or not text:
            return text
        return f"\x1b[{';'.join(_CODES[s] for s in styles)}m{text}\x1b[0m"

    def state(self, state: str) -> str:
        """A verdict's state in its colour."""
        style = STATES.get(state)
        return self(state, style) if style else short(state, 40)


def plain(text: object) -> str:
    """Lines of someone else's text, without what a terminal would obey."""
    return str(text).translate(_LINES)


def short(text: object, width: int) -> str:
    """One line of at most ``width`` characters."""
    line = " ".join(str(text)[: width * 4].translate(_LINES).split())
    return line if len(line) <= width else line[: width - 1] + "…"


def first_line(text: object) -> str:
    """The first line that says something."""
    return next((line.strip() for line in str(text).splitlines() if line.strip()), "")


def indented(text: object, by: str = "    ", *, limit: int = 0) -> list[str]:
    """The lines behind a margin; with ``limit`` characters the middle is left out and that is said."""
    shown = plain(text)
    if limit and len(shown) > limit:
        half = limit // 2
        left_out = len(shown) - 2 * half
        shown = f"{shown[:half]}\n[… {left_out:,} characters left out, --full shows them …]\n{shown[-half:]}"
    return [f"{by}{line}" for line in shown.splitlines()]


def money(cost: float | None) -> str:
    """USD with as many digits as say something; None is unknown."""
    if cost is None:
        return "unknown cost"
    return f"{cost:.2f} USD" if cost >= 1 or cost == 0 else f"{cost:.4f} USD"


def span(seconds: float) -> str:
    """A length of time in its two largest units."""
    minutes, s = divmod(max(0, int(seconds)), 60)
    hours, m = divmod(minutes, 60)
    days, h = divmod(hours, 24)
    return f"{days} d {h} h" if days else f"{h} h {m} min" if h else f"{m} min {s} s" if m else f"{s} s"


def clock(ms: float) -> str:
    """Local time of an epoch in ms; with the date when it is not today's."""
    try:
        then, today = time.localtime(ms / 1000), time.localtime()
    except (OverflowError, ValueError, OSError):
        return "?"
    return time.strftime("%H:%M:%S" if then[:3] == today[:3] else "%Y-%m-%d %H:%M:%S", then)


def table(rows: Sequence[Sequence[str]], *, right: Iterable[int] = ()) -> list[str]:
    """Columns as wide as they need to be; those in ``right`` end at the same place."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))] if rows else []
    numbers = set(right)
    return [
        "  ".join(
            c.rjust(w) if i in numbers else c.ljust(w)
            for i, (c, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def print_json(value: object) -> None:
    """One JSON document, readable."""
    print(json.dumps(value, indent=1, ensure_ascii=False))
