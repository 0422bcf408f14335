"""What a bootstrap is to do, and what came of it so far: values, and when it ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from .past import Found
from .shown import Json

SILENT_MOST: Final = 3  # sessions in a row without an answer: then there is no model


@dataclass(slots=True)
class Run:
    """What came of it so far. ``spent``: USD, and tokens at an unknown price. ``stopped``: why it ended
    early.
    """

    sessions: list[Json] = field(default_factory=list)
    spent: Json = field(default_factory=lambda: {"usd": 0.0, "tokens": 0})
    stopped: str = ""
    code: int = 0
    _silent: int = 0

    def add(self, session: Json) -> None:
        """One more session; afterwards ``stopped`` says whether another one is to be tried."""
        self.spent = session.pop("spent", self.spent)
        self.sessions.append(session)
        silent = session["state"] == "silent"
        self._silent = self._silent + 1 if silent else 0
        if silent:
            self.code = 1
        if session["state"] == "over":
            self.stopped, self.code = session["why"], 0 if session["limit"] == "command_limit" else 1
        elif self._silent == SILENT_MOST:
            self.stopped = session["why"]


@dataclass(frozen=True, slots=True)
class Plan:
    """``chosen``: the sessions to look back on, oldest first; ``left``: how many there are without --limit.
    ``out``: those that are left out, with the reason. ``told``: the daemon's estimate.
    """

    project: Path
    chosen: list[Found]
    left: int
    out: list[tuple[Found, str]]
    told: Json
