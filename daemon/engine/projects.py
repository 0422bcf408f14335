"""The settings that count in each project: the person's, tightened by the project's own file.

The file is read at most every two seconds, and understood anew only when its text changed. It is read in a
thread: a disk that hangs holds the loop for a moment, and then what was read last counts. A project that was
never read is only observed meanwhile.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .. import config
from ..core.errors import words

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..core.ports import Clock
    from ..core.settings import Settings
    from ..log import Logger

TTL_MS: Final = 2_000
KEPT: Final = 500
FIRST_S: Final = 2.0
AGAIN_S: Final = 0.2


@dataclass(slots=True, eq=False)
class _Reading:
    """The file as a thread reads it: its text, or why it can't be read."""

    text: str = ""
    error: str = ""
    done: threading.Event = field(default_factory=threading.Event)


@dataclass(slots=True, eq=False)
class _Project:
    at_ms: int
    settings: Settings
    text: str | None = None
    error: str | None = None
    reading: _Reading | None = None


class Projects:
    """``settings`` never raises; any thread may ask. Bounded: the project asked for longest ago is forgotten
    (I44).
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
        self._clock = clock
        self._log = log
        self._read = read
        self._first_s = first_s
        self._again_s = again_s
        self._lock = threading.Lock()
        self._known: OrderedDict[str, _Project] = OrderedDict()

    def settings(self, directory: str) -> Settings:
        """What counts in this folder."""
        if not directory:
            return self._base
        now = self._clock.now_ms()
        with self._lock:
            known = self._known.setdefault(directory, _Project(now - TTL_MS, self._base))
            self._known.move_to_end(directory)
            if len(self._known) > KEPT:
                self._known.popitem(last=False)
        if not 0 <= now - known.at_ms < TTL_MS:
            self._look(known, directory, now)
        return known.settings

    def _look(self, known: _Project, directory: str, now: int) -> None:
        first = known.text is None and known.error is None
        reading, begun = known.reading, known.reading is not None
        if reading is None:
            reading = known.reading = self._begin(directory)
        if not reading.done.wait(0 if begun else self._first_s if first else self._again_s):
            if first:
                self._understand(known, directory, _Reading(error="its disk does not answer"))
            return
        known.reading, known.at_ms = None, now
        self._understand(known, directory, reading)

    def _begin(self, directory: str) -> _Reading:
        found = _Reading()

        def read() -> None:
            try:
                found.text = self._read(Path(directory))
            except (OSError, ValueError) as e:
                found.error = words(e)
            finally:
                found.done.set()

        try:
            threading.Thread(target=read, name="project settings", daemon=True).start()
        except RuntimeError as e:
            found.error = f"no thread can be started: {e}"
            found.done.set()
        return found

    def _understand(self, known: _Project, directory: str, found: _Reading) -> None:
        if (known.text, known.error) == (found.text, found.error):
            return
        known.text, known.error = found.text, found.error
        known.settings, problems = (
            config.unread(self._base, found.error) if found.error else config.tighten(self._base, found.text)
        )
        if problems:
            self._log.warning("project settings", directory=directory, problems=problems)
