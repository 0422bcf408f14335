"""``reflectd serve``: runs the daemon in the foreground. It imports the server, so no other verb imports
it.
"""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import gc
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ...core.errors import ReflectdError
from ...keys import Keys, load_keys
from ...service.notify import Notifier
from ...service.units import is_ours
from ..settings import add_flags, load
from . import start_failure

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Coroutine
    from socket import socket

    from ...core.settings import Settings
    from ...paths import Paths

DESCRIPTORS = 8_192
THREADS = 32
THREAD_NAME = "reflectd-blocking"
EPILOG = (
    "Every setting is also a flag: `reflectd serve --judge-mode observe` sets judge.mode. "
    "`reflectd config` lists them all."
)
SWITCH_S = 0.0005
"""How long a thread that computes keeps the others waiting. Python's 5 ms are far longer than an event takes,
and for each event the loop and the store's thread wait for their turn several times.
"""
AGAIN = 75  # the exit code of a daemon that launchd is to start again
LEAVE_S = 1.0  # how long a thread may take to finish what it does when the daemon ends


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = verbs.add_parser("serve", epilog=EPILOG)
    parser.add_argument(
        "--log-file", action="store_true", help="log to the state folder, not to this terminal"
    )
    parser.add_argument(
        "--from-shim", action="store_true", help="for hosts: exit after 30 minutes without a host"
    )
    add_flags(parser, run, all_settings=True)


def run(args: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT, or until the program on the disk was replaced and somebody starts it. A
    service manager and the next host are told too when the start fails.
    """
    from ...server import listener

    notifier = Notifier.from_environment(os.environ)
    by_launchd = is_ours(os.environ)
    try:
        handed_over = listener.inherited(os.environ, os.getpid())
        settings, where = load(args)
        if handed_over is not None:
            where = replace(where, socket=Path(handed_over.getsockname()))
        keys = load_keys(os.environ, settings, by_host=args.from_shim)
        lock = listener.Lock(where.lock)
        lock.acquire()
        try:
            if not args.from_shim:
                where.stopped.unlink(missing_ok=True)
            from ... import log

            log.configure(settings, where.log_file if args.log_file else sys.stderr)
            if notifier.every_s is not None:
                # the watchdog ends a daemon that hangs with SIGABRT; the log then shows where it hung
                faulthandler.enable()
            _allow_connections()
            leaves = handed_over is not None or by_launchd or args.from_shim
            served = _serve(settings, where, keys, notifier, handed_over, leaves=leaves)
            left = run_to_the_end(served, lock.release)
            return AGAIN if left and by_launchd else 0  # launchd starts only what failed
        finally:
            lock.release()
    except listener.AlreadyRunning:
        raise
    except Exception as e:
        with contextlib.suppress(ReflectdError):  # also where the settings are wrong
            start_failure.keep(load(args, left_out=[])[1], e)
        if isinstance(e, ReflectdError):
            notifier.status(str(e))
        raise


def run_to_the_end(work: Coroutine[Any, Any, int], last: Callable[[], object]) -> int:
    """Run ``work`` on uvloop where it is installed (``reflectd[uvloop]``): 1.5 times the events per
    second.

    A thread that a dead disk holds does not keep the process: then it ends here, after ``last``.
    """
    try:
        import uvloop
    except ImportError:
        uvloop = None
    sys.setswitchinterval(SWITCH_S)
    threads = ThreadPoolExecutor(THREADS, THREAD_NAME)
    code: int = (uvloop or asyncio).run(_with(threads, work))
    threads.shutdown(wait=False, cancel_futures=True)
    for thread in threading.enumerate():
        if thread.name.startswith(THREAD_NAME):
            thread.join(LEAVE_S)
            if thread.is_alive():
                last()
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
    return code


async def _with(threads: ThreadPoolExecutor, work: Coroutine[Any, Any, int]) -> int:
    """Do ``work``, with ``threads`` for what blocks. The loop does not wait for them when it ends."""
    loop = asyncio.get_running_loop()
    loop.set_default_executor(threads)
    try:
        return await work
    finally:
        loop.set_default_executor(ThreadPoolExecutor(1))


def _allow_connections() -> None:
    """Allow more file descriptors: each host and command needs one, and macOS allows 256 at first."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def _serve(
    settings: Settings,
    where: Paths,
    keys: Keys,
    notifier: Notifier,
    handed_over: socket | None,
    *,
    leaves: bool,
) -> int:
    """Serve. 1 when it left for the program on the disk, 0 when it was asked to end."""
    gc.disable()  # importing makes no garbage, and the collector takes an eighth of the time
    from ...app import Daemon

    gc.freeze()  # the collector need not look at what was imported
    gc.enable()

    daemon = Daemon(settings, where, keys=keys, leaves=leaves)
    up = False

    def status() -> str:
        hosts = sum(i.connected for i in daemon.engine.instances)
        return (
            f"{hosts} {'host' if hosts == 1 else 'hosts'} connected, socket {where.socket}"
            if up
            else "starting"
        )

    def ready() -> None:
        nonlocal up
        up = True
        notifier.ready(status())

    notifier.status(status())
    telling = asyncio.create_task(notifier.live(daemon.stopping, status), name="notify")
    try:
        await daemon.serve(ready, handed_over)
    finally:
        telling.cancel()
    return int(daemon.upgrade.wanted.is_set())
