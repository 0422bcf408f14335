"""The settings that count in each project: the person's, tightened by the project's own file.

``read`` has the file read in a thread, at most every two seconds, and understood anew when its text changed.
Only those who await it wait, for a moment, so a disk that hangs holds up nobody but its own project: what was
read last counts, and a project that was never read is only observed. ``settings`` never waits. The engine
awaits ``read`` where something begins (a hello, a hook, a judgement, a timer), and after each long wait.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

from .. import config
from ..core.errors import words
from .threads import on_disk

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..core.ports import Clock
    from ..core.settings import Settings
    from ..log import Logger

TTL_MS: Final = 2_000
KEPT: Final = 500
FIRST_S: Final = 2.0
AGAIN_S: Final = 0.2


class _Found(NamedTuple):
    """The project's file: its text, or why it can't be read."""

    text: str = ""
    error: str = ""


class _Understood(NamedTuple):
    found: _Found
    settings: Settings | None  # None: as before
    problems: list[str]


class _Project(Struct, eq=False):
    """``until``: how long those who wait for ``reading`` wait for it (monotonic seconds)."""

    settings: Settings
    at_ms: int | None = None
    found: _Found | None = None
    reading: asyncio.Future[_Understood] | None = None
    until: float = 0.0


class Projects:
    """``settings`` never raises; any thread may ask it. ``read`` belongs to the loop's thread. Bounded: the
    project asked for longest ago is forgotten (I44).
    """

    def __init__(
        self,
        base: Settings,
        clock: Clock,
        log: Logger,
        read: Callable[[Path], str] = config.read_project,
        *,
        first_s: float = FIRST_S,
        again_s: float = AGAIN_S,
    ) -> None:
        self._base = base
        self._unread, _ = config.unread(base, "it was not read yet")
        self._clock = clock
        self._log = log
        self._read_file = read
        self._first_s = first_s
        self._again_s = again_s
        self._lock = threading.Lock()
        self._known: OrderedDict[str, _Project] = OrderedDict()

    def settings(self, directory: str) -> Settings:
        """The settings in force in this folder, as they were last read."""
        return self._project(directory).settings if directory else self._base

    async def read(self, directory: str) -> None:
        """Returns when the folder's settings were read less than two seconds ago, or its disk does not
        answer.
        """
        if not directory:
            return
        known, now = self._project(directory), self._clock.now_ms()
        if known.at_ms is not None and 0 <= now - known.at_ms < TTL_MS:
            return
        loop = asyncio.get_running_loop()
        if known.reading is None:
            known.reading = on_disk(partial(self._look, Path(directory), known.found))
            known.reading.add_done_callback(partial(self._learned, known, directory, now))
            known.until = loop.time() + (self._first_s if known.at_ms is None else self._again_s)
        await asyncio.wait([known.reading], timeout=max(0.0, known.until - loop.time()))
        if known.at_ms is None and known.found is None:
            known.found = _Found(error="its disk does not answer")
            _, problems = config.unread(self._base, known.found.error)
            self._tell(directory, problems)

    def _project(self, directory: str) -> _Project:
        with self._lock:
            known = self._known.setdefault(directory, _Project(self._unread))
            self._known.move_to_end(directory)
            if len(self._known) > KEPT:
                self._known.popitem(last=False)
            return known

    def _look(self, directory: Path, before: _Found | None) -> _Understood:
        """In a thread."""
        try:
            found = _Found(text=self._read_file(directory))
        except (OSError, ValueError) as e:
            found = _Found(error=words(e))
        if found == before:
            return _Understood(found, None, [])
        if found.error:
            return _Understood(found, *config.unread(self._base, found.error))
        return _Understood(found, *config.tighten(self._base, found.text))

    def _learned(
        self, known: _Project, directory: str, at_ms: int, reading: asyncio.Future[_Understood]
    ) -> None:
        known.reading, known.at_ms = None, at_ms
        error = reading.exception()
        if error is None:
            known.found, settings, problems = reading.result()
        else:  # no thread could be started
            known.found = _Found(error=str(error))
            settings, problems = config.unread(self._base, known.found.error)
        known.settings = settings or known.settings
        self._tell(directory, problems)

    def _tell(self, directory: str, problems: list[str]) -> None:
        if problems:
            self._log.warning("project settings", directory=directory, problems=problems)
