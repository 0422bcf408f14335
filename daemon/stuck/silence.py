"""Is this silent session stuck? The case, the fixed rules, and the one question to a fast model.

The case is made from the host's messages, never from events alone; secrets are redacted here, once (I46). The
rules answer first, at no cost. When the model fails, nobody knows, so nobody is nudged (I30).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal, get_args

import msgspec

from ..core.cuts import argument_in_short, head_and_tail
from ..core.errors import BadReply
from ..core.evidence import Ending, ending
from ..core.guards import PLAN_AGENTS
from ..core.llm import Prompt, Reply
from ..core.redact import redact
from ..core.reply import BadForm, answered, wanted_object
from ..core.template import fill
from ..core.transcript import Model
from .loops import Loop

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from ..core.transcript import ToolCall, Transcript

Reason = Literal["genuinely_stuck", "waiting_for_user", "working", "complete"]
REASONS: Final[tuple[Reason, ...]] = get_args(Reason)
YOUNG_MS: Final = 30_000
SURE: Final = 0.6
REQUEST_CHARS: Final = 2_000
REPLY_CHARS: Final = 3_000
CALL_CHARS: Final = 200
CALLS: Final = 8
MESSAGE_CHARS: Final = 300
RULES: Final = "rules"
_PENDING: Final = frozenset({"pending", "running"})
_PLAIN: Final = re.compile(r"[\w\s.,:;!?'\"()–—-]*")  # noqa: RUF001 -- dashes as people write them
_TEXT: Final = {"type": "string"}
_FIELDS: Final = {
    "reasons": _TEXT,
    "nonce": _TEXT,
    "stuck": {"type": "boolean"},
    "reason": {"type": "string", "enum": list(REASONS)},
    "confidence": {"type": "number"},
    "shouldNudge": {"type": "boolean"},
    "nudgeMessage": _TEXT,
}
ANSWER: Final[dict[str, object]] = {
    "type": "object",
    "properties": _FIELDS,
    "required": list(_FIELDS),
    "additionalProperties": False,
}


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
    nonce: str
    seen: Seen
    request: str
    reply: str
    ending: Ending
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
        """The answer stays the same while this does."""
        ended = (self.finish, self.completed, self.error)
        return (self.turn, len(self.reply), self.pending, len(self.calls), *ended, self.seen.busy)


@dataclass(frozen=True, slots=True)
class Assessment:
    """The answer. ``reason`` is None when no rule or model could answer; ``why`` explains the answer.

    ``nudge`` is the answer's `shouldNudge`, true only with ``genuinely_stuck``; ``message`` is its
    `nudgeMessage`.
    """

    reason: Reason | None
    why: str = ""
    confidence: float = 1.0
    nudge: bool = False
    message: str = ""
    provider: str = RULES
    model: str = ""
    bad: tuple[BadForm, ...] = ()

    @property
    def stuck(self) -> bool:
        """Whether the agent is stuck."""
        return self.reason == "genuinely_stuck"


def make_case(transcript: Transcript, seen: Seen, *, nonce: str, loop: Loop | None = None) -> Case | None:
    """The case of the session as it is now; None when nobody asked for anything."""
    task = transcript.task
    if task is None:
        return None
    newest = transcript.messages[-1]
    last = newest if newest.role == "assistant" else None  # else the agent has not answered it yet
    reply, calls = redact(last.text) if last else "", transcript.calls
    return Case(
        session=transcript.session,
        task=task.id,
        turn=last.id if last else "",
        nonce=nonce,
        seen=seen,
        request=head_and_tail(redact(task.text), REQUEST_CHARS),
        reply=reply[-REPLY_CHARS:],
        ending=ending(reply, last.finish if last else ""),
        pending=tuple(_in_short(c) for c in calls if c.status in _PENDING),
        calls=tuple(f"{_in_short(c)} → {_outcome(c)}" for c in calls[-CALLS:]),
        tokens=last.tokens if last else 0,
        finish=last.finish if last else "",
        completed=bool(last and last.completed),
        error=last.error if last else "",
        agent=task.agent,
        model=task.model,
        loop=loop,
    )


def _in_short(call: ToolCall) -> str:
    return f"{call.tool} {argument_in_short(call, CALL_CHARS)}".strip()


def _outcome(call: ToolCall) -> str:
    if call.status in _PENDING or call.status == "error":
        return call.status
    return "ok" if call.exit in {None, 0} else f"exit {call.exit}"


def certain(case: Case) -> Assessment | None:
    """The answer of the fixed rules, the surest first; None when a model must be asked (I29, I30, I33)."""
    seen = case.seen
    if seen.silent_ms < YOUNG_MS:
        return Assessment("working", "younger than 30 seconds")
    if case.error or seen.retrying:
        return Assessment("working", "trouble of the host or its model, which it deals with itself")
    if seen.waiting:
        return Assessment("waiting_for_user", "a permission or a question is open")
    if case.pending:
        return Assessment("working", f"a tool runs: {case.pending[0]}")
    if seen.children:
        return Assessment("working", "a sub-agent works")
    if not seen.busy and case.agent in PLAN_AGENTS:
        return Assessment("waiting_for_user", "a plan waits for the person")
    if case.loop is not None and (seen.busy or case.ending in {"cut_off", "empty"}):
        return Assessment("genuinely_stuck", f"it repeats itself: {case.loop.what}", nudge=True)
    if not seen.busy and case.ending == "question":
        return Assessment("waiting_for_user", "the answer ends with a question")
    return None


def assess(case: Case, texts: Mapping[str, str]) -> Generator[Prompt, Reply, Assessment]:
    """Assess the session. Yields at most one prompt. ``texts``: the prompts in force, by name."""
    if (sure := certain(case)) is not None:
        return sure
    answer = yield from answered(ask(case, texts), lambda reply: _read(reply, case.nonce))
    if answer.found is None:
        return Assessment(None, answer.why, bad=answer.bad)
    said, why = answer.found, " ".join(answer.found.reasons.split())[:MESSAGE_CHARS]
    by = (answer.provider, answer.model)
    stuck = said.reason == "genuinely_stuck"
    if said.stuck != stuck or (
        stuck and said.confidence < SURE
    ):  # it contradicts itself, or is not sure enough
        return Assessment(
            "working", f"not sure enough: {why}"[:MESSAGE_CHARS], said.confidence, False, "", *by
        )
    message = " ".join(said.nudge_message.split())
    if len(message) > MESSAGE_CHARS or not _PLAIN.fullmatch(message):
        message = ""  # it may repeat what a tool result wants the agent to do (I27)
    return Assessment(said.reason, why, said.confidence, said.should_nudge and stuck, message, *by)


class _Said(msgspec.Struct, rename="camel"):
    stuck: bool
    reason: Reason
    confidence: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0
    should_nudge: bool = False
    nudge_message: str = ""
    reasons: str = ""


def _read(reply: Reply, nonce: str) -> _Said:
    data = wanted_object(reply, nonce, "stuck", "reason", what="stuck")
    try:
        return msgspec.convert(dict(data), _Said)
    except msgspec.ValidationError as e:
        raise BadReply(f"the answer about a silent session: {e}", raw=reply.text or str(data)) from None


def ask(case: Case, texts: Mapping[str, str]) -> Prompt:
    """The question to a fast model."""
    seen = case.seen
    state = "still counts as working" if seen.busy else "is idle"
    facts = [
        f"the host says the session {state}; nothing has come for {seen.silent_ms // 1000} s",
        f"the last answer: finish {case.finish or 'none'}, "
        f"{'completed' if case.completed else 'not completed'}, {case.tokens} tokens, "
        f"{len(case.reply)} characters; it ends as: {case.ending}",
        f"pending tool calls: {', '.join(case.pending) or 'none'}",
        *(f"call: {call}" for call in case.calls),
    ]
    values = {
        "nonce": case.nonce,
        "request": case.request or "(empty)",
        "facts": "\n".join(facts),
        "reply": case.reply or "(nothing yet)",
    }
    return Prompt(
        purpose="stuck",
        tier="fast",
        system=texts["stuck"].replace("{nonce}", case.nonce),
        text=fill(texts["stuck_case"], values),
        session=case.session,
        model=case.model,
        nonce=case.nonce,
        schema=ANSWER,
        max_tokens=500,
    )
