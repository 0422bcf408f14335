"""``reflectd serve``: the daemon in the foreground. Imports the server, so nothing else imports this."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from typing import TYPE_CHECKING, Any

from daemon import config
from daemon.cli.settings import add_flags, load

if TYPE_CHECKING:
    import argparse
    from collections.abc import Coroutine


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
    """Serve until SIGTERM or SIGINT."""
    settings, where = load(args, from_shim=args.from_shim)
    from daemon.server.listener import Lock

    lock = Lock(where.lock)
    lock.acquire()
    try:
        if not args.from_shim:
            where.stopped.unlink(missing_ok=True)
        from daemon import log

        log.configure(settings, where.log_file if args.log_file else sys.stderr)
        _allow_connections()
        return _run(_serve(settings, where, config.load_keys(os.environ, settings)))
    finally:
        lock.release()


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


async def _serve(settings: object, where: object, keys: config.Keys) -> int:
    from daemon.app import Daemon

    await Daemon(settings, where, keys=keys).serve()  # type: ignore[arg-type]
    return 0
