"""``reflectd restart``: replaces the running daemon by this program.

The service manager restarts the daemon that it runs. Any other is ended, and this one is started in the
background, with the flags and the environment of this shell. A program that can't even be imported ends no
daemon.

A turn that is being judged meanwhile is judged again by the new daemon. Exit codes: 0 the new daemon
answers · 1 it does not · 2 wrong arguments or settings.
"""

from __future__ import annotations

import os
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ...core.errors import Unavailable
from ...paths import find_socket
from ..settings import add_flags, load
from ..setup import copies
from . import start
from .stop import end

if TYPE_CHECKING:
    import argparse

    from ...paths import Paths

WAIT_S = 60.0
EPILOG = """A daemon that runs as a service is restarted by systemd; any other is ended, and
started in the background with the flags and the environment of this shell. A turn
that is being judged meanwhile is judged again.

exit codes: 0 the new daemon answers, 1 it does not, 2 wrong arguments or settings"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the verb."""
    parser = verbs.add_parser(
        "restart",
        help="restart the daemon, after an upgrade or a change of settings",
        epilog=EPILOG,
    )
    add_flags(parser)
    parser.set_defaults(run=run, from_shim=False)


def run(args: argparse.Namespace) -> int:
    """Restart it, and return when the new daemon answers. One that does not run is started."""
    from ...service import manager

    _, where = load(args)
    before = start.status(find_socket(where))
    if before is None:
        return start.run(args)
    copies.refresh_all(os.environ)  # what agents load follows the settings too
    service = manager.holding(os.environ, where)
    if service is not None and service.pid() == before["pid"]:
        service.restart()
    else:
        return _exchange(args, where, before)
    now = _another(where, before)
    print(f"reflectd {now['version']} restarted as a service (pid {now['pid']}){_was(before, now)}")
    return 0


def _exchange(args: argparse.Namespace, where: Paths, before: dict[str, Any]) -> int:
    """End the daemon, and start this one. The mark ``stopped`` keeps hosts from starting another one in
    between. Raises ``Unavailable``.
    """
    try:
        import_module("...app", __package__)
    except Exception as e:
        raise Unavailable(f"this program does not start, so the daemon goes on as it was: {e}") from e
    where.stopped.touch(mode=0o600)
    try:
        end(where)
    finally:
        where.stopped.unlink(missing_ok=True)
    args.from_shim = bool(before.get("by_host"))
    return start.detached(args, where)


def _another(where: Paths, before: dict[str, Any]) -> dict[str, Any]:
    """What the new daemon says of itself. Raises ``Unavailable``."""
    limit = time.monotonic() + WAIT_S
    while time.monotonic() < limit:
        now = start.status(find_socket(where))
        if now is not None and _start_of(now) != _start_of(before):
            return now
        time.sleep(0.05)
    raise Unavailable(f"the new daemon does not answer after {WAIT_S:.0f} s; see `reflectd logs`")


def _start_of(status: dict[str, Any]) -> tuple[object, object]:
    return status["pid"], status.get("started_at")


def _was(before: dict[str, Any], now: dict[str, Any]) -> str:
    return "" if before["version"] == now["version"] else f"; it was {before['version']}"
