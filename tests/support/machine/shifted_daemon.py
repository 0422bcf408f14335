"""``reflectd serve`` with a clock that a test moves: the machine's time plus the milliseconds in a file.

Composed as ``cli.control.serve`` composes it; only the clock is another. When the number in the file changes
the timers look at the clock again, and a line in the log says so.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from pathlib import Path

from daemon import log
from daemon.app import Daemon
from daemon.cli.settings import add_flags, load
from daemon.clock import SystemClock
from daemon.keys import load_keys
from daemon.server import listener

LOOK_S = 0.02
MOVED = "the clock was moved"


class ShiftedClock(SystemClock):
    """``offset_ms`` ahead of the machine. ``monotonic`` never jumps, whatever the wall clock does."""

    def __init__(self, offset_ms: int) -> None:
        self.offset_ms = offset_ms

    def now_ms(self) -> int:
        return super().now_ms() + self.offset_ms


def read(file: Path) -> int:
    """The offset that is wanted; 0 without a file."""
    return int(file.read_text("ascii")) if file.exists() else 0


async def follow(daemon: Daemon, clock: ShiftedClock, file: Path) -> None:
    """Move the clock as the file says."""
    while True:
        offset = read(file)
        if offset != clock.offset_ms:
            clock.offset_ms = offset
            daemon.engine.timers.wake()
            log.get("shifted").info(MOVED, offset_ms=offset)
        await asyncio.sleep(LOOK_S)


async def serve(args: argparse.Namespace) -> None:
    """As ``daemon.cli.control.serve`` does, without a service manager."""
    settings, where = load(args)
    keys = load_keys(os.environ, settings)
    lock = listener.Lock(where.lock)
    lock.acquire()
    try:
        log.configure(settings, sys.stderr)
        clock = ShiftedClock(read(args.offset))
        daemon = Daemon(settings, where, clock=clock, keys=keys)
        following = asyncio.create_task(follow(daemon, clock, args.offset))
        try:
            await daemon.serve()
        finally:
            following.cancel()
    finally:
        lock.release()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--offset", type=Path, required=True)
    add_flags(parser, all_settings=True)
    asyncio.run(serve(parser.parse_args()))
