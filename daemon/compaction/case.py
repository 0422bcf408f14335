"""The case of a compaction, and the one question about it.

The case is made from the host's messages and the task's last verdict; secrets are redacted here, once (I46).
The model is asked once, and once more when its reply had a wrong form. After a failure there is no action,
and nothing is sent (I30).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Final, Literal, get_args

import msgspec

from ..core.cuts import argument_in_short, head_and_tail
from ..core.errors import BadReply, Unavailable
from ..core.llm import Prompt, Reply
from ..core.redact import redact, redact_head, redact_tail
from ..core.reply import BadForm, Talk, wanted_object
from ..core.template import fill
from ..core.transcript import Message, Model
from ..core.verdict import FinalState
from .github import GithubWork, github_work

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping

    from ..core.transcript import ToolCall, Transcript
    from ..core.verdict import Verdict

Action = Literal["needs_github_update", "continue_task", "needs_clarification", "task_complete"]
ACTIONS: Final[tuple[Action, ...]] = get_args(Action)
RULES: Final = "rules"
TRIES: Final = 2
MAX_TOKENS: Final = 500
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


_TEXT: Final = {"type": "string"}
_FIELDS: Final = {
    "reason": _TEXT,
    "nonce": _TEXT,
    "action": {"type": "string", "enum": list(ACTIONS)},
    "confidence": {"type": "number"},
    "message": _TEXT,
}
ANSWER: Final[dict[str, object]] = {
    "type": "object",
    "properties": _FIELDS,
    "required": list(_FIELDS),
    "additionalProperties": False,
}


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
    """One compaction to be looked at. ``turn`` is the summary message.

    ``task``: empty when nobody asked for anything. ``tools``: ``bash x12``, most used first. ``recent``: the
    last calls in short. ``todos``: those that are not done. ``open_items`` and ``phase``: the missing items
    and the state of the task's last verdict, empty without a verdict.
    """

    session: str
    task: str
    turn: str
    nonce: str
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


def make_case(transcript: Transcript, *, nonce: str, last: Verdict | None = None) -> Case:
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
        nonce=nonce,
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


def _left(items: Iterable[str]) -> tuple[str, ...]:
    texts = (redact_head(" ".join(item.split()), OPEN_CHARS) for item in items)
    return tuple(text for text in texts if text)[:MOST_OPEN]


def _short(call: ToolCall) -> str:
    """``bash `pytest -q` exit 1``."""
    line = argument_in_short(call, CALL_CHARS, _TOLD_BY)
    ended = f"exit {call.exit}" if call.exit is not None else call.status
    return f"{call.tool} `{line}` {ended}" if line else f"{call.tool} {ended}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the agent needs. ``action`` is None when nothing was decided.

    ``why``: the model's reason, or the failure. ``message``: the model's words for the agent, not cleaned.
    ``bad``: replies that could not be read.
    """

    action: Action | None
    why: str = ""
    confidence: float = 0.0
    message: str = ""
    provider: str = ""
    bad: tuple[BadForm, ...] = ()


def evaluate(case: Case, texts: Mapping[str, str]) -> Generator[Prompt, Reply, Outcome]:
    """What the agent needs after the compaction. ``texts``: the prompts in force, by name."""
    if not case.task:
        return Outcome(None, "nobody asked for anything", provider=RULES)
    if case.phase == "complete":
        return Outcome("task_complete", "the task was judged complete", 1.0, provider=RULES)
    data = _data(case, texts["compaction_case"])
    talk, text = Talk(), data
    try:
        for _ in range(TRIES):
            prompt = Prompt(
                purpose="compaction",
                tier="fast",
                system=texts["compaction"].replace("{nonce}", case.nonce),
                text=text,
                session=case.session,
                model=case.model,
                nonce=case.nonce,
                schema=ANSWER,
                max_tokens=MAX_TOKENS,
            )
            reply = yield from talk.ask(prompt)
            if reply is not None:
                try:
                    said = parse(reply, case.nonce)
                except BadReply as e:
                    talk.broke(reply, prompt, e)
                else:
                    reason, message = said.reason.strip()[:ANSWER_CHARS], said.message.strip()[:ANSWER_CHARS]
                    return Outcome(
                        said.action, reason, said.confidence, message, reply.provider, tuple(talk.bad)
                    )
            why = f"The reply could not be used: {talk.why[:300]}."
            text = fill(texts["compaction_again"], {"case": data, "nonce": case.nonce, "why": why})
    except Unavailable as e:
        return Outcome(None, f"no model answered: {e}", bad=tuple(talk.bad))
    return Outcome(None, talk.why, bad=tuple(talk.bad))


class Said(msgspec.Struct):
    """A model's answer."""

    action: Action
    confidence: Annotated[float, msgspec.Meta(ge=0, le=1)]
    reason: str = ""
    message: str = ""


def parse(reply: Reply, nonce: str = "") -> Said:
    """The answer in ``reply``. Raises ``BadReply`` for any other form (I18). ``nonce``: if given, a reply in
    prose must repeat it.
    """
    data = wanted_object(reply, nonce, "action", "confidence", what="action")
    try:
        return msgspec.convert(dict(data), Said)
    except msgspec.ValidationError as e:
        raise BadReply(f"the answer after a compaction: {e}", raw=reply.text or str(data)) from None


def _data(case: Case, template: str) -> str:
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
    values = {
        "nonce": case.nonce,
        "requests": lines([*earlier, *(f"{i}. {text}" for i, text in enumerate(case.requests, 1))]),
        "open": lines(opened),
        "tools": lines([*([", ".join(case.tools)] if case.tools else ()), *case.recent]),
        "github": lines(github),
        "reply": case.last_reply or "(none)",
        "summary": case.summary or "(empty)",
    }
    return fill(template, values)
