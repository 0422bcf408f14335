"""The case of a compaction: all that the look after it may use, made before the flow starts.

It is made from the host's messages and the task's last verdict. Secrets are redacted here, once (I46).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal

from ..core.cuts import argument_in_short, head_and_tail
from ..core.redact import redact, redact_head, redact_tail
from ..core.transcript import Message, Model
from ..core.verdict import FinalState
from .github import GithubWork, github_work

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..core.transcript import ToolCall, Transcript
    from ..core.verdict import Verdict

EARLIER_REQUESTS: Final = 5
REQUEST_CHARS: Final = 6_000
TEXT_CHARS: Final = 4_000  # of the last reply, and of the summary
RECENT_CALLS: Final = 20
CALL_CHARS: Final = 160
MOST_TOOLS: Final = 30
MOST_OPEN: Final = 20
OPEN_CHARS: Final = 300
_TOLD_BY: Final = ("command", "filePath", "file_path", "path", "pattern", "query", "url", "description")


@dataclass(frozen=True, slots=True)
class Templates:
    """The prompt texts in force: ``compaction.txt``, ``compaction_case.txt``, ``compaction_again.txt``."""

    system: str
    case: str
    again: str


@dataclass(frozen=True, slots=True)
class Compacted:
    """The newest compaction of a transcript. ``auto``: the host began it. ``after``: messages follow its
    summary. ``in_vain``: after the compaction before this one we prompted the agent, and it made no tool
    call.
    """

    summary: Message
    auto: bool
    after: bool
    in_vain: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """One compaction to be looked at. ``turn`` is the summary message; ``at`` is epoch ms.

    ``task``: empty when nobody asked for anything. ``tools``: ``bash x12``, most used first. ``recent``: the
    last calls in short. ``todos``: those that are not done. ``open_items`` and ``phase``: the missing items
    and the state of the task's last verdict, empty without a verdict.
    """

    session: str
    task: str
    turn: str
    at: int
    nonce: str
    requests: tuple[str, ...]
    earlier: tuple[str, ...]
    last_reply: str
    summary: str
    templates: Templates
    auto: bool = False
    tools: tuple[str, ...] = ()
    recent: tuple[str, ...] = ()
    github: GithubWork = field(default_factory=GithubWork)
    todos: tuple[str, ...] = ()
    open_items: tuple[str, ...] = ()
    phase: FinalState | Literal[""] = ""
    agent: str = ""
    model: Model | None = None


def compacted(transcript: Transcript) -> Compacted | None:
    """The newest compaction that ended with a summary, or None. Without the host's mark a person began it."""
    messages = transcript.messages
    at = next((i for i in reversed(range(len(messages))) if _is_summary(messages[i])), -1)
    if at < 0:
        return None
    before = messages[:at]
    asked = next((m for m in reversed(before) if m.role == "user"), None)
    return Compacted(
        messages[at],
        auto=asked is not None and asked.compaction == "auto",
        after=at + 1 < len(messages),
        in_vain=_in_vain(before),
    )


def verdict_of(transcript: Transcript, last: Verdict | None) -> Verdict | None:
    """``last`` if it is about the transcript's task."""
    task = transcript.task
    return last if last is not None and task is not None and last.task == task.id else None


def make_case(
    transcript: Transcript, *, at: int, nonce: str, templates: Templates, last: Verdict | None = None
) -> Case:
    """The case of the transcript's newest compaction. ``last``: the session's last stored verdict.

    Raises ``ValueError`` without a summary; ``decide.wanted`` has ruled that out.
    """
    found, task, last = compacted(transcript), transcript.task, verdict_of(transcript, last)
    if found is None:
        raise ValueError("a case needs a summary")
    requests = transcript.requests
    before = transcript.messages[: transcript.messages.index(requests[0])] if requests else ()
    earlier = [m.text for m in before if m.human and m.text]
    before_summary = transcript.messages[: transcript.messages.index(found.summary)]
    calls = transcript.calls
    return Case(
        session=transcript.session,
        task=task.id if task else "",
        turn=found.summary.id,
        at=at,
        nonce=nonce,
        requests=tuple(_clip(m.text, REQUEST_CHARS) for m in requests),
        earlier=tuple(_clip(text, TEXT_CHARS) for text in earlier[-EARLIER_REQUESTS:]),
        last_reply=_tail(_last_reply(before_summary)),
        summary=_clip(found.summary.text, TEXT_CHARS),
        templates=templates,
        auto=found.auto,
        tools=tuple(f"{tool} x{n}" for tool, n in Counter(c.tool for c in calls).most_common(MOST_TOOLS)),
        recent=tuple(_short(c) for c in calls[-RECENT_CALLS:]),
        github=_redacted(github_work(transcript)),
        todos=_left(t.text for t in transcript.todos if t.status in {"pending", "in_progress"}),
        open_items=_left(m.text for m in last.missing) if last else (),
        phase=last.state if last else "",
        agent=task.agent if task else "",
        model=task.model if task else None,
    )


def _is_summary(message: Message) -> bool:
    return message.role == "assistant" and message.summary and not message.error


def _in_vain(before: tuple[Message, ...]) -> bool:
    """Whether our prompt after the summary before led to no tool call, as the context is full (I8)."""
    at = next((i for i in reversed(range(len(before))) if before[i].human or before[i].order), 0)
    ours = at > 0 and bool(before[at].order) and _is_summary(before[at - 1])
    return ours and not any(m.calls for m in before[at:])


def _last_reply(messages: tuple[Message, ...]) -> str:
    """The agent's last text since a person typed, or empty."""
    for m in reversed(messages):
        if m.human:
            break
        if m.role == "assistant" and not m.summary and m.text.strip():
            return m.text
    return ""


def _clip(text: str, limit: int) -> str:
    """``text`` redacted, then cut: a secret that is cut first may not be recognised."""
    return head_and_tail(redact(text), limit)


def _tail(text: str) -> str:
    return redact_tail(text, TEXT_CHARS)


def _left(items: Iterable[str]) -> tuple[str, ...]:
    texts = (redact_head(" ".join(item.split()), OPEN_CHARS) for item in items)
    return tuple(text for text in texts if text)[:MOST_OPEN]


def _redacted(work: GithubWork) -> GithubWork:
    references = tuple(replace(r, quote=redact(r.quote)) for r in work.references)
    target = replace(work.target, quote=redact(work.target.quote)) if work.target else None
    return replace(work, references=references, target=target)


def _short(call: ToolCall) -> str:
    """``bash `pytest -q` exit 1``."""
    line = argument_in_short(call, CALL_CHARS, _TOLD_BY)
    ended = f"exit {call.exit}" if call.exit is not None else call.status
    return f"{call.tool} `{line}` {ended}" if line else f"{call.tool} {ended}"
