"""What follows from an assessment: a nudge for an idle agent, a toast for the person, or nothing (I10).

It never prompts an agent that works, and it prompts at most ``MAX_NUDGES`` times on one task.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from ..core.guards import Skip
from ..core.orders import SendNudge, ShowToast, StoredOrder
from ..core.session import Session

if TYPE_CHECKING:
    from ..core.guards import Limits
    from ..core.orders import NudgeKind
    from ..core.transcript import Model
    from .loops import Loop
    from .silence import Assessment, Case

HEADING: Final = "## Reflection-3: Continue"
MAX_NUDGES: Final = 3
QUOTE_CHARS: Final = 120
WENT_ON: Final = 2  # more repeats after the nudge: then the agent did not heed it
END: Final = (
    "Go on with the task from there. If it is finished, or if only the person can decide, say so in one "
    "sentence and stop. (reflectd)"
)


@dataclass(frozen=True, slots=True)
class Decision:
    """The session afterwards, the orders for the host, and what the person is told (empty: nothing)."""

    session: Session
    orders: tuple[StoredOrder, ...] = ()
    told: str = ""


def decide(session: Session, case: Case, found: Assessment, limits: Limits, *, nudge: bool) -> Decision:
    """What follows from ``found``. ``nudge``: the setting. Only a stuck session leads to orders, and only an
    idle one is prompted (I10, I29).
    """
    if not found.stuck:
        return Decision(session)
    told = f"The agent seems stuck: {found.why}" if found.why else "The agent seems stuck"
    if limits.observe:
        return Decision(session)
    if session.busy or not (nudge and found.nudge):
        return Decision(session, toast(session, told, limits), told)
    if session.nudges >= MAX_NUDGES:
        told = f"The agent seems stuck, and {session.nudges} nudges did not help"
        return Decision(session, toast(session, told, limits), told)
    kind: NudgeKind = "loop" if case.loop is not None else "stuck"
    text = nudge_text(reason(case, found))
    order = SendNudge(session.id, case.task, case.turn, text, kind, agent=case.agent, model=case.model)
    return Decision(nudged(session, case.loop), (order,))


def nudged(session: Session, loop: Loop | None = None) -> Session:
    """The session after one more nudge. ``loop``: the loop that the nudge named, if any."""
    session = replace(session, nudges=session.nudges + 1)
    return replace(session, loop=loop.key, loop_count=loop.count) if loop is not None else session


def toast(session: Session, told: str, limits: Limits) -> tuple[ShowToast, ...]:
    """The order that tells the person; none when toasts are switched off."""
    return (ShowToast(session.id, told[:300], "warning"),) if limits.toasts else ()


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
    """The sentence for the agent that names the loop."""
    return (
        f"You repeat yourself: {loop.what} ({loop.count} times, with the same outcome). "
        "Doing it again will not change that: find out why, or try something else."
    )


def nudge_text(why: str) -> str:
    """The whole prompt for the agent. ``why``: the reason for it."""
    return f"{HEADING}\n\n{why}\n\n{END}"


def unanswered_text() -> str:
    """The nudge for an agent that did not react to feedback."""
    return nudge_text("The feedback above is still open, and nothing has happened since.")


def order_of_silence(
    session: Session, turn: str, agent: str, model: Model | None, limits: Limits, *, nudge: bool
) -> Decision:
    """What follows when nothing happened after feedback: one nudge, up to ``MAX_NUDGES`` on the task."""
    if limits.observe or not nudge or session.nudges >= MAX_NUDGES:
        return Decision(session)
    order = SendNudge(session.id, session.task, turn, unanswered_text(), "feedback", agent=agent, model=model)
    return Decision(nudged(session), (order,))


def may_go_on(session: Session, loop: Loop | None) -> Skip | None:
    """May the agent be judged and prompted again? Not when it goes on with a loop that it was told of: that
    would only cost more tokens.
    """
    if (
        loop is None
        or not session.loop
        or loop.key != session.loop
        or loop.count < session.loop_count + WENT_ON
    ):
        return None
    tell = f"Stopped: the agent repeats itself although it was told: {loop.what}"
    return Skip("loop", f"still repeats itself: {loop.what}", final="stopped", tell=tell[:300])
