"""``reflectd start``: the daemon in the background, once per user."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING

from daemon.cli.settings import SHORT, add_flags, load
from daemon.client import request
from daemon.core.errors import Unavailable
from daemon.paths import find_socket

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from daemon.paths import Paths

WAIT_S = 10.0


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the verb."""
    parser = verbs.add_parser("start", help="start the daemon in the background")
    parser.add_argument("--from-shim", action="store_true", help="exit after 30 minutes without a host")
    add_flags(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Start unless one runs; returns when it answers. A host's start respects `reflectd stop`.

    Where the service is installed and its manager can be asked, that one starts it.
    """
    from daemon.service import manager

    _, where = load(args, from_shim=args.from_shim)
    if args.from_shim and where.stopped.exists():
        print("reflectd was stopped by `reflectd stop`; `reflectd start` starts it")
        return 0
    service = manager.holding(os.environ, where)
    if service is not None:
        where.stopped.unlink(missing_ok=True)  # the units respect the mark, and a request may start them
    running = _status(find_socket(where))
    if running is not None:
        print(f"reflectd runs already (pid {running['pid']})")
        return 0
    if service is not None:
        service.up(find_socket(where), forgive=not args.from_shim)
        return _started_by_service(find_socket(where))
    return _start(args, where)


def _start(args: argparse.Namespace, where: Paths) -> int:
    from daemon.service.notify import without

    command = [sys.executable, "-m", "daemon", "serve", "--log-file"]
    if args.from_shim:
        command.append("--from-shim")
    for key, flag in SHORT.items():
        value = getattr(args, f"set:{key}", None)
        if value is not None:
            command += [flag, value]
    said = tempfile.TemporaryFile()  # noqa: SIM115 - not a pipe: the daemon outlives us
    process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=said,
        start_new_session=True,
        cwd="/",
        env=without(os.environ),
    )
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        running = _status(where.socket)
        if running is not None:
            if running["pid"] != process.pid:
                print(f"reflectd runs already (pid {running['pid']})")
            else:
                print(f"reflectd {running['version']} started (pid {running['pid']}), log: {where.log_file}")
            return 0
        if process.poll() is not None:
            said.seek(0)
            words = said.read().decode("utf-8", "replace").strip() or f"exit code {process.returncode}"
            if "runs already" not in words:  # else another `start` was faster: it will answer
                raise Unavailable(f"the daemon did not start: {words}")
        time.sleep(0.02)
    raise Unavailable(f"the daemon does not answer after {WAIT_S:.0f} s; see {where.log_file}")


def _started_by_service(socket: Path) -> int:
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        running = _status(socket)
        if running is not None:
            print(f"reflectd {running['version']} started as a service (pid {running['pid']})")
            return 0
        time.sleep(0.02)
    raise Unavailable(f"the service does not answer after {WAIT_S:.0f} s; see `reflectd logs`")


def _status(socket: Path) -> dict[str, object] | None:
    try:
        return request(socket, "GET", "/v1/status", timeout_s=2.0)
    except Unavailable:
        return None
