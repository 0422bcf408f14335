"""``reflectd logs``: the end of the log of a daemon that runs in the background.

Reads the log file and what was rotated away; where systemd runs the daemon, its journal. A daemon in the
foreground logs to its terminal, which this verb can't read.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections import deque
from contextlib import ExitStack
from datetime import datetime
from typing import TYPE_CHECKING, Any, TextIO

from msgspec import Struct

from ...core.errors import Unavailable
from ...service import manager
from ..moments import moment
from ..render import Paint, clock, plain
from ..settings import add_flags, look
from ..terminal import say, show

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from pathlib import Path

    from ..render import Style

# Lines of the daemon's log: read as records, chosen by level, session and age, and written for people.
#
# A line has the form that ``daemon.log`` gives it: logfmt. Any other line belongs to the record before it;
# where none was before, it is a record of its own, without level and time.
# Pure, apart from the local time zone.

LEVELS = ("debug", "info", "warning", "error", "critical")
STYLES: dict[str, Style] = {"debug": "dim", "warning": "yellow", "error": "red", "critical": "red"}
_HEAD = re.compile(r"\A(?:timestamp=(?P<at>\S{1,40}) )?level=(?P<level>\w{1,20}) (?P<rest>.*)", re.DOTALL)
_PAIR = re.compile(r'(?<!\S)([^\s="]{1,64}+)=("(?:[^"\\]|\\.)*+"?|\S*+)')
_SESSION = re.compile(r'(?:^| )session="?([^\s"]*)')
_ESCAPED = re.compile(r"\\(.)")


class Record(Struct, frozen=True):
    """One entry of the log. ``at``: epoch seconds, 0 when unknown. ``level``: empty for a line of another
    form. ``text``: all but time and level, as it was written.
    """

    at: float
    level: str
    text: str

    @property
    def session(self) -> str:
        """The session that it is about; empty for none."""
        found = _SESSION.search(self.text)
        return found[1] if found else ""

    def fields(self) -> dict[str, str]:
        """Every name of the line with its value; of other forms only ``event``."""
        if not self.level:
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
    if found := _HEAD.fullmatch(text):
        return Record(_epoch(found["at"]) or at, found["level"], found["rest"])
    return Record(at, "", text)


class Wanted:
    """Which records are shown: at least as urgent as ``level``, of a session whose id begins with
    ``session``, and not older than ``since`` (epoch seconds). Empty and 0 choose all. A line of another form
    goes with the record before it.
    """

    def __init__(self, level: str, session: str, since: float) -> None:
        self._levels = LEVELS[LEVELS.index(level) :] if level else LEVELS
        self._session, self._since = session, since
        self.all = self._last = not (level or session or since)

    def __call__(self, record: Record) -> bool:
        """Says whether it is wanted. Records must be asked for in their order."""
        if record.level and not self.all:
            fits = record.level in self._levels and record.at >= self._since
            self._last = fits and record.session.startswith(self._session)
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


LINES = 50
MAX_LINES = 1_000_000
POLL_S = 0.2
ROTATED = ("reflectd.log.2", "reflectd.log.1")
EPILOG = """examples:
  reflectd logs                    the last 50 lines, in local time
  reflectd logs -f --level warning what is wrong, as it comes
  reflectd logs --since 22:00 --session ses_58c3
  reflectd logs --json | jq -r .event

exit codes: 0 done, 1 there is no log, 2 wrong arguments, 130 ended by Ctrl-C"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the verb."""
    parser = verbs.add_parser("logs", epilog=EPILOG)
    parser.add_argument(
        "-n", "--lines", type=int, metavar="N", help="the last N lines (50; with --since all of them)"
    )
    parser.add_argument("-f", "--follow", action="store_true", help="go on as lines come, until Ctrl-C")
    parser.add_argument("--level", choices=LEVELS, default="", help="only lines that are at least so urgent")
    parser.add_argument(
        "--since", default="", metavar="WHEN", help="only lines since then: 30min, 2h, 3d, 22:00, 2026-11-22"
    )
    parser.add_argument(
        "--session", default="", metavar="SESSION", help="only lines about one, by (the beginning of) its id"
    )
    add_flags(parser, run, json="print each line as a JSON object", pager=True)


def run(args: argparse.Namespace) -> int:
    """Print what is wanted of the log, then what comes with ``--follow``."""
    _, where = look(args)
    wanted = Wanted(args.level, args.session, moment(args.since) / 1000 if args.since else 0.0)
    given = args.lines if args.lines is not None else MAX_LINES if args.since else LINES
    last: deque[Record] = deque(maxlen=max(0, min(given, MAX_LINES)))
    paint = Paint()
    with ExitStack() as stack:
        held = manager.holding(os.environ, where) is not None
        source: Journal | File = Journal() if held else File(where.log_file, stack)
        last.extend(r for r in source.there(last.maxlen if wanted.all else None) if wanted(r))
        lines = [line for r in last for line in _told(r, paint, as_json=args.json)]
        if lines:
            show(lines, pager=not (args.no_pager or args.follow), at_end=True)
        elif not (args.follow or wanted.all):
            say("reflectd: no line of the log is of that level, time and session", sys.stderr)
        if args.follow:
            for record in source.coming():
                if wanted(record):
                    print("\n".join(_told(record, paint, as_json=args.json)), flush=True)
    return 0


def _told(record: Record, paint: Paint, *, as_json: bool) -> list[str]:
    return [json.dumps(record.as_json(), ensure_ascii=False)] if as_json else record.lines(paint)


class File:
    """The log file, and those that were rotated away. Raises ``Unavailable`` when there is none."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        if not path.exists():
            raise Unavailable(
                f"there is no log at {path}; `reflectd start` writes one "
                "(`reflectd serve` logs to its terminal)"
            )
        self._path, self._stack = path, stack
        self._file = self._open(path)

    def _open(self, path: Path) -> TextIO:
        return self._stack.enter_context(path.open(encoding="utf-8", errors="replace"))

    def there(self, _most: int | None) -> Iterator[Record]:
        """The written lines, oldest first."""
        for name in ROTATED:
            older = self._path.with_name(name)
            if older.exists():
                yield from map(read, self._open(older))
        yield from map(read, self._file)

    def coming(self) -> Iterator[Record]:
        """The lines from now on; never ends."""
        while True:
            line = self._file.readline()
            if line:
                yield read(line)
            elif self._path.exists() and self._path.stat().st_ino != os.fstat(self._file.fileno()).st_ino:
                self._file.close()
                self._file = self._open(self._path)  # rotated
            else:
                time.sleep(POLL_S)


class Journal:
    """The service's lines in systemd's journal. Raises ``Unavailable`` when it can't be asked."""

    def __init__(self) -> None:
        self._after: list[str] = ["--lines=0"]

    def there(self, most: int | None) -> Iterator[Record]:
        """The written lines, oldest first; the last ``most`` of them."""
        return self._entries(*([] if most is None else [f"--lines={most}"]))

    def coming(self) -> Iterator[Record]:
        """The lines from now on; ends when ``journalctl`` does."""
        return self._entries("--follow", *self._after)

    def _entries(self, *flags: str) -> Iterator[Record]:
        command = ["journalctl", "--user", "--no-pager", "--unit=reflectd.service", "--output=json", *flags]
        try:
            process = subprocess.Popen(  # noqa: S603 - constant words, a number and the journal's own cursor
                command, stdout=subprocess.PIPE, text=True, errors="replace"
            )
        except OSError as error:
            raise Unavailable(f"journalctl cannot be started: {error.strerror}") from None
        with process:
            for line in process.stdout or ():
                entry: dict[str, Any] = json.loads(line)
                self._after = ["--no-tail", f"--after-cursor={entry['__CURSOR']}"]
                said = entry.get("MESSAGE") or ""  # a list of bytes when it is no UTF-8
                text = said if isinstance(said, str) else bytes(said).decode("utf-8", "replace")
                yield read(text, int(entry["__REALTIME_TIMESTAMP"]) / 1_000_000)
