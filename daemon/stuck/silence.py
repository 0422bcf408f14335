"""Is this silent session stuck? The case, the fixed rules, the one question to a fast model, the decision.

The decision is a nudge for an idle agent, a toast for the person, or nothing (I10). An agent that works is
never prompted.

The case is made from the host's messages, never from events alone; secrets are redacted here, once (I46). The
rules answer first, at no cost. When the model fails, nobody knows, so nobody is nudged (I30).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Final, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from ..core.cuts import argument_in_short, head_and_tail
from ..core.evidence import Ending, ending
from ..core.guards import PLAN_AGENTS
from ..core.orders import SendNudge, ShowToast, StoredOrder
from ..core.question import Answer, Question
from ..core.session import Session
from ..core.transcript import Model
from ..redact import redact
from .loops import Loop, loop_text

if TYPE_CHECKING:
    from ..core.guards import Limits
    from ..core.orders import NudgeKind, SendFeedback
    from ..core.transcript import ToolCall, Transcript

Reason = Literal["genuinely_stuck", "waiting_for_user", "working", "complete"]
YOUNG_MS: Final = 30_000
SURE: Final = 0.6
REQUEST_CHARS: Final = 2_000
REPLY_CHARS: Final = 3_000
CALL_CHARS: Final = 200
CALLS: Final = 8
MESSAGE_CHARS: Final = 300
RULES: Final = "rules"
HEADING: Final = "## Reflection-3: Continue"
MAX_NUDGES: Final = 3
QUOTE_CHARS: Final = 120
END: Final = (
    "Go on with the task from there. If it is finished, or if only the person can decide, say so in one "
    "sentence and stop. (reflectd)"
)
_PENDING: Final = frozenset({"pending", "running"})
_PLAIN: Final = re.compile(r"[\w\s.,:;!?'\"()–—-]*")  # noqa: RUF001 -- dashes as people write them


class Said(Struct, kw_only=True, rename="camel"):
    """The model's answer."""

    reasons: str = ""
    nonce: str = ""
    stuck: bool
    reason: Reason
    confidence: Annotated[float, Meta(ge=0, le=1)] = 0.0
    should_nudge: bool = False
    nudge_message: str = ""


class Seen(Struct, frozen=True):
    """Facts from events that the messages don't have.

    ``silent_ms``: time since the last event or output. ``retrying``: the host waits to ask a failing model
    again. ``waiting``: the number of open permissions and questions. ``children``: sub-agents work.
    """

    busy: bool
    silent_ms: int
    retrying: bool = False
    waiting: int = 0
    children: bool = False


class Case(Struct, frozen=True):
    """One session that has been silent. ``turn`` is empty while the agent has not answered the task at all.

    ``pending``: tool calls without a result. ``tokens``, ``finish``, ``completed`` and ``error``: of the last
    answer, as the host has them. ``loop``: the loop at the end of the work, if there is one.
    """

    task: str
    turn: str
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


class Assessment(Struct, frozen=True):
    """The answer. ``reason`` is None when no rule or model could answer; ``why`` explains the answer.

    ``nudge`` is the answer's `shouldNudge`, true only with ``genuinely_stuck``; ``message`` is its
    `nudgeMessage`.
    """

    reason: Reason | None
    why: str = ""
    nudge: bool = False
    message: str = ""
    provider: str = RULES

    @property
    def stuck(self) -> bool:
        """Says whether the agent is stuck."""
        return self.reason == "genuinely_stuck"


def make_case(transcript: Transcript, seen: Seen, loop: Loop | None = None) -> Case | None:
    """The case of the session as it is now; None when nobody asked for anything."""
    task = transcript.task
    if task is None:
        return None
    newest = transcript.messages[-1]
    last = newest if newest.role == "assistant" else None  # else the agent has not answered it yet
    reply, calls = redact(last.text) if last else "", transcript.calls
    return Case(
        task=task.id,
        turn=last.id if last else "",
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


def question(case: Case) -> Question[Said]:
    """The question to a fast model, where no rule is certain."""
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
    slots = {
        "request": case.request or "(empty)",
        "facts": "\n".join(facts),
        "reply": case.reply or "(nothing yet)",
    }
    return Question("stuck", slots, Said, model=case.model, max_tokens=500)


def assessment(answer: Answer[Said]) -> Assessment:
    """The model's answer, where it does not contradict itself and is sure enough."""
    said = answer.reply
    if said is None:
        return Assessment(None, answer.why, provider=answer.provider)
    why = " ".join(said.reasons.split())[:MESSAGE_CHARS]
    stuck = said.reason == "genuinely_stuck"
    if said.stuck != stuck or (stuck and said.confidence < SURE):
        return Assessment("working", f"not sure enough: {why}"[:MESSAGE_CHARS], provider=answer.provider)
    message = " ".join(said.nudge_message.split())
    if len(message) > MESSAGE_CHARS or not _PLAIN.fullmatch(message):
        message = ""  # it may repeat what a tool result wants the agent to do (I27)
    return Assessment(said.reason, why, said.should_nudge and stuck, message, answer.provider)


# The decision


class Decision(Struct, frozen=True):
    """The session afterwards, the orders for the host, and the sentence for the person (empty: none)."""

    session: Session
    orders: tuple[StoredOrder, ...] = ()
    notice: str = ""


def decide(session: Session, case: Case, assessed: Assessment, limits: Limits) -> Decision:
    """Only a stuck session leads to orders, and only an idle one is prompted (I10, I29)."""
    if not assessed.stuck or limits.observe:
        return Decision(session)
    notice = "The agent seems stuck" + (f": {assessed.why}" if assessed.why else "")
    if not session.busy and assessed.nudge:
        if session.nudges < MAX_NUDGES:
            kind: NudgeKind = "loop" if case.loop is not None else "stuck"
            text = nudge_text(_reason(case, assessed))
            order = SendNudge(
                session.id, case.task, case.turn, text, kind, agent=case.agent, model=case.model
            )
            return Decision(_nudged(session, case.loop), (order,))
        notice = f"The agent seems stuck, and {session.nudges} nudges did not help"
    toast = (ShowToast(session.id, notice[:300], "warning"),) if limits.toasts else ()
    return Decision(session, toast, notice)


def order_of_silence(session: Session, turn: str, feedback: SendFeedback, limits: Limits) -> Decision:
    """Nothing happened after ``feedback``: one nudge, up to ``MAX_NUDGES`` on the task."""
    if limits.observe or session.nudges >= MAX_NUDGES:
        return Decision(session)
    text = nudge_text("The feedback above is still open, and nothing has happened since.")
    order = SendNudge(
        session.id, session.task, turn, text, "feedback", agent=feedback.agent, model=feedback.model
    )
    return Decision(_nudged(session), (order,))


def _nudged(session: Session, loop: Loop | None = None) -> Session:
    """The session after one more nudge. ``loop``: the loop that the nudge named, if any."""
    session = replace(session, nudges=session.nudges + 1)
    return replace(session, loop=loop.key, loop_count=loop.count) if loop is not None else session


def _reason(case: Case, assessed: Assessment) -> str:
    """Why the agent is nudged, in words for the agent."""
    if case.loop is not None:
        return loop_text(case.loop)
    if assessed.message:
        return assessed.message
    if case.ending == "cut_off":
        end = " ".join(case.reply[-QUOTE_CHARS:].split())
        return f'Your last message breaks off: "…{end}"'
    if case.ending == "empty":
        return "Your last message is empty."
    return "You stopped before the task was finished."


def nudge_text(why: str) -> str:
    """The whole prompt for the agent. ``why``: the reason for it."""
    return f"{HEADING}\n\n{why}\n\n{END}"
