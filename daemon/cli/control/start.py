"""``reflectd start``: starts the daemon in the background, once per user."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any

from ...client import request
from ...core.errors import ReflectdError, Unavailable
from ...paths import MODULE, find_socket
from ..render import plain
from ..settings import SHORT, add_flags, load
from ..setup import copies
from ..terminal import say
from . import start_failure
from .service import plan_for

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from ...paths import Paths

WAIT_S = 30.0


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the verb."""
    parser = verbs.add_parser("start", help="start the daemon in the background")
    parser.add_argument(
        "--from-shim", action="store_true", help="for hosts: exit after 30 minutes without a host"
    )
    add_flags(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Start the daemon unless it runs, and return when it answers. Why it does not is written down."""
    _, where = load(args, from_shim=args.from_shim, left_out=[])
    where.start_failed.unlink(missing_ok=True)
    try:
        return _start(args)
    except ReflectdError as e:
        if not start_failure.read(where):
            start_failure.keep(where, e)
        raise


def _start(args: argparse.Namespace) -> int:
    """Start the daemon unless it runs.

    A host's start (``--from-shim``) starts nothing after `reflectd stop`. Where the service is installed and
    its manager can be asked, the manager starts the daemon.
    """
    from ...service import manager

    _, where = load(args, from_shim=args.from_shim)
    if args.from_shim and where.stopped.exists():
        say("reflectd was stopped by `reflectd stop`; `reflectd start` starts it")
        return 0
    copies.refresh_all(os.environ)
    here = manager.here(os.environ)
    renamed = manager.rename_module(here, plan_for(os.environ, where))
    service = manager.holding(os.environ, where)
    if renamed:
        say(f"{here.unit} was written by an older reflectd; it starts `{MODULE}` now")
    if service is not None:
        if renamed:
            service.reload()
        elif other := manager.starts_another_module(here, MODULE):
            said = f"{here.unit} starts the module `{other}`, this is `{MODULE}`"
            say(f"reflectd: {said}: `reflectd service install` writes it anew", sys.stderr)
        # while the mark is there the units start nothing; the request below may start them
        where.stopped.unlink(missing_ok=True)
    running = status(find_socket(where), WAIT_S)  # whoever listens may still be starting
    if running is not None:
        _tell(running)
        return 0
    if service is not None:
        service.up(find_socket(where), forgive=renamed or not args.from_shim)
        return _started_by_service(find_socket(where))
    if renamed and here.name == "launchd" and not here.unreachable():
        where.stopped.unlink(missing_ok=True)
        here.reload()  # which starts the daemon
        return _started_by_service(find_socket(where))
    return detached(args, where)


def _tell(running: dict[str, Any]) -> None:
    """That it runs, and what it has from before."""
    from .running import outdated

    say(f"reflectd runs already (pid {running['pid']})")
    found = outdated(running)
    for sentence in found:
        say(f"  {plain(sentence)}")
    if found:
        say("`reflectd restart` replaces it now")


def detached(args: argparse.Namespace, where: Paths) -> int:
    """Start the daemon in the background, apart from this terminal. Raises ``Unavailable``."""
    from ...service.notify import without

    command = [sys.executable, "-m", MODULE, "serve", "--log-file"]
    if args.from_shim:
        command.append("--from-shim")
    for key, flag in SHORT.items():
        value = getattr(args, f"set:{key}", None)
        if value is not None:
            command += [flag, value]
    said = tempfile.TemporaryFile()  # noqa: SIM115 - not a pipe: the daemon goes on when this process has ended
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
        running = status(where.socket)
        if running is not None:
            if running["pid"] != process.pid:
                _end(process)
                _tell(running)
            else:
                say(f"reflectd {running['version']} started (pid {running['pid']}), log: {where.log_file}")
            return 0
        if process.poll() is not None:
            said.seek(0)
            words = said.read().decode("utf-8", "replace").strip() or f"exit code {process.returncode}"
            if "runs already" not in words:  # else another `start` was faster, and its daemon will answer
                raise Unavailable(f"the daemon did not start: {start_failure.read(where) or words}")
        time.sleep(0.02)
    raise Unavailable(f"the daemon does not answer after {WAIT_S:.0f} s; see {where.log_file}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Another `start` was faster. The program started here must not become the daemon when that one ends."""
    process.kill()
    process.wait()


def _started_by_service(socket: Path) -> int:
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        running = status(socket)
        if running is not None:
            say(f"reflectd {running['version']} started as a service (pid {running['pid']})")
            return 0
        time.sleep(0.02)
    raise Unavailable(f"the service does not answer after {WAIT_S:.0f} s; see `reflectd logs`")


def status(socket: Path, timeout_s: float = 2.0) -> dict[str, Any] | None:
    """What the daemon says of itself; None when none answers."""
    try:
        return request(socket, "GET", "/v1/status", timeout_s=timeout_s)
    except Unavailable:
        return None
