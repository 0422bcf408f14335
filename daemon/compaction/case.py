"""The case of a compaction, and the one question about it.

The case is made from the host's messages and the task's last verdict; secrets are redacted here, once (I46).
The model is asked once, and once more when its reply had a wrong form. After a failure there is no action,
and nothing is sent (I30).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Final, Literal

from msgspec import Meta, Struct, field

from ..core.cuts import argument_in_short, head_and_tail
from ..core.question import Answer, Question
from ..core.transcript import Message, Model
from ..core.verdict import FinalState
from ..redact import redact, redact_head, redact_tail
from .github import GithubWork, github_work

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..core.transcript import ToolCall, Transcript
    from ..core.verdict import Verdict

Action = Literal["needs_github_update", "continue_task", "needs_clarification", "task_complete"]
RULES: Final = "rules"
ANSWER_CHARS: Final = 4_000
EARLIER_REQUESTS: Final = 5
EARLIER_CHARS: Final = 300
REQUEST_CHARS: Final = 6_000
TEXT_CHARS: Final = 4_000  # of the last reply, and of the summary
RECENT_CALLS: Final = 20
CALL_CHARS: Final = 160
MOST_TOOLS: Final = 30
MOST_OPEN: Final = 20
OPEN_CHARS: Final = 300
_TOLD_BY: Final = ("command", "filePath", "file_path", "path", "pattern", "query", "url", "description")


class Said(Struct, kw_only=True):
    """The model's answer (I18)."""

    reason: str = ""
    nonce: str = ""
    action: Action
    confidence: Annotated[float, Meta(ge=0, le=1)]
    message: str = ""


class Compacted(Struct, frozen=True):
    """The newest compaction of a transcript. ``auto``: the host began it. ``after``: messages follow its
    summary. ``in_vain``: after the compaction before this one we prompted the agent, and it made no tool
    call.
    """

    summary: Message
    auto: bool
    after: bool
    in_vain: bool = False


class Case(Struct, frozen=True):
    """One compaction to be looked at. ``turn`` is the summary message.

    ``task``: empty when nobody asked for anything. ``tools``: ``bash x12``, most used first. ``recent``: the
    last calls in short. ``todos``: those that are not done. ``open_items`` and ``phase``: the missing items
    and the state of the task's last verdict, empty without a verdict.
    """

    task: str
    turn: str
    requests: tuple[str, ...]
    earlier: tuple[str, ...]
    last_reply: str
    summary: str
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


def make_case(transcript: Transcript, last: Verdict | None = None) -> Case:
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
        task=task.id if task else "",
        turn=found.summary.id,
        requests=tuple(_clip(m.text, REQUEST_CHARS) for m in requests),
        earlier=tuple(_clip(text, TEXT_CHARS) for text in earlier[-EARLIER_REQUESTS:]),
        last_reply=redact_tail(_last_reply(before_summary), TEXT_CHARS),
        summary=_clip(found.summary.text, TEXT_CHARS),
        tools=tuple(f"{tool} x{n}" for tool, n in Counter(c.tool for c in calls).most_common(MOST_TOOLS)),
        recent=tuple(_short(c) for c in calls[-RECENT_CALLS:]),
        github=github_work(transcript),
        todos=_left(t.text for t in transcript.todos if t.status in {"pending", "in_progress"}),
        open_items=_left(m.text for m in last.missing) if last else (),
        phase=last.state if last else "",
        agent=task.agent if task else "",
        model=task.model if task else None,
    )


def _is_summary(message: Message) -> bool:
    return message.role == "assistant" and message.summary and not message.error


def _in_vain(before: tuple[Message, ...]) -> bool:
    """Says whether our prompt after the summary before led to no tool call, as the context is full (I8)."""
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


def _left(items: Iterable[str]) -> tuple[str, ...]:
    texts = (redact_head(" ".join(item.split()), OPEN_CHARS) for item in items)
    return tuple(text for text in texts if text)[:MOST_OPEN]


def _short(call: ToolCall) -> str:
    """``bash `pytest -q` exit 1``."""
    line = argument_in_short(call, CALL_CHARS, _TOLD_BY)
    ended = f"exit {call.exit}" if call.exit is not None else call.status
    return f"{call.tool} `{line}` {ended}" if line else f"{call.tool} {ended}"


class Outcome(Struct, frozen=True):
    """The agent's need. ``action`` is None when nothing was decided.

    ``why``: the model's reason, or the failure. ``message``: the model's words for the agent, not cleaned.
    ``nonce``: the marker that must not be in them.
    """

    action: Action | None
    why: str = ""
    confidence: float = 0.0
    message: str = ""
    provider: str = RULES
    nonce: str = ""


def certain(case: Case) -> Outcome | None:
    """The outcome that needs no model."""
    if not case.task:
        return Outcome(None, "nobody asked for anything")
    if case.phase == "complete":
        return Outcome("task_complete", "the task was judged complete", 1.0)
    return None


def outcome(answer: Answer[Said]) -> Outcome:
    """The agent's need, as the model says."""
    said = answer.reply
    if said is None:
        return Outcome(None, answer.why, provider=answer.provider)
    reason, message = (text.strip()[:ANSWER_CHARS] for text in (said.reason, said.message))
    return Outcome(said.action, reason, said.confidence, message, answer.provider, answer.nonce)


def question(case: Case) -> Question[Said]:
    """The question to a fast model."""

    def lines(rows: Iterable[str]) -> str:
        return "\n".join(rows) or "(none)"

    work = case.github
    earlier = [f"(context, an earlier request) {head_and_tail(text, EARLIER_CHARS)}" for text in case.earlier]
    github = [
        *([f"commands that ran: {', '.join(work.tools)}"] if work.tools else ()),
        *([f"the last command was about: {work.target.name}"] if work.target else ()),
        *([f"named in texts: {', '.join(work.named)}"] if work.named else ()),
    ]
    opened = [
        *([f"the last verdict: {case.phase}"] if case.phase else ()),
        *(f"open item: {item}" for item in case.open_items),
        *(f"open todo: {todo}" for todo in case.todos),
    ]
    slots = {
        "requests": lines([*earlier, *(f"{i}. {text}" for i, text in enumerate(case.requests, 1))]),
        "open": lines(opened),
        "tools": lines([*([", ".join(case.tools)] if case.tools else ()), *case.recent]),
        "github": lines(github),
        "reply": case.last_reply or "(none)",
        "summary": case.summary or "(empty)",
    }
    return Question("compaction", slots, Said, model=case.model, max_tokens=500)
