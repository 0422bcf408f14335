"""The typed transcript every judge reads, the same for all hosts.

A **task** is the last message a person typed; a **turn** is the last assistant message (DESIGN §4).
Hosts build it from their own messages and decide there which message is human; nothing here parses.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

ToolStatus = Literal["pending", "running", "completed", "error"]
Compaction = Literal["", "auto", "manual"]
TodoStatus = Literal["pending", "in_progress", "completed", "cancelled"]


@dataclass(frozen=True, slots=True)
class Model:
    """A model as the host names it, e.g. ``anthropic`` / ``claude-sonnet``."""

    provider: str
    model: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool call and its result.

    ``input`` holds the call's arguments (plain JSON values). ``output`` may be cut by the host shim
    (head and tail kept, ``cut`` characters missing). ``exit`` is a shell's exit code where known.
    """

    id: str
    tool: str
    status: ToolStatus
    input: dict[str, object] = field(default_factory=dict)
    output: str = ""
    error: str = ""
    exit: int | None = None
    cut: int = 0
    started: int = 0
    ended: int = 0


@dataclass(frozen=True, slots=True)
class Message:
    """One message. ``at`` is epoch ms.

    ``human``: a person typed it. ``order``: the id of our order that caused it (feedback), else empty.
    ``finish``: why the model stopped (``stop``, ``length``, ``tool-calls`` …), empty while it runs.
    ``error``: the host's error name (``MessageAbortedError`` …). ``calls`` keep the order of the parts.
    ``cost``: what the host says the answer cost in USD, None when it does not know; ``tokens`` in all.
    ``compaction``: this user message asked for one (the host by itself, or the person); ``summary``: its
    answer.
    """

    id: str
    role: Literal["user", "assistant"]
    at: int = 0
    text: str = ""
    human: bool = False
    order: str = ""
    agent: str = ""
    model: Model | None = None
    finish: str = ""
    error: str = ""
    error_message: str = ""
    summary: bool = False
    completed: int = 0
    calls: tuple[ToolCall, ...] = ()
    cost: float | None = None
    tokens: int = 0
    compaction: Compaction = ""


@dataclass(frozen=True, slots=True)
class Todo:
    """One entry of the agent's own todo list."""

    text: str
    status: TodoStatus


@dataclass(frozen=True, slots=True)
class Transcript:
    """Messages in order, oldest first, at least back to the task's human message.

    ``busy``: the host says the session works right now. ``parent``: id of the parent session or empty.
    """

    session: str
    messages: tuple[Message, ...] = ()
    todos: tuple[Todo, ...] = ()
    busy: bool = False
    parent: str = ""
    title: str = ""
    directory: str = ""
    missing: bool = False  # the host no longer knows this session

    @property
    def task(self) -> Message | None:
        """The last message a person typed (I28), or None."""
        return next((m for m in reversed(self.messages) if m.human), None)

    @property
    def turn(self) -> Message | None:
        """The last assistant message, or None."""
        return next((m for m in reversed(self.messages) if m.role == "assistant"), None)

    def since(self, message_id: str) -> tuple[Message, ...]:
        """Messages after ``message_id``; all of them when it is not here."""
        for i, m in enumerate(self.messages):
            if m.id == message_id:
                return self.messages[i + 1 :]
        return self.messages

    @property
    def requests(self) -> tuple[Message, ...]:
        """The human messages of this task: the last one, and those before it that no finished answer
        separates from it (mid-turn steering), oldest first.
        """
        found: list[Message] = []
        for m in reversed(self.messages):
            if m.human:
                found.append(m)
            elif found and m.role == "assistant" and m.finish == "stop" and not (m.error or m.summary):
                break
        return tuple(reversed(found))

    @property
    def work(self) -> tuple[Message, ...]:
        """Everything after the first of ``requests``: what was done for this task."""
        requests = self.requests
        return self.since(requests[0].id) if requests else self.messages

    @property
    def used(self) -> tuple[float | None, int]:
        """What the agent's work for this task cost: (USD, tokens); None when no price is known."""
        known = [m.cost for m in self.work if m.cost is not None]
        return (sum(known) if known else None), sum(m.tokens for m in self.work)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """All tool calls of ``work``, in order."""
        return tuple(c for m in self.work for c in m.calls)
