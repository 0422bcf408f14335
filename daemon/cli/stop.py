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
    try:
        pid = int(request(find_socket(where), "GET", "/v1/status")["pid"])
    except Unavailable:
        print("reflectd is not running; hosts will not start it until `reflectd start`")
        return 0
    lock = Lock(where.lock)
    os.kill(pid, signal.SIGTERM)
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        if lock.is_free():
            print(f"reflectd stopped (pid {pid}); hosts will not start it until `reflectd start`")
            return 0
        time.sleep(0.02)
    raise Unavailable(
        f"reflectd (pid {pid}) still runs after {WAIT_S:.0f} s; `kill -9 {pid}` loses nothing stored"
    )
