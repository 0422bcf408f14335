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

if TYPE_CHECKING:
    import argparse

WAIT_S = 15.0


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the verb."""
    parser = verbs.add_parser("stop", help="stop the daemon")
    add_flags(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """SIGTERM; the daemon drains and stores its state. Not running is fine."""
    _, where = load(args)
    try:
        pid = int(request(find_socket(where), "GET", "/v1/status")["pid"])
    except Unavailable:
        print("reflectd is not running")
        return 0
    os.kill(pid, signal.SIGTERM)
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            print(f"reflectd stopped (pid {pid})")
            return 0
        time.sleep(0.02)
    raise Unavailable(
        f"reflectd (pid {pid}) still runs after {WAIT_S:.0f} s; `kill -9 {pid}` loses nothing stored"
    )
