"""A workspace's project rules: what its AGENTS.md and CLAUDE.md demand before work counts as done (I26).

Blocking, and up to 30 ms for a text made to be slow: run in a thread. Reads at most once a minute per
workspace; never writes. The files are the project's, so untrusted: a link that leads out of the workspace, a
FIFO, a file over 256 KB or one that is not UTF-8 counts as not there, quietly, because the agent itself may
read it otherwise than we do.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from .bounded import read_text

if TYPE_CHECKING:
    from ..core.ports import Clock

FILES = ("AGENTS.md", "CLAUDE.md", ".claude/CLAUDE.md")
LIMIT = 256 * 1024  # bytes of one file
TTL_S = 60.0
DIRECTORIES_KEPT = 200


class ProjectRules:
    """The project rules by workspace."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[str, tuple[float, str]] = {}
        self._lock = threading.Lock()  # judgements make their cases in threads

    def lines(self, directory: str) -> str:
        """At most 2,400 characters, "" where the project has no rules. Never raises."""
        now = self._clock.monotonic()
        known = self._known.get(directory)
        if known is not None and now - known[0] < TTL_S:
            return known[1]
        lines = project_rule_lines(directory)
        with self._lock:
            self._known.pop(directory, None)
            if len(self._known) >= DIRECTORIES_KEPT:
                del self._known[next(iter(self._known))]
            self._known[directory] = (now, lines)
        return lines


def project_rule_lines(directory: str) -> str:
    """The project rules of the workspace as its files are now. Never raises."""
    if not directory:
        return ""
    from ..evidence.project_rules import select

    return select(*(text for name in FILES if (text := _read(directory, name))))


def _read(directory: str, name: str) -> str:
    try:
        root = os.path.realpath(directory)
        path = Path(os.path.realpath(Path(root, name)))
        if not path.is_relative_to(root):
            return ""
        return read_text(path, LIMIT, follow=False) or ""
    except (OSError, ValueError):
        return ""
