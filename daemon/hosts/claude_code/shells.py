"""Which shells in the background a turn waits for, and which calls left them running.

A shell that this turn started may be a test run that the answer depends on, or a server that never ends. One
that is older counts only where the agent looked at it again. No I/O.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from ...core.transcript import ToolCall, Transcript


def awaited(transcript: Transcript, shells: Collection[str]) -> set[str]:
    """Those of ``shells`` (ids) that were started, read or awaited since a person or our feedback spoke."""
    calls: list[ToolCall] = []
    for message in reversed(transcript.messages):
        if message.human or message.order:
            break
        calls += message.calls
    started = {call.shell for call in calls}
    return {shell for shell in shells if shell and (shell in started or _is_named(shell, calls))}


def still_running(transcript: Transcript, shells: Collection[str]) -> Transcript:
    """The transcript with the calls that left one of ``shells`` running marked as running."""
    if not any(call.shell in shells for message in transcript.messages for call in message.calls):
        return transcript
    messages = (
        replace(m, calls=tuple(replace(c, status="running") if c.shell in shells else c for c in m.calls))
        for m in transcript.messages
    )
    return replace(transcript, messages=tuple(messages))


def _is_named(shell: str, calls: list[ToolCall]) -> bool:
    """Whether a call names the shell: by its id, or by its file of output, which has the id in its name."""
    return any(shell in value for call in calls for value in call.input.values() if isinstance(value, str))
