"""Edits that failed and commands that were killed, where nothing after them may have made them good.

Takes the calls in order.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ...core.transcript import is_denied
from .actions import Write
from .tools import WRITE_TOOLS
from .writes import file_name, written_by_tool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...core.transcript import ToolCall
    from .actions import Action

MAX_KEPT: Final = 20
_KILLED: Final = re.compile(
    r"terminated command after exceeding timeout|Command timed out after|\bCommand timed out\b"
    r"|exceeded (?:the )?(?:timeout|time limit) of|(?:^|\n)Killed(?:$|\n)|Out of memory: Killed"
)
_KILL_CODES: Final = frozenset({124, 137})
_LASTS: Final = re.compile(  # meant to run on: killing it is how the agent stops it
    r"\b(?:serve|server|start|dev|watch|runserver|uvicorn|gunicorn|up|tail -f|logs? -f|nohup|timeout"
    r"|preview|sleep|monitor"
    r"|listen|attach|repl|shell|http\.server|port-forward|ping|top|nodemon|daemon|emulator|simulator)\b"
    r"|--watch|&\s*$"
)
_ENDS: Final = re.compile(
    r"\b(?:docker|podman|buildah) (?:build|pull|push)\b|\b(?:compile|install|migrate)\b"
)
_FALLBACK: Final = re.compile(
    r"no changes to (?:apply|make)|are (?:identical|the same)|already", re.IGNORECASE
)
_TAIL: Final = 600  # characters of an output that say that it was killed


@dataclass(slots=True)
class Failures:
    """The failures nothing made good so far: paths of edits that failed, commands that were killed."""

    edits: list[str] = field(default_factory=list)
    killed: list[str] = field(default_factory=list)

    def take(self, call: ToolCall, script: str, actions: Sequence[Action]) -> None:
        """The next call. ``script``: what a shell call ran; ``actions``: what was read from it."""
        if call.status == "error" and call.tool.lower() in WRITE_TOOLS:
            if not is_denied(call) and not _FALLBACK.search(call.error[:400] or call.output[:400]):
                found = [w.path for w in written_by_tool(call.tool, call.input) if w.path != "a file"]
                self.edits = (self.edits + found)[-MAX_KEPT:]
            return
        if script:
            self._ran(call, script)
        writes = {file_name(a.path) for a in actions if isinstance(a, Write)}
        self.edits = [e for e in self.edits if file_name(e) not in writes and file_name(e) not in script]

    def _ran(self, call: ToolCall, script: str) -> None:
        if self.killed:
            core = _core(script)
            self.killed = [k for k in self.killed if 2 * len(core & _core(k)) < len(_core(k))]
        stopped = was_stopped(call)
        lasts = _LASTS.search(script[:500]) and not (_ENDS.search(script[:500]) and "watch" not in script)
        if stopped and not lasts and len(self.killed) < MAX_KEPT:
            self.killed.append(" ".join(script[:300].split()))


def was_stopped(call: ToolCall) -> bool:
    """Whether a command was killed, by a timeout or for its memory."""
    if call.exit == 0 or call.exit in _KILL_CODES:
        return call.exit != 0
    return bool(_KILLED.search(f"{call.output[-_TAIL:]}\n{call.error[-_TAIL:]}"))


def _core(script: str) -> set[str]:
    """The words that tell a command from others: names of files, targets, sub-commands."""
    return set(re.findall(r"[\w./:-]{4,80}", script[:500]))
