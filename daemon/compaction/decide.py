"""Whether a compaction needs a look of ours (``wanted``), and what the host is told after it (``decide``).

It is the table of ``design/compaction.md``; ``tests/compaction/test_decide.py`` has a case for each of its
rows. In doubt nothing is sent. A prompt is sent only for work that is open; for a finished task the person
gets a toast (I2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from ..core.guards import PLAN_AGENTS
from ..core.orders import SendNudge, ShowToast, Variant
from .case import compacted, verdict_of
from .parse import Action
from .texts import clarify_text, continue_text, github_text

if TYPE_CHECKING:
    from ..core.guards import Limits
    from ..core.session import Session
    from ..core.transcript import Transcript
    from ..core.verdict import FinalState, Verdict
    from .case import Case
    from .flow import Outcome
    from .references import Reference

Wanted = Literal["act", "toast", "nothing"]
SURE: Final = 0.5  # below this confidence no prompt is sent
_DONE: Final[frozenset[FinalState]] = frozenset({"complete", "stopped", "awaiting_user"})


@dataclass(frozen=True, slots=True)
class Decision:
    """``orders``: for the host, at most one. ``action``: what is done, None for nothing. ``why``: for the
    log.
    """

    orders: tuple[SendNudge | ShowToast, ...] = ()
    action: Action | None = None
    why: str = ""


def wanted(session: Session, transcript: Transcript, last: Verdict | None = None) -> Wanted:
    """Whether the transcript's newest compaction needs a look, a toast, or nothing.

    ``last``: the session's last stored verdict; one about another task does not count. The engine asks before
    every try: as soon as the person or the agent has gone on, the answer is ``nothing`` (I32).
    """
    found, task = compacted(transcript), transcript.task
    if found is None or task is None or found.after or transcript.missing:
        return "nothing"
    ours = session.judge or session.parent or transcript.parent
    if ours or session.deleted or session.off or session.aborted or session.task not in {"", task.id}:
        return "nothing"
    last = verdict_of(transcript, last)
    state = last.state if last else ""
    if state in _DONE or session.phase in _DONE or task.agent in PLAN_AGENTS or found.in_vain:
        return "toast"
    return "act" if found.auto or state == "incomplete" else "toast"


def only_told(session: Session, last: Verdict | None, limits: Limits) -> Decision:
    """The toast for a compaction that needs no look. ``last``: the session's last stored verdict."""
    state = last.state if last and last.task == session.task else session.phase
    said: tuple[str, Variant] = ("Context compacted: the task goes on when you say so", "info")
    if state == "complete":
        said = ("Context compacted: the task was complete before", "success")
    elif state == "awaiting_user":
        said = ("Context compacted: the agent waits for you", "info")
    return Decision(_toast(session, limits, *said), None, "no look needed")


def decide(session: Session, case: Case, outcome: Outcome, limits: Limits, *, github: bool) -> Decision:
    """What follows from ``outcome`` for the session as it is now. ``github``: the setting
    `compaction.github`.
    """
    action = outcome.action
    if action is None:
        return Decision(why=f"nothing decided: {outcome.why}")
    if limits.observe or not limits.enabled:
        return Decision((), action, "observe: nothing sent")
    if no := _moved_on(session, case):
        return Decision(why=no)
    if action == "task_complete":
        toast = _toast(session, limits, "Context compacted: the task is complete", "success")
        return Decision(toast, action, outcome.why)
    if outcome.confidence < SURE:
        return Decision(why=f"not sure enough of {action} ({outcome.confidence:.2f})")
    prompted = session.attempts + session.nudges
    if prompted >= limits.max_attempts:
        return Decision(why=f"{prompted} prompts on this task already (guard 5)")
    message = outcome.message
    target = _target(case) if github and action == "needs_github_update" else None
    if target is not None:
        text = github_text(case, message, target)
    elif action == "needs_clarification":
        text = clarify_text(case, message)
    else:
        action, text = "continue_task", continue_text(case, message)
    nudge = SendNudge(session.id, case.task, case.turn, text, "compaction", case.agent, case.model)
    return Decision((nudge,), action, outcome.why)


def _moved_on(session: Session, case: Case) -> str:
    """Why the session must not be prompted now, or empty; the last check before an order (I10, I14, I32)."""
    if session.task != case.task:
        return "the person typed meanwhile (guard 7)"
    if session.aborted:
        return "the person pressed Esc (guard 1)"
    if session.off or session.deleted:
        return "switched off or deleted meanwhile"
    if session.busy:
        return "the agent works again"
    if session.waiting:
        return "a permission or a question is open (guard 8)"
    return ""


def _target(case: Case) -> Reference | None:
    """The pull request or issue for a comment: only one that a command named."""
    target = case.github.target
    if target is None or target.source != "tool" or target.number <= 0:
        return None
    return None if target.kind == "unknown" else target


def _toast(session: Session, limits: Limits, message: str, variant: Variant) -> tuple[ShowToast, ...]:
    quiet = limits.observe or not limits.toasts or not limits.enabled
    return () if quiet else (ShowToast(session.id, message, variant),)
