"""What follows from an assessment: a nudge for an idle agent, a word to the person, or nothing (I10).

Never prompts a session that works, and never more than ``MAX_NUDGES`` times on one task.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from daemon.core.guards import Skip
from daemon.core.orders import SendNudge, ShowToast, StoredOrder
from daemon.core.session import Session

if TYPE_CHECKING:
    from daemon.core.guards import Limits
    from daemon.core.orders import NudgeKind
    from daemon.core.transcript import Model
    from daemon.stuck.case import Case
    from daemon.stuck.flow import Assessment
    from daemon.stuck.signals import Loop

HEADING: Final = "## Reflection-3: Continue"
MAX_NUDGES: Final = 3
QUOTE_CHARS: Final = 120
WENT_ON: Final = 2  # more of the same after the nudge
END: Final = (
    "Go on with the task from there. If it is finished, or if only the person can decide, say so in one "
    "sentence and stop. (reflectd)"
)


@dataclass(frozen=True, slots=True)
class Decision:
    """The session after it, what the host is told, and what the person reads (empty: nothing new)."""

    session: Session
    orders: tuple[StoredOrder, ...] = ()
    told: str = ""


def decide(s: Session, case: Case, found: Assessment, limits: Limits, *, nudge: bool) -> Decision:
    """``nudge``: the setting. Only a stuck session gives orders, only an idle one is prompted (I10, I29)."""
    if not found.stuck:
        return Decision(s)
    told = f"The agent seems stuck: {found.why}" if found.why else "The agent seems stuck"
    if limits.observe:
        return Decision(s)
    if s.busy or not (nudge and found.nudge):
        return Decision(s, toast(s, told, limits), told)
    if s.nudges >= MAX_NUDGES:
        told = f"The agent seems stuck, and {s.nudges} nudges did not help"
        return Decision(s, toast(s, told, limits), told)
    kind: NudgeKind = "loop" if case.loop is not None else "stuck"
    text = nudge_text(reason(case, found))
    order = SendNudge(s.id, case.task, case.turn, text, kind, agent=case.agent, model=case.model)
    return Decision(nudged(s, case.loop), (order,))


def nudged(s: Session, loop: Loop | None = None) -> Session:
    """The session after one more nudge, which named ``loop``."""
    s = replace(s, nudges=s.nudges + 1)
    return replace(s, loop=loop.key, loop_count=loop.count) if loop is not None else s


def toast(s: Session, told: str, limits: Limits) -> tuple[ShowToast, ...]:
    """Tell the person, where toasts are wanted."""
    return (ShowToast(s.id, told[:300], "warning"),) if limits.toasts else ()


def reason(case: Case, found: Assessment) -> str:
    """Why the agent is nudged, in words for the agent."""
    if case.loop is not None:
        return loop_text(case.loop)
    if found.message:
        return found.message
    if case.ending == "cut_off":
        end = " ".join(case.reply[-QUOTE_CHARS:].split())
        return f'Your last message breaks off: "…{end}"'
    if case.ending == "empty":
        return "Your last message is empty."
    return "You stopped before the task was finished."


def loop_text(loop: Loop) -> str:
    """Names what repeats."""
    return (
        f"You repeat yourself: {loop.what} ({loop.count} times, with the same outcome). "
        "Doing it again will not change that: find out why, or try something else."
    )


def nudge_text(why: str) -> str:
    """What the agent reads."""
    return f"{HEADING}\n\n{why}\n\n{END}"


def unanswered_text() -> str:
    """The nudge after feedback that nothing followed."""
    return nudge_text("The feedback above is still open, and nothing has happened since.")


def order_of_silence(
    s: Session, turn: str, agent: str, model: Model | None, limits: Limits, *, nudge: bool
) -> Decision:
    """Feedback went out and nothing happened: one nudge, unless the task had its share of them."""
    if limits.observe or not nudge or s.nudges >= MAX_NUDGES:
        return Decision(s)
    order = SendNudge(s.id, s.task, turn, unanswered_text(), "feedback", agent=agent, model=model)
    return Decision(nudged(s), (order,))


def may_go_on(s: Session, loop: Loop | None) -> Skip | None:
    """A loop that was named and goes on costs no more tokens: not even those of a judge."""
    if loop is None or not s.loop or loop.key != s.loop or loop.count < s.loop_count + WENT_ON:
        return None
    tell = f"Stopped: the agent repeats itself although it was told: {loop.what}"
    return Skip("loop", f"still repeats itself: {loop.what}", final="stopped", tell=tell[:300])
