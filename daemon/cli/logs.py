"""``reflectd logs``: the end of the log of a daemon that runs in the background."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import deque
from typing import TYPE_CHECKING

from daemon.cli.settings import add_flags, load
from daemon.core.errors import Unavailable

if TYPE_CHECKING:
    import argparse
    from pathlib import Path


MAX_LINES = 1_000_000


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the verb."""
    parser = verbs.add_parser("logs", help="show the daemon's log")
    parser.add_argument("-n", "--lines", type=int, default=50, metavar="N", help="the last N lines (50)")
    parser.add_argument("-f", "--follow", action="store_true", help="go on as lines come, until Ctrl-C")
    add_flags(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the tail; of a systemd service the journal's. A daemon in the foreground logs elsewhere."""
    _, where = load(args)
    from daemon.service import manager

    lines = max(0, min(args.lines, MAX_LINES))
    if manager.holding(os.environ, where) is not None:
        follow = ["--follow"] if args.follow else []
        sys.stdout.flush()
        return subprocess.run(  # noqa: S603 - journalctl, constant words and a number
            ["journalctl", "--user", "--no-pager", "--unit=reflectd.service", f"--lines={lines}", *follow],  # noqa: S607 - systemd's own
            check=False,
        ).returncode
    if not where.log_file.exists():
        raise Unavailable(
            f"there is no log at {where.log_file}; `reflectd start` writes one "
            "(`reflectd serve` logs to its terminal)"
        )
    with where.log_file.open(encoding="utf-8", errors="replace") as f:
        sys.stdout.writelines(deque(f, maxlen=lines))
    if args.follow:
        _follow(where.log_file)
    return 0


def _follow(path: Path) -> None:
    f = path.open(encoding="utf-8", errors="replace")
    f.seek(0, 2)
    try:
        while True:
            line = f.readline()
            if line:
                sys.stdout.write(line)
                sys.stdout.flush()
            elif path.exists() and path.stat().st_ino != _inode(f.fileno()):
                f.close()
                f = path.open(encoding="utf-8", errors="replace")  # rotated
            else:
                time.sleep(0.2)
    finally:
        f.close()


def _inode(fd: int) -> int:
    import os

    return os.fstat(fd).st_ino
