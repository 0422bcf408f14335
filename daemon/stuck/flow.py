"""Is this silent session stuck? A flow: ``case -> Generator[Prompt, Reply, Assessment]``.

Fixed rules answer first, at no cost: when the silence is short, a tool runs, a question is open, the host has
trouble, or the agent is in a loop. Otherwise a fast model is asked, once. When that fails, nobody knows, so
nobody is nudged (I30).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, cast, get_args

from ..core.errors import BadReply, Unavailable
from ..core.guards import PLAN_AGENTS
from ..core.llm import Prompt, Reply
from ..core.reply import BadForm, Talk, wanted_object
from ..core.template import fill

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from .case import Case

Reason = Literal["genuinely_stuck", "waiting_for_user", "working", "complete"]
REASONS: Final[tuple[Reason, ...]] = get_args(Reason)
YOUNG_MS: Final = 30_000
SURE: Final = 0.6
MESSAGE_CHARS: Final = 300
RULES: Final = "rules"
_PLAIN: Final = re.compile(r"[\w\s.,:;!?'\"()–—-]*")  # noqa: RUF001 -- dashes as people write them
_TEXT: Final = {"type": "string"}
ANSWER: Final[dict[str, object]] = {
    "type": "object",
    "properties": {
        "reasons": _TEXT,
        "nonce": _TEXT,
        "stuck": {"type": "boolean"},
        "reason": {"type": "string", "enum": list(REASONS)},
        "confidence": {"type": "number"},
        "shouldNudge": {"type": "boolean"},
        "nudgeMessage": _TEXT,
    },
    "required": ["reasons", "nonce", "stuck", "reason", "confidence", "shouldNudge", "nudgeMessage"],
    "additionalProperties": False,
}


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


def assess(case: Case) -> Generator[Prompt, Reply, Assessment]:
    """Assess the session. Yields at most one prompt."""
    if (sure := certain(case)) is not None:
        return sure
    talk = Talk()
    prompt = ask(case)
    try:
        reply = yield from talk.ask(prompt)
        if reply is None:
            return Assessment(None, talk.why, bad=tuple(talk.bad))
        try:
            found = read(wanted_object(reply, case.nonce, "stuck", "reason", what="stuck"))
        except BadReply as e:
            talk.broke(reply, prompt, e)
            return Assessment(None, str(e), bad=tuple(talk.bad))
    except Unavailable as e:
        return Assessment(None, str(e))
    provider, model = talk.by
    reason, why, confidence, nudge, message = found
    return Assessment(reason, why, confidence, nudge, message, provider, model)


def read(data: Mapping[str, object]) -> tuple[Reason, str, float, bool, str]:
    """The fields of the model's answer: reason, why, confidence, nudge, message. An answer that contradicts
    itself or is not sure enough counts as not stuck. Raises ``BadReply``.
    """
    stuck, reason, nudge = data.get("stuck"), data.get("reason"), data.get("shouldNudge", False)
    confidence = data.get("confidence", 0.0)
    said, why = data.get("nudgeMessage", ""), data.get("reasons", "")
    fine = isinstance(stuck, bool) and isinstance(nudge, bool) and reason in REASONS
    number = isinstance(confidence, int | float) and not isinstance(confidence, bool) and 0 <= confidence <= 1
    if not (fine and number and isinstance(said, str) and isinstance(why, str)):
        raise BadReply("the answer about a silent session is not of the agreed form", raw=str(dict(data)))
    sure = float(cast("float", confidence))
    found = cast("Reason", reason)
    why = " ".join(why.split())[:MESSAGE_CHARS]
    if stuck != (found == "genuinely_stuck") or (found == "genuinely_stuck" and sure < SURE):
        return "working", f"not sure enough: {why}"[:MESSAGE_CHARS], sure, False, ""
    return found, why, sure, bool(nudge) and found == "genuinely_stuck", _plain(said)


def _plain(said: str) -> str:
    """The message if it is plain words, else empty: it may repeat what a tool result wants the agent to do
    (I27).
    """
    text = " ".join(said.split())
    return text if len(text) <= MESSAGE_CHARS and _PLAIN.fullmatch(text) else ""


def ask(case: Case) -> Prompt:
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
        system=case.templates.system,
        text=fill(case.templates.case, values),
        session=case.session,
        model=case.model,
        nonce=case.nonce,
        schema=ANSWER,
        max_tokens=500,
    )
