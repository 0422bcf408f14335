"""How the command line writes for people: in colours only on a terminal, and without control characters.

Texts of models, agents and files go through ``plain`` or ``short``, because a terminal would obey escape
sequences in them. ``NO_COLOR`` (any value) and a dumb terminal switch colours off. It uses the standard
library only.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any, Literal, TextIO

from ..core.policy import MONTH_EUR
from ..core.words import state_name
from . import terminal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

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
    """``paint("text", "red")`` colours the text when the stream is a terminal and colours are on.

    ``width`` is the terminal's, and 0 where there is none: then no line is wrapped.
    """

    def __init__(self, stream: TextIO | None = None, *, width: int | None = None) -> None:
        out = sys.stdout if stream is None else stream
        dumb = os.environ.get("TERM") == "dumb" or bool(os.environ.get("NO_COLOR"))
        self._on = out.isatty() and not dumb
        self.width = terminal.width(out) if width is None else width

    def __call__(self, text: str, *styles: Style) -> str:
        if not self._on or not styles or not text:
            return text
        return f"\x1b[{';'.join(_CODES[s] for s in styles)}m{text}\x1b[0m"

    def row(self, label: str, text: str, hang: str | None = None) -> list[str]:
        """``label`` and ``text``. A longer text goes on below the text's beginning, after ``hang`` if that is
        given.
        """
        below = " " * terminal.columns(label) if hang is None else hang
        return terminal.fold(label + text, self.width, below)

    def state(self, state: str, reason: str = "") -> str:
        style = STATES.get(state)
        return self(state_name(state, reason), style) if style else short(state, 40)


def plain(text: object) -> str:
    """Lines of a foreign text, in which a terminal obeys nothing."""
    return str(text).translate(_LINES)


def visible(text: object) -> str:
    """One line for a terminal, with control characters and invisible ones as escapes."""
    return "".join(c if c.isprintable() or c == "\t" else ascii(c)[1:-1] for c in str(text))


def short(text: object, width: int) -> str:
    """A foreign text as one line of at most ``width`` characters."""
    line = " ".join(str(text)[: width * 4].translate(_LINES).split())
    return line if len(line) <= width else line[: width - 1] + "…"


def severity(of: object, before: str = " ") -> str:
    """A verdict's severity for a person, after ``before``; "" where nothing is missing."""
    shown = short(of or "", 10)
    return "" if shown in {"", "NONE"} else before + shown


def waiting(session: Mapping[str, object]) -> str:
    """The things that a session's turn waits for before it is judged, in words; empty when there are none.

    ``session``: as the daemon lists it.
    """
    names = session.get("waits_for")
    shown = ", ".join(f"`{short(name, 60)}`" for name in names[:3]) if isinstance(names, list) else ""
    return f"waits for {shown} in the background" if shown else ""


def first_line(text: object) -> str:
    return next((line.strip() for line in str(text).splitlines() if line.strip()), "")


def indented(text: object, by: str, width: int) -> list[str]:
    return [part for line in plain(text).splitlines() for part in terminal.fold(f"{by}{line}", width, by)]


def count(number: int, one: str, many: str = "") -> str:
    """A number with its noun: ``1 round``, ``2 rounds``."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def times(number: int) -> str:
    """``once``, ``2 times``."""
    return "once" if number == 1 else f"{number} times"


def place(folder: object) -> str:
    """A folder for a person: below the home folder it begins with ``~``."""
    home, path = os.path.expanduser("~"), short(folder, 400)  # noqa: PTH111 - pathlib raises without a home
    return f"~{path[len(home) :]}" if path == home or path.startswith(f"{home}/") else path


def money(cost: float | None) -> str:
    """An amount in USD, with four digits when it is below one; None is unknown."""
    if cost is None:
        return "unknown cost"
    return f"{cost:.2f} USD" if cost >= 1 or cost == 0 else f"{cost:.4f} USD"


def dear(month: Mapping[str, Any]) -> str:
    """That a month is expected to cost more than ``MONTH_EUR``, in a few words; else empty."""
    over = f"more than {MONTH_EUR:.2f} {month['currency']}"
    return over if month["expected"] > MONTH_EUR else ""


def span(seconds: float) -> str:
    """A length of time in its two largest units."""
    minutes, s = divmod(max(0, int(seconds)), 60)
    hours, m = divmod(minutes, 60)
    days, h = divmod(hours, 24)
    return f"{days} d {h} h" if days else f"{h} h {m} min" if h else f"{m} min {s} s" if m else f"{s} s"


def ago(ms: float, now_ms: float) -> str:
    """How long before ``now_ms`` that was, in its largest unit. Both are epoch ms."""
    seconds = (now_ms - ms) / 1000
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return "just now"


def clock(ms: float) -> str:
    """Local time of an epoch in ms; with the date when it is not today's."""
    try:
        then, today = time.localtime(ms / 1000), time.localtime()
    except (OverflowError, ValueError, OSError):
        return "?"
    return time.strftime("%H:%M:%S" if then[:3] == today[:3] else "%Y-%m-%d %H:%M:%S", then)


def standstill(found: Mapping[str, Any]) -> str:
    """Why nothing old is deleted, since when and until when: one of the ``standstill`` of the status."""
    days = count(round(abs(found["off_ms"]) / 86_400_000), "day")
    ahead = f"went {days} ahead, or no daemon ran for so long"
    why = ahead if found["off_ms"] > 0 else f"went {days} back"
    since, until = clock(found["since"]), clock(found["until"])
    return (
        f"no old {found['what']} are deleted, since {since} until {until}: the clock {why} (`reflectd prune`)"
    )


def table(rows: Sequence[Sequence[str]], *, right: Iterable[int] = ()) -> list[str]:
    """Rows with columns as wide as their widest cell. The columns in ``right`` are aligned to the right."""
    widths = [max(terminal.columns(row[i]) for row in rows) for i in range(len(rows[0]))] if rows else []
    numbers = set(right)

    def cell(i: int, text: str) -> str:
        blanks = " " * (widths[i] - terminal.columns(text))
        return blanks + text if i in numbers else text + blanks

    return ["  ".join(cell(i, text) for i, text in enumerate(row)).rstrip() for row in rows]


def print_json(value: object, *, line: bool = False) -> None:
    """One JSON document, readable, or on one ``line``. A name that is no UTF-8 is escaped, as JSON allows."""
    text = json.dumps(value, indent=None if line else 1, ensure_ascii=False)
    print(text.encode("utf-8", "backslashreplace").decode(), flush=line)
