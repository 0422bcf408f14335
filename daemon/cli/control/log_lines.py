"""Lines of the daemon's log: read as records, chosen by level, session and age, and written for people.

A line has the form that ``daemon.log`` gives it: logfmt, or columns when it debugs. Any other line belongs to
the record before it; where none was before, it is a record of its own, without level and time. Pure, apart
from the local time zone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from ..render import clock, plain

if TYPE_CHECKING:
    from ..render import Paint, Style

LEVELS = ("debug", "info", "warning", "error", "critical")
STYLES: dict[str, Style] = {"debug": "dim", "warning": "yellow", "error": "red", "critical": "red"}
_HEAD = re.compile(r"\A(?:timestamp=(?P<at>\S{1,40}) )?level=(?P<level>\w{1,20}) (?P<rest>.*)", re.DOTALL)
_COLUMNS = re.compile(r"\A(?P<at>\d{4}-\S{1,40}Z) \[(?P<level>\w{1,20}) {0,20}\] (?P<rest>.*)", re.DOTALL)
_PAIR = re.compile(r'(?<!\S)([^\s="]{1,64}+)=("(?:[^"\\]|\\.)*+"?|\S*+)')
_SESSION = re.compile(r'(?:^| )session="?([^\s"]*)')
_ESCAPED = re.compile(r"\\(.)")


@dataclass(frozen=True, slots=True)
class Record:
    """One entry of the log. ``at``: epoch seconds, 0 when unknown. ``level``: empty for a line of another
    form. ``text``: all but time and level, as it was written.
    """

    at: float
    level: str
    text: str
    columns: bool = False

    @property
    def session(self) -> str:
        """The session that it is about; empty for none."""
        found = _SESSION.search(self.text)
        return found[1] if found else ""

    def fields(self) -> dict[str, str]:
        """Every name of the line with its value; of other forms only ``event``."""
        if not self.level or self.columns:
            return {"event": self.text}
        return {key: _value(text) for key, text in _PAIR.findall(self.text)}

    def as_json(self) -> dict[str, str]:
        """For ``--json``: the time is UTC."""
        at = datetime.fromtimestamp(self.at).astimezone().isoformat() if self.at else ""
        return {k: v for k, v in (("timestamp", at), ("level", self.level)) if v} | self.fields()

    def lines(self, paint: Paint) -> list[str]:
        """For a person: local time, level, part, what it says, and more; a traceback below."""
        if not self.level:
            return [plain(self.text)]
        fields = self.fields()
        part, event = fields.pop("part", ""), fields.pop("event", "")
        exception = fields.pop("exception", "")
        more = "".join(f" {key}={_quoted(value)}" for key, value in fields.items())
        said = f"{part}: {event}" if part else event
        style = STYLES.get(self.level)
        level = paint(f"{self.level:7}", style) if style else f"{self.level:7}"
        head = f"{paint(clock(self.at * 1000), 'dim')} {level} "
        below = exception.splitlines()
        return [
            *paint.row(head, f"{plain(said)}{paint(plain(more), 'dim')}", " " * 9),
            *(line for x in below for line in paint.row(" " * 9, plain(x))),
        ]


def read(line: str, at: float = 0.0) -> Record:
    """A line of the log. ``at``: when it was written, where the line does not tell (systemd's journal)."""
    text = line.rstrip("\n")
    for form in (_HEAD, _COLUMNS):
        if found := form.fullmatch(text):
            return Record(_epoch(found["at"]) or at, found["level"], found["rest"], form is _COLUMNS)
    return Record(at, "", text)


class Wanted:
    """Which records are shown: at least as urgent as ``level``, of a session whose id begins with
    ``session``, and not older than ``since`` (epoch seconds). Empty and 0 choose all.
    """

    def __init__(self, level: str, session: str, since: float) -> None:
        self._levels = LEVELS[LEVELS.index(level) :] if level else LEVELS
        self._session, self._since = session, since
        self._all = not (level or session or since)
        self._last = self._all

    @property
    def all(self) -> bool:
        """Whether nothing is left out."""
        return self._all

    def __call__(self, record: Record) -> bool:
        """Whether it is wanted. Records must be asked for in their order."""
        if record.level:
            self._last = self._all or (
                record.level in self._levels
                and record.at >= self._since
                and record.session.startswith(self._session)
            )
        return self._last


def _epoch(stamp: str | None) -> float:
    try:
        return datetime.fromisoformat(stamp).timestamp() if stamp else 0.0
    except (ValueError, OverflowError, OSError):
        return 0.0


def _value(text: str) -> str:
    """A value of logfmt as it was before it was written."""
    if text.startswith('"'):
        return _ESCAPED.sub(lambda m: "\n" if m[1] == "n" else m[1], text[1:-1])
    return text.replace("\\n", "\n").replace('\\"', '"')


def _quoted(value: str) -> str:
    return f'"{value}"' if not value or set(value) & {" ", "=", "\n"} else value
