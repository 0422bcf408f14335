"""``decide``: what an opinion means for this session, what the host is told, and the state after it.

The table of the seed's decision flow; every branch is a row of ``tests/judge/test_decide.py``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from daemon.core.errors import BadReply
from daemon.core.guards import Limits, Skip, may_prompt, normalise_items, rounds_without_progress
from daemon.core.orders import SendFeedback, ShowToast, StoredOrder, Variant
from daemon.core.session import Session, settled
from daemon.core.verdict import FinalState, JudgedBy, Judgement, Missing, Severity, Verdict
from daemon.judge.case import Case

if TYPE_CHECKING:
    from daemon.judge.flow import Opinion

HEADING = "## Reflection-3: Task Incomplete"
QUOTE_MIN = 8
_ROW = re.compile(r"\b[A-Z]\d{1,4}\b")
ITEM_CHARS = 300
_SENTENCE = re.compile(r"[.;\n]\s|, then | and then ")


@dataclass(frozen=True, slots=True)
class Decision:
    """What to commit: the verdict, the orders that follow it, and the session after it."""

    session: Session
    verdict: Verdict
    orders: tuple[StoredOrder, ...] = ()


@dataclass(frozen=True, slots=True)
class Round:
    """One judged round: the session as it is now, the case it was judged on, who judged, and when."""

    session: Session
    case: Case
    limits: Limits
    at: int
    by: JudgedBy


def skip(s: Session, turn: str, why: Skip, at: int, limits: Limits) -> Decision | None:
    """A guard's no as a decision; None when nothing is to be written."""
    if why.final is None:
        return None
    verdict = Verdict(s.id, s.task, turn, why.final, at, reason=f"guard:{why.guard}", attempt=s.attempts)
    tell = why.tell and limits.toasts
    orders = (ShowToast(s.id, why.tell, "warning"),) if tell else ()
    return Decision(settled(s, turn, why.final, why.guard), verdict, orders)


def decide(r: Round, opinion: Opinion) -> Decision:
    """The decision on one judged turn (DESIGN §4, seed's flow below PARSE VERDICT)."""
    by = replace(r.by, provider=opinion.provider or r.by.provider, model=opinion.model, cost=opinion.cost)
    r = replace(r, by=by)
    found = opinion.judgement
    if found is None:
        return _unscored(r, opinion.why)
    cited = tuple(m for m in found.missing if is_cited(m, r.case))
    if found.complete and found.severity is not Severity.BLOCKER:
        return _complete(r, replace(found, missing=cited))
    if found.missing and not cited:
        return _unscored(r, "no missing item cites a row or the request")
    found = replace(found, complete=False, missing=cited)
    nothing_missing = found.severity is Severity.NONE and not found.missing
    if nothing_missing or (found.requires_human_action and not found.next_actions):
        return _awaiting(r, found)
    if not (found.missing or found.feedback or found.next_actions):
        return _unscored(r, "the judge does not say what is missing")
    return _incomplete(r, found)


def cited_rows(missing: Missing, case: Case) -> tuple[str, ...]:
    """The rows that the item names: `E3`, `[E3]`, `E3, R1`, `E3: the test failed`."""
    known = {row.id for row in case.evidence.rows}
    return tuple(name for name in _ROW.findall(missing.cites[:ITEM_CHARS]) if name in known)


def is_cited(missing: Missing, case: Case) -> bool:
    """The item names an evidence row or quotes the request word for word (a word or two are no quote)."""
    if cited_rows(missing, case):
        return True
    wanted = " ".join(missing.cites.strip(" \n\"'“”`.").casefold().split())
    if len(wanted) < QUOTE_MIN:
        return False
    return any(wanted in " ".join(text.casefold().split()) for text in case.requests)


def without_forbidden(found: Judgement, case: Case) -> Judgement:
    """The judgement without what the person forbade. Raises ``BadReply`` when nothing else is left of it."""
    if not case.evidence.forbids or (found.complete and found.severity is not Severity.BLOCKER):
        return found
    from daemon.core.topics import read_clause  # many patterns, seldom needed

    forbidden = set(case.evidence.forbids)

    def fine(text: str) -> bool:
        return not any(read_clause(clause).asks & forbidden for clause in _SENTENCE.split(text))

    missing = tuple(m for m in found.missing if fine(m.text))
    actions = tuple(action for action in found.next_actions if fine(action))
    if found.missing and not missing:
        raise BadReply("the judge asks only for what the person forbade")
    feedback = found.feedback if fine(found.feedback) else ""
    if found.feedback and not (feedback or missing or actions):
        raise BadReply("the judge asks only for what the person forbade")
    return replace(found, missing=missing, next_actions=actions, feedback=feedback)


def feedback_text(found: Judgement, case: Case, attempt: int, limits: Limits) -> str:
    """What the agent reads. The first line is what the published consumers search for."""
    rows = {row.id: row for row in case.evidence.rows}
    lines = [f"{HEADING} ({found.severity})", ""]
    if found.feedback:
        lines += [found.feedback, ""]
    unsaid = [m for m in found.missing if m.text not in found.feedback]
    if unsaid:
        lines.append("Still open:")
        for i, item in enumerate(unsaid, 1):
            row = next((rows[name] for name in cited_rows(item, case)), None)
            known = row is None or row.text in item.text or item.text in row.text
            lines.append(
                f"{i}. {item.text}"
                + ("" if known or row is None else f" ({row.id}: {row.text[:ITEM_CHARS]})")
            )
        lines.append("")
    actions = [action for action in found.next_actions if action not in found.feedback]
    if actions:
        lines += ["Do next:", *(f"- {action}" for action in actions), ""]
    lines.append(
        "Go on with the task. If this is wrong, or only the person can decide, "
        "say so in one sentence and stop. "
        f"(reflectd, round {attempt} of at most {limits.max_attempts})"
    )
    return "\n".join(lines)


def _verdict(r: Round, state: FinalState, found: Judgement | None) -> Verdict:
    s, case = r.session, r.case
    usd, tokens = case.transcript.used if case.transcript is not None else (None, 0)
    verdict = Verdict(
        s.id,
        case.task,
        case.turn,
        state,
        r.at,
        judge=r.by,
        attempt=s.attempts,
        reason="judged",
        work_usd=usd,
        work_tokens=tokens,
    )
    if found is None:
        return verdict
    return replace(
        verdict,
        severity=found.severity,
        feedback=found.feedback,
        missing=found.missing,
        next_actions=found.next_actions,
        requires_human_action=found.requires_human_action,
    )


def _complete(r: Round, found: Judgement) -> Decision:
    """Never prompts (I2); the toast names what is left."""
    left = "; ".join(m.text for m in found.missing)
    if not left and found.severity is not Severity.NONE:
        left = found.feedback
    note = f"Task complete: {left}" if left else "Task complete"
    after = settled(r.session, r.case.turn, "complete", "judged")
    return Decision(after, _verdict(r, "complete", found), _toast(r, note[:ITEM_CHARS], "success"))


def _awaiting(r: Round, found: Judgement) -> Decision:
    after = settled(replace(r.session, unscored=0), r.case.turn, "awaiting_user", "judged")
    return Decision(after, _verdict(r, "awaiting_user", found), _toast(r, "Awaiting user input", "info"))


def _unscored(r: Round, why: str) -> Decision:
    """Open and quiet; three in a row stop the task (guard 5)."""
    s, turn = replace(r.session, unscored=r.session.unscored + 1), r.case.turn
    verdict = replace(_verdict(r, "unscored", None), reason=f"unscored: {why}")
    if s.unscored < r.limits.max_unscored:
        return Decision(settled(s, turn, "unscored", why), verdict)
    tell = f"Stopped judging this task: {s.unscored} rounds could not be scored"
    verdict = replace(verdict, state="stopped", reason=f"guard:unscored_rounds ({why})")
    return Decision(settled(s, turn, "stopped", "unscored_rounds"), verdict, _toast(r, tell, "warning"))


def _incomplete(r: Round, found: Judgement) -> Decision:
    s, case, limits = replace(r.session, unscored=0), r.case, r.limits
    calls = case.evidence.tool_calls
    items = normalise_items(tuple(m.text for m in found.missing) or (found.feedback,))
    if limits.observe:
        verdict = replace(_verdict(r, "incomplete", found), reason="observe: nothing sent")
        return Decision(settled(s, case.turn, "incomplete", "observe"), verdict)
    no = may_prompt(s, calls=calls, items=items, limits=limits)
    if no is not None:
        verdict = replace(_verdict(r, "stopped", found), reason=f"guard:{no.guard}")
        after = settled(s, case.turn, "stopped", no.guard)
        return Decision(after, verdict, _toast(r, no.tell, "warning"))
    stalled, repeated = rounds_without_progress(s, calls=calls, items=items)
    after = replace(
        settled(s, case.turn, "incomplete", "judged"),
        attempts=s.attempts + 1,
        stalled=stalled,
        repeated=repeated,
        calls=calls,
        open_items=items,
    )
    text = feedback_text(found, case, after.attempts, limits)
    order = SendFeedback(s.id, case.task, case.turn, text, agent=case.agent, model=case.model)
    verdict = replace(_verdict(r, "incomplete", found), attempt=after.attempts, will_prompt=True)
    return Decision(after, verdict, (order,))


def _toast(r: Round, message: str, variant: Variant) -> tuple[ShowToast, ...]:
    return (ShowToast(r.session.id, message, variant),) if r.limits.toasts else ()
