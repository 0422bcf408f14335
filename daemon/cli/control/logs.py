"""``reflectd logs``: the end of the log of a daemon that runs in the background, as it was written.

`tail` shows what comes later; where systemd runs the daemon, `journalctl` shows its journal. A daemon in the
foreground logs to its terminal, which this verb can't read.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

from ...core.errors import Unavailable, UserError
from ...service import manager, units
from ..render import plain
from ..settings import add_flags, look

if TYPE_CHECKING:
    import argparse

LINES = 50
MAX_LINES = 1_000_000
ROTATED = ("reflectd.log.2", "reflectd.log.1")
EPILOG = """examples:
  reflectd logs                    the last 50 lines; their times are UTC
  reflectd logs -f | grep -E 'level=(warning|error|critical)'
  reflectd logs -n 100000 | grep session=ses_58c3"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = verbs.add_parser("logs", epilog=EPILOG)
    parser.add_argument(
        "-n", "--lines", type=int, default=LINES, metavar="N", help=f"the last N lines ({LINES})"
    )
    parser.add_argument("-f", "--follow", action="store_true", help="go on as lines come, until Ctrl-C")
    add_flags(parser, run)


def run(args: argparse.Namespace) -> int:
    """Print the last lines, then those that come with ``--follow``. Raises ``Unavailable``."""
    _, where = look(args)
    if args.lines < 0:
        raise UserError(f"--lines must be 0 or more, not {args.lines}")
    most = min(args.lines, MAX_LINES)
    if manager.holding(os.environ, where) is not None:
        return journal(most, follow=args.follow)
    path = where.log_file
    if not path.exists():
        raise Unavailable(
            f"there is no log at {path}; `reflectd start` writes one (`reflectd serve` logs to its terminal)"
        )
    last, read = deque[bytes](maxlen=most), 0
    for file in (*(path.with_name(name) for name in ROTATED), path):
        with suppress(FileNotFoundError), file.open("rb") as lines:
            last.extend(lines)
            read = lines.tell()
    for line in last:
        print(plain(line.decode("utf-8", "replace").rstrip("\n")))
    sys.stdout.flush()
    return _shown("tail", "-c", f"+{read + 1}", "-F", str(path)) if args.follow else 0


def journal(most: int, *, follow: bool) -> int:
    """Have ``journalctl`` show the service's last lines; its exit code. Raises ``Unavailable``."""
    more = ("--follow",) if follow else ()
    return _shown("journalctl", "--user", "--no-pager", f"--unit={units.SERVICE}", f"--lines={most}", *more)


def _shown(*command: str) -> int:
    try:
        return subprocess.run(command, check=False).returncode  # noqa: S603 - constant words, a number, a path
    except OSError as error:
        raise Unavailable(f"{command[0]} cannot be started: {error.strerror}") from None
