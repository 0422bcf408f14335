"""The calls of a sub-agent, from the transcript that Claude Code keeps of it beside the session's own.

The file is ``<session>/subagents/agent-<id>.jsonl``. Only its end is read where it is large. A file that is
not there or can't be read gives no calls. It blocks: call it in a thread.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ...core.errors import Unavailable
from ...core.transcript import MAX_AGENTS
from .lines import HEAD, entry_of, is_bulky
from .messages import messages_of
from .transcript import end_of

if TYPE_CHECKING:
    from pathlib import Path

    from ...core.transcript import ToolCall, Transcript

READ: Final = 2 << 20  # bytes of one file
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,80}")


def with_sub_agents(transcript: Transcript, path: Path) -> Transcript:
    """The transcript with the calls of its last sub-agents. ``path``: the session's own file."""
    folder = path.with_suffix("") / "subagents"
    names = [agent for agent in transcript.agents[-MAX_AGENTS:] if _ID.fullmatch(agent)]
    files = {agent: folder / f"agent-{agent}.jsonl" for agent in names}
    cut = {agent for agent, file in files.items() if _size(file) > READ}
    return transcript.with_agents({agent: calls_of(file) for agent, file in files.items()}, cut)


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


def calls_of(path: Path) -> tuple[ToolCall, ...]:
    """All calls in the file, in order; empty when it can't be read."""
    try:
        data = end_of(path, READ)
    except Unavailable:
        return ()
    lines = (line for line in data.split(b"\n") if line.startswith(b"{") and not is_bulky(line[:HEAD]))
    entries = [entry for line in lines if (entry := entry_of(line, agent=True)) is not None]
    return tuple(c for m in messages_of(entries, lambda _: False) for c in m.calls)
