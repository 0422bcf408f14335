"""``reflectd stop``: asks the daemon to end, and waits until it has ended."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

from ...client import request
from ...core.errors import Unavailable
from ...paths import find_socket
from ...server.listener import Lock
from ..settings import add_flags, look
from ..terminal import say

if TYPE_CHECKING:
    import argparse

    from ...paths import Paths

WAIT_S = 30.0


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the verb."""
    parser = verbs.add_parser("stop", help="stop the daemon")
    add_flags(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Send SIGTERM, on which the daemon finishes its work and stores its state. It is fine when none runs.

    Leaves the file ``stopped``, so that an open host does not start the daemon again; `start` and `serve`
    remove it.
    """
    _, where = look(args)
    where.state_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    where.stopped.touch(mode=0o600)
    pid = _end_service(where) or end(where)
    what = "is not running" if pid is None else f"stopped (pid {pid})"
    say(f"reflectd {what}; hosts will not start it until `reflectd start`")
    return 0


def end(where: Paths) -> int | None:
    """Send SIGTERM and wait until the daemon has ended. Returns its pid, None when none ran.

    Raises ``Unavailable``.
    """
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
    """Stop the service with its socket, else the next host that connects would start the daemon again.

    Returns the daemon's pid, None when no service runs it.
    """
    from ...service import manager

    service = manager.holding(os.environ, where)
    if service is None:
        return None
    pid = service.pid()
    service.down()
    return pid or None
