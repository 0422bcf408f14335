"""The daemon with a clock that a test moves (see ``shifted_daemon``): 30 s without waiting."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from harness.machine.reflectd import Daemon
from harness.machine.sandbox import Sandbox
from harness.machine.waiting import wait_until


class ShiftedDaemon(Daemon):
    """``with daemon.shifted(40): …`` is 40 s later for the daemon, and for nobody else."""

    def __init__(self, box: Sandbox, **env: str) -> None:
        super().__init__(box, **env)
        self._offset, self._ahead = box.root / "offset", 0.0
        self.program = ("-m", "tests.support.machine.shifted_daemon", "--offset", str(self._offset))

    def shift(self, seconds: float) -> None:
        """Move the clock to so many seconds ahead of the machine's; the daemon has seen it when this returns.

        One that does not run starts with it. More than 60 s at once is a machine that slept.
        """
        if seconds == self._ahead:
            return
        self._ahead, before = seconds, self._moves()
        new = self._offset.with_suffix(".new")
        new.write_text(str(round(seconds * 1000)), "ascii")
        new.replace(self._offset)
        if self.running:
            wait_until(lambda: self._moves() > before, "move of the daemon's clock", self.log)

    @contextlib.contextmanager
    def shifted(self, seconds: float) -> Iterator[None]:
        """So many seconds later, for a while."""
        self.shift(seconds)
        try:
            yield
        finally:
            self.shift(0)

    def skip(self, seconds: float) -> None:
        """So much later for a moment: what was due by then has begun."""
        with self.shifted(seconds):
            pass

    def _moves(self) -> int:
        return self.log().count("the clock was moved")
