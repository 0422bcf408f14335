"""A silent session as one frozen case: what was asked, how the agent left off, what still runs.

Made from the host's messages, never from events alone. Secrets are redacted here, once (I46).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from daemon.core.endings import ending
from daemon.core.evidence import Ending
from daemon.core.redact import redact
from daemon.core.transcript import Model
from daemon.stuck.signals import Loop

if TYPE_CHECKING:
    from daemon.core.transcript import Message, ToolCall, Transcript

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
    """What the messages don't say. ``silent_ms``: since the last event, delta or output. ``retrying``: the
    host backs off from a failing model. ``waiting``: open permissions and questions. ``children``: sub-agents
    work.
    """

    busy: bool
    silent_ms: int
    retrying: bool = False
    waiting: int = 0
    children: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """One session that says nothing. ``turn`` is empty while the agent has not answered the task at all.

    ``pending``: tool calls without a result. ``tokens`` of the last answer; ``finish`` and ``completed`` as
    the host has them. ``loop``: what repeats itself at the end of the work.
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
        """What an evaluation depends on: while it is the same, its answer is."""
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
    """The case of the session as it stands; None when nobody asked for anything."""
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
        request=_middle(redact(task.text), REQUEST_CHARS),
        reply=reply[-REPLY_CHARS:],
        ending=ending(reply, last.finish if last is not None else ""),
        templates=templates,
        pending=tuple(named(c) for c in calls if c.status in {"pending", "running"}),
        calls=tuple(f"{named(c)} → {outcome(c)}" for c in calls[-CALLS:]),
        tokens=last.tokens if last is not None else 0,
        finish=last.finish if last is not None else "",
        completed=bool(last is not None and last.completed),
        error=last.error if last is not None else "",
        agent=task.agent,
        model=task.model,
        loop=loop,
    )


def _last(transcript: Transcript) -> Message | None:
    """The answer that the agent is at: none while its newest message is one to be answered."""
    newest = transcript.messages[-1] if transcript.messages else None
    return newest if newest is not None and newest.role == "assistant" else None


def named(call: ToolCall) -> str:
    """A call in one short line, without secrets."""
    said = next((v for v in call.input.values() if isinstance(v, str) and v.strip()), "")
    return " ".join(f"{call.tool} {redact(said[: 4 * CALL_CHARS])}".split())[:CALL_CHARS]


def outcome(call: ToolCall) -> str:
    """How a call ended, in a word or two."""
    if call.status in {"pending", "running"}:
        return call.status
    if call.status == "error":
        return "error"
    return "ok" if call.exit in {None, 0} else f"exit {call.exit}"


def _middle(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit // 2]} […] {text[-limit // 2 :]}"
