"""``reflectd logs``: the end of the log of a daemon that runs in the background.

Reads the log file and what was rotated away; where systemd runs the daemon, its journal. A daemon in the
foreground logs to its terminal, which this verb can't read. Exit codes: 0 done · 1 there is no log ·
2 wrong arguments · 130 ended by Ctrl-C.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import deque
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TextIO

from ...core.errors import Unavailable
from ..moments import moment
from ..render import Paint
from ..settings import add_flags, look
from ..terminal import add_flag, say, show
from .log_lines import LEVELS, Record, Wanted, read

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from pathlib import Path

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
    parser = verbs.add_parser(
        "logs",
        help="show the daemon's log",
        epilog=EPILOG,
    )
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
    parser.add_argument("--json", action="store_true", help="print each line as a JSON object")
    add_flag(parser)
    add_flags(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print what is wanted of the log, then what comes with ``--follow``."""
    _, where = look(args)
    wanted = Wanted(args.level, args.session, moment(args.since) / 1000 if args.since else 0.0)
    given = args.lines if args.lines is not None else MAX_LINES if args.since else LINES
    last: deque[Record] = deque(maxlen=max(0, min(given, MAX_LINES)))
    paint = Paint()
    from ...service import manager

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
        """What is written already, oldest first."""
        for name in ROTATED:
            older = self._path.with_name(name)
            if older.exists():
                yield from map(read, self._open(older))
        yield from map(read, self._file)

    def coming(self) -> Iterator[Record]:
        """What is written from now on; never ends."""
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
    """What systemd's journal has of the service. Raises ``Unavailable`` when it can't be asked."""

    def __init__(self) -> None:
        self._after: list[str] = ["--lines=0"]

    def there(self, most: int | None) -> Iterator[Record]:
        """What is written already, oldest first; the last ``most`` of it."""
        return self._entries(*([] if most is None else [f"--lines={most}"]))

    def coming(self) -> Iterator[Record]:
        """What is written from now on; ends when ``journalctl`` does."""
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
