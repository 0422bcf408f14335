"""Whether a session is still where it was when a prompt for it was decided, by its transcript."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...core.transcript import Transcript


def moved_on(transcript: Transcript, task: str, turn: str) -> str:
    """Why a prompt about this task and turn is out of date; empty when it may leave. An empty ``turn``: any
    turn of the task. A compaction is no work of the agent's.
    """
    said = [m for m in transcript.messages if not (m.summary or m.compaction)]
    now = next((m for m in reversed(said) if m.role == "assistant"), None)
    begun = replace(transcript, begun=task).task
    if begun is None or begun.id != task or (now and any(m.human for m in transcript.since(now.id))):
        return "the person wrote meanwhile"
    if now is None or (turn and now.id != turn):
        return "the agent went on meanwhile"
    if now.error or not now.finish:
        return "the agent was stopped, or works"
    if said[-1] is not now:
        return "the person ran a command, or the agent was told something else"
    return ""


def has_order(transcript: Transcript, order: str) -> bool:
    """Whether the agent was told this order."""
    return any(message.order == order for message in transcript.messages)
