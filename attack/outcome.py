"""What an attack found, and how much time it has."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.machine.reflectd import Daemon

SHOWN = 20


@dataclass(slots=True)
class Outcome:
    """``done`` of ``wanted`` steps; ``figures`` in words; ``findings``: what must not be."""

    name: str
    wanted: int
    done: int = 0
    figures: str = ""
    findings: list[str] = field(default_factory=list)

    def check_log(self, daemon: Daemon) -> None:
        """A bug or a trace in the daemon's log is a finding."""
        lines = daemon.log().splitlines()
        self.findings += [
            f"log: {line[:600]}" for line in lines if "Traceback" in line or "event=bug" in line
        ]


class Deadline:
    """When an attack must stop."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    @property
    def over(self) -> bool:
        return time.monotonic() > self._end
