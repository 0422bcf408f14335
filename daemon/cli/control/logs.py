"""``reflectd logs``: the end of the log of a daemon that runs in the background, as it was written.

Reads the log file and what was rotated away; where systemd runs the daemon, `journalctl` shows its journal. A
daemon in the foreground logs to its terminal, which this verb can't read.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections import deque
from contextlib import ExitStack
from itertools import chain
from typing import TYPE_CHECKING, TextIO

from ...core.errors import Unavailable
from ...service import manager, units
from ..render import plain
from ..settings import add_flags, look

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from pathlib import Path

LINES = 50
MAX_LINES = 1_000_000
POLL_S = 0.2
ROTATED = ("reflectd.log.2", "reflectd.log.1")
EPILOG = """examples:
  reflectd logs                    the last 50 lines; their times are UTC
  reflectd logs -f | grep -E 'level=(warning|error|critical)'
  reflectd logs -n 100000 | grep session=ses_58c3"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the verb."""
    parser = verbs.add_parser("logs", epilog=EPILOG)
    parser.add_argument(
        "-n", "--lines", type=int, default=LINES, metavar="N", help=f"the last N lines ({LINES})"
    )
    parser.add_argument("-f", "--follow", action="store_true", help="go on as lines come, until Ctrl-C")
    add_flags(parser, run)


def run(args: argparse.Namespace) -> int:
    """Print the last lines, then those that come with ``--follow``. Raises ``Unavailable``."""
    _, where = look(args)
    most = max(0, min(args.lines, MAX_LINES))
    if manager.holding(os.environ, where) is not None:
        return journal(most, follow=args.follow)
    path, last = where.log_file, deque[str](maxlen=most)
    if not path.exists():
        raise Unavailable(
            f"there is no log at {path}; `reflectd start` writes one (`reflectd serve` logs to its terminal)"
        )
    with ExitStack() as stack:
        older = [path.with_name(name) for name in ROTATED if path.with_name(name).exists()]
        files = [_open(file, stack) for file in (*older, path)]
        for file in files:
            last.extend(file)
        for line in chain(last, _coming(path, files[-1], stack) if args.follow else ()):
            print(plain(line.rstrip("\n")), flush=args.follow)
    return 0


def journal(most: int, *, follow: bool) -> int:
    """Have ``journalctl`` show the service's last lines; its exit code. Raises ``Unavailable``."""
    command = ["journalctl", "--user", "--no-pager", f"--unit={units.SERVICE}", f"--lines={most}"]
    command += ["--follow"] if follow else []
    try:
        return subprocess.run(command, check=False).returncode  # noqa: S603 - constant words and a number
    except OSError as error:
        raise Unavailable(f"journalctl cannot be started: {error.strerror}") from None


def _open(path: Path, stack: ExitStack) -> TextIO:
    return stack.enter_context(path.open(encoding="utf-8", errors="replace"))


def _coming(path: Path, file: TextIO, stack: ExitStack) -> Iterator[str]:
    """The lines from now on, also of the file that takes the place of a rotated one; never ends."""
    while True:
        line = file.readline()
        if line:
            yield line
        elif path.exists() and path.stat().st_ino != os.fstat(file.fileno()).st_ino:
            file.close()
            file = _open(path, stack)
        else:
            time.sleep(POLL_S)
