"""``reflectd serve``: the daemon in the foreground. Imports the server, so nothing else imports this."""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from daemon import config
from daemon.cli.settings import add_flags, load
from daemon.core.errors import ReflectdError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Coroutine
    from socket import socket

    from daemon.core.settings import Settings
    from daemon.paths import Paths
    from daemon.service.notify import Notifier

DESCRIPTORS = 8_192


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the verb."""
    parser = verbs.add_parser("serve", help="run the daemon in the foreground")
    parser.add_argument(
        "--log-file", action="store_true", help="log to the state folder, not to this terminal"
    )
    parser.add_argument(
        "--from-shim", action="store_true", help="a host started us: exit after 30 minutes without one"
    )
    add_flags(parser, all_settings=True)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT. What goes wrong before that, a service manager is told too."""
    from daemon.server import listener
    from daemon.service.notify import Notifier

    notifier = Notifier.from_environment(os.environ)
    try:
        handed_over = listener.inherited(os.environ, os.getpid())
        settings, where = load(args, from_shim=args.from_shim)
        if handed_over is not None:
            where = replace(where, socket=Path(handed_over.getsockname()))
        keys = config.load_keys(os.environ, settings)
        lock = listener.Lock(where.lock)
        lock.acquire()
        try:
            if not args.from_shim:
                where.stopped.unlink(missing_ok=True)
            from daemon import log

            log.configure(settings, where.log_file if args.log_file else sys.stderr)
            if notifier.every_s is not None:
                faulthandler.enable()  # the watchdog ends a hung daemon with SIGABRT: where it hung is logged
            _allow_connections()
            return _run(_serve(settings, where, keys, notifier, handed_over))
        finally:
            lock.release()
    except ReflectdError as e:
        notifier.status(str(e))
        raise


def _run(work: Coroutine[Any, Any, int]) -> int:
    """On uvloop where it is installed (``reflectd[uvloop]``): half as many events again per second."""
    try:
        import uvloop
    except ImportError:
        uvloop = None
    code: int = (uvloop or asyncio).run(work)
    return code


def _allow_connections() -> None:
    """Each host and command is a descriptor; macOS allows 256 unless asked for more."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def _serve(
    settings: Settings, where: Paths, keys: config.Keys, notifier: Notifier, handed_over: socket | None
) -> int:
    from daemon.app import Daemon

    daemon = Daemon(settings, where, keys=keys)
    up = False

    def status() -> str:
        hosts = sum(i.connected for i in daemon.instances)
        return (
            f"{hosts} {'host' if hosts == 1 else 'hosts'} connected, socket {where.socket}"
            if up
            else "starting"
        )

    def ready() -> None:
        nonlocal up
        up = True
        notifier.ready(status())

    telling = asyncio.create_task(notifier.live(daemon.stopping, status), name="notify")
    try:
        await daemon.serve(ready, handed_over)
    finally:
        telling.cancel()
    return 0
