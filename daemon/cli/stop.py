"""``reflectd stop``: asks the daemon to end, and waits until it has."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

from daemon.cli.settings import add_flags, load
from daemon.client import request
from daemon.core.errors import Unavailable
from daemon.paths import find_socket
from daemon.server.listener import Lock

if TYPE_CHECKING:
    import argparse

    from daemon.paths import Paths

WAIT_S = 15.0


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the verb."""
    parser = verbs.add_parser("stop", help="stop the daemon")
    add_flags(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """SIGTERM; the daemon drains and stores its state. Not running is fine.

    Leaves a mark, so that an open host does not start it again at once; `start` and `serve` take it away.
    """
    _, where = load(args)
    where.state_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    where.stopped.touch(mode=0o600)
    pid = _end_service(where) or end(where)
    what = "is not running" if pid is None else f"stopped (pid {pid})"
    print(f"reflectd {what}; hosts will not start it until `reflectd start`")
    return 0


def end(where: Paths) -> int | None:
    """SIGTERM, and wait until it has ended; the pid, None when none ran. Raises ``Unavailable``."""
    try:
        pid = int(request(find_socket(where), "GET", "/v1/status")["pid"])
    except Unavailable:
        return None
    lock = Lock(where.lock)
    os.kill(pid, signal.SIGTERM)
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        if lock.is_free():
            return pid
        time.sleep(0.02)
    raise Unavailable(
        f"reflectd (pid {pid}) still runs after {WAIT_S:.0f} s; `kill -9 {pid}` loses nothing stored"
    )


def _end_service(where: Paths) -> int | None:
    """Its socket too, or the next host to connect would start it again. (The units respect the mark too.)"""
    from daemon.service import manager

    service = manager.holding(os.environ, where)
    if service is None:
        return None
    pid = service.pid()
    service.down()
    return pid or None
