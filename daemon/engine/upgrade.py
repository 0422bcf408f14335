"""Notices that the program on the disk was replaced, and says when this daemon leaves for it.

A daemon whose files were replaced may import a module of the other version, so it must not go on for long.
Where somebody starts the next one, it leaves at a quiet moment: nothing is judged, awaited or written, and no
host told of anything for ``QUIET_S``; that last one counts no more after ``PATIENCE_S``. Before that, the new
program must show that it can be imported, with these settings and this database. Elsewhere it stays, and
`status` says why. ``app`` ends the daemon on ``wanted``.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from .. import paths
from ..store.migrations import MIGRATIONS
from .threads import on_disk

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .intake import Intake
    from .world import World

QUIET_S: Final = 10.0
PATIENCE_S: Final = 600.0
SETTLED_S: Final = 5.0
TRY_S: Final = 120.0
AGAIN_S: Final = 300.0
TOLD: Final = 300
NOBODY: Final = "no plugin and no service started it, so nobody would start {} in its place"
_TRY: Final = """
import os
from {m} import app, config, paths
from {m}.store.migrations import MIGRATIONS
config.load(os.environ, paths.config_file(os.environ))
print(app.__version__, len(MIGRATIONS))
"""


class Upgrade:
    """Call ``sweep`` every few seconds. ``wanted`` is set when the daemon is to leave."""

    def __init__(
        self,
        world: World,
        intake: Intake,
        idle: Callable[[], bool],
        *,
        leaves: bool,
        file: Path = paths.PACKAGE / "__init__.py",
    ) -> None:
        """``idle``: whether nothing is being done or written. ``leaves``: whether somebody starts the next
        one. ``file``: replaced when the program is.
        """
        self.wanted = asyncio.Event()
        self._world = world
        self._intake = intake
        self._idle = idle
        self._leaves = leaves
        self._file = file
        self._ours = self._seen = _identity(file)
        self._works_since: float | None = None
        self._problem = ""
        self._again_at = 0.0
        self._trying = False

    def status(self) -> dict[str, Any]:
        """``waiting``: for a quiet moment. ``problem``: why it does not leave for the new program."""
        return {"waiting": self._works_since is not None and self._leaves, "problem": self._problem}

    def sweep(self) -> None:
        """A new program is tried when no file changed for ``SETTLED_S``: an installer may be at work."""
        now, identity = self._world.clock.monotonic(), _identity(self._file)
        if identity != self._seen:
            self._seen, self._works_since, self._problem, self._again_at = identity, None, "", 0.0
        elif identity == self._ours or self._trying:
            return
        elif self._works_since is None:
            if now >= self._again_at:
                self._trying = True
                self._world.spawn(self._look(), "upgrade")
        elif self._leaves and self._quiet(now - self._works_since):
            self.wanted.set()

    def _quiet(self, waited_s: float) -> bool:
        silent_s = self._world.clock.monotonic() - self._intake.last_event
        return (silent_s >= QUIET_S or waited_s >= PATIENCE_S) and not self._intake.asked and self._idle()

    async def _look(self) -> None:
        seen, log = self._seen, self._world.log
        try:
            changed = await asyncio.to_thread(_newest, self._file.parent)
            if 0 <= self._world.clock.now_ms() / 1000 - changed < SETTLED_S:
                return
            version, problem = await on_disk(_tried)
        finally:
            self._trying = False
        if seen != self._seen:
            return  # replaced once more meanwhile
        now = self._world.clock.monotonic()
        if problem:
            self._again_at = now + AGAIN_S
            if problem != self._problem:
                log.error("the program was replaced and can't be used", problem=problem)
        else:
            self._works_since = now
            if self._leaves:
                log.info("the program was replaced; leaves for it at a quiet moment", version=version)
            else:
                problem = NOBODY.format(version)
                log.warning("the program was replaced", problem=problem)
        self._problem = problem


def _tried() -> tuple[str, str]:
    """The version of the program on the disk, or why it can't be used. It blocks."""
    program = [sys.executable, *(["-P"] if sys.flags.safe_path else [])]
    first = "" if sys.flags.safe_path else f"import sys\nsys.path[0] = {sys.path[0]!r}\n"
    script = first + _TRY.format(m=paths.MODULE)
    try:
        done = subprocess.run(  # noqa: S603 - ourselves
            [*program, "-c", script],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TRY_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "", f"the program on the disk does not start within {TRY_S:.0f} s"
    except OSError as e:
        return "", f"{sys.executable} can't be run: {e.strerror}"
    words = done.stdout.decode("utf-8", "replace").split()
    if done.returncode or len(words) != 2 or not words[1].isdigit():
        last = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2] or "it says nothing"
        return "", f"the program on the disk does not start: {last[:TOLD]}"
    if int(words[1]) < len(MIGRATIONS):
        return "", f"the program on the disk ({words[0]}) is older and can't read this database"
    return words[0], ""


def _newest(package: Path) -> float:
    """When a file of the package was changed or put there last, in seconds; 0 when there is none."""
    newest = 0.0
    with suppress(OSError):  # files come and go
        for path in package.rglob("*.py"):
            with suppress(OSError):
                newest = max(newest, path.stat().st_ctime)
    return newest


def _identity(file: Path) -> tuple[int, ...] | None:
    """Changes when the file is replaced or written; None when there is none."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size
