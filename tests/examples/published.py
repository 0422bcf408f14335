"""The published speech and Telegram plugins of opencode, as far as they read our files: a double of theirs.

Written from what was measured of them, not from ours. On an idle they look at
once, and again and again, at ``verdict_<first 8 characters>.json`` until it is fresh or their time is over.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from daemon.testing import FakeClock

FRESH_MS = 30_000
WAIT_MS = 10_000
POLL_S = 0.5
AS_WITHOUT = "as without reflectd"


@dataclass
class Reader:
    """One plugin in one opencode process. ``heard``: (session, why it was told), in order."""

    workspace: Path
    clock: FakeClock
    heard: list[tuple[str, str]] = field(default_factory=list)
    waiting: dict[str, int] = field(default_factory=dict)  # session → since when

    def idles(self, session: str) -> None:
        """opencode says ``session.idle``; the first look is at once."""
        if self.listens(session):
            self.waiting[session] = self.clock.ms
            self.look()

    def look(self) -> None:
        """Every ``POLL_S``: whoever waits reads the file."""
        for session, since in list(self.waiting.items()):
            found = self._fresh(session)
            if found is not None:
                del self.waiting[session]
                self.decide(session, found)
            elif self.clock.ms - since >= WAIT_MS:
                del self.waiting[session]
                self.heard.append((session, AS_WITHOUT))

    def _fresh(self, session: str) -> dict[str, Any] | None:
        path = self.workspace / ".reflection" / f"verdict_{session[:8]}.json"
        try:
            found: dict[str, Any] = json.loads(path.read_text("utf-8"))
        except (FileNotFoundError, ValueError):
            return None
        assert found["sessionId"] == session[:8]
        return found if self.clock.ms - found["timestamp"] < FRESH_MS else None

    def listens(self, session: str) -> bool:
        raise NotImplementedError

    def decide(self, session: str, found: dict[str, Any]) -> None:
        raise NotImplementedError


@dataclass
class Speech(Reader):
    """A fresh ``complete`` that is falsy mutes the session for the life of the process."""

    muted: set[str] = field(default_factory=set)

    def listens(self, session: str) -> bool:
        return session not in self.muted and session not in self.waiting

    def decide(self, session: str, found: dict[str, Any]) -> None:
        if found.get("complete"):
            self.heard.append((session, "complete"))
        else:
            self.muted.add(session)


@dataclass
class Telegram(Reader):
    """A falsy ``complete`` skips this idle; a later fresh ``complete`` is sent."""

    def listens(self, session: str) -> bool:
        return True

    def decide(self, session: str, found: dict[str, Any]) -> None:
        if found.get("complete"):
            self.heard.append((session, "complete"))
