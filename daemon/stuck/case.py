"""The case of a silent session: what was asked, how the agent stopped, which tools still run.

It is made from the host's messages, never from events alone. Secrets are redacted here, once (I46).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..core.cuts import argument_in_short, head_and_tail
from ..core.evidence import Ending, ending
from ..core.redact import redact
from ..core.transcript import Model
from .signals import Loop

if TYPE_CHECKING:
    from ..core.transcript import Message, ToolCall, Transcript

REQUEST_CHARS: Final = 2_000
REPLY_CHARS: Final = 3_000
CALL_CHARS: Final = 200
CALLS: Final = 8


@dataclass(frozen=True, slots=True)
class Templates:
    """The prompt texts in force (`prompts/stuck.txt`, `prompts/stuck_case.txt`)."""

    system: str
    case: str


@dataclass(frozen=True, slots=True)
class Seen:
    """What events say and the messages don't.

    ``silent_ms``: time since the last event or output. ``retrying``: the host waits to ask a failing model
    again. ``waiting``: how many permissions and questions are open. ``children``: whether sub-agents work.
    """

    busy: bool
    silent_ms: int
    retrying: bool = False
    waiting: int = 0
    children: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """One session that has been silent. ``turn`` is empty while the agent has not answered the task at all.

    ``pending``: tool calls without a result. ``tokens``, ``finish``, ``completed`` and ``error``: of the last
    answer, as the host has them. ``loop``: the loop at the end of the work, if there is one.
    """

    session: str
    task: str
    turn: str
    at: int
    nonce: str
    seen: Seen
    request: str
    reply: str
    ending: Ending
    templates: Templates
    pending: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    tokens: int = 0
    finish: str = ""
    completed: bool = False
    error: str = ""
    agent: str = ""
    model: Model | None = None
    loop: Loop | None = None

    @property
    def state(self) -> tuple[object, ...]:
        """What an assessment depends on: while this stays the same, so does the answer."""
        ended = (self.finish, self.completed, self.error)
        return (self.turn, len(self.reply), self.pending, len(self.calls), *ended, self.seen.busy)


def make_case(
    transcript: Transcript,
    seen: Seen,
    *,
    at: int,
    nonce: str,
    templates: Templates = Templates("", ""),
    loop: Loop | None = None,
) -> Case | None:
    """The case of the session as it is now; None when nobody asked for anything."""
    task = transcript.task
    if task is None:
        return None
    last = _last(transcript)
    reply = redact(last.text) if last is not None else ""
    calls = transcript.calls
    return Case(
        session=transcript.session,
        task=task.id,
        turn=last.id if last is not None else "",
        at=at,
        nonce=nonce,
        seen=seen,
        request=head_and_tail(redact(task.text), REQUEST_CHARS),
        reply=reply[-REPLY_CHARS:],
        ending=ending(reply, last.finish if last is not None else ""),
        templates=templates,
        pending=tuple(_in_short(c) for c in calls if c.status in {"pending", "running"}),
        calls=tuple(f"{_in_short(c)} → {_outcome(c)}" for c in calls[-CALLS:]),
        tokens=last.tokens if last is not None else 0,
        finish=last.finish if last is not None else "",
        completed=bool(last is not None and last.completed),
        error=last.error if last is not None else "",
        agent=task.agent,
        model=task.model,
        loop=loop,
    )


def _last(transcript: Transcript) -> Message | None:
    """The newest message if it is an answer; None if it is one that the agent has not answered."""
    newest = transcript.messages[-1] if transcript.messages else None
    return newest if newest is not None and newest.role == "assistant" else None


def _in_short(call: ToolCall) -> str:
    return f"{call.tool} {argument_in_short(call, CALL_CHARS)}".strip()


def _outcome(call: ToolCall) -> str:
    """How a call ended, in a word or two."""
    if call.status in {"pending", "running"}:
        return call.status
    if call.status == "error":
        return "error"
    return "ok" if call.exit in {None, 0} else f"exit {call.exit}"
