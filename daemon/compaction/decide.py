"""Whether a compaction needs us at all (``wanted``), and what the host is told then (``decide``).

The table of ``design/compaction.md``; each row is a row of ``tests/compaction/test_decide.py``. In doubt
nothing is sent; a prompt is sent only for work that is open, a finished task gets a toast (I2).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from daemon.compaction.case import compacted, verdict_of
from daemon.compaction.parse import Action
from daemon.compaction.texts import clarify_text, continue_text, github_text
from daemon.core.guards import PLAN_AGENTS
from daemon.core.orders import SendNudge, ShowToast, Variant

if TYPE_CHECKING:
    from daemon.compaction.case import Case
    from daemon.compaction.flow import Outcome
    from daemon.compaction.references import Reference
    from daemon.core.guards import Limits
    from daemon.core.session import Session
    from daemon.core.transcript import Transcript
    from daemon.core.verdict import FinalState, Verdict

Wanted = Literal["act", "toast", "nothing"]
SURE: Final = 0.5  # below this confidence no prompt is sent
_DONE: Final[frozenset[FinalState]] = frozenset({"complete", "stopped", "awaiting_user"})
_NO_COMMENTS: Final = re.compile(
    r"(?:\b(?:do not|never|without|no)|n['\u2019]t)\b[^.;\n]{0,40}\b(?:comment|post|repl)", re.IGNORECASE
)
_SENTENCE: Final = re.compile(r"(?<=[.;!?])\s|\n|, then | and then ")


@dataclass(frozen=True, slots=True)
class Decision:
    """``orders``: what the host is told, at most one. ``action``: what is done, None for nothing.

    ``why``: for the log.
    """

    orders: tuple[SendNudge | ShowToast, ...] = ()
    action: Action | None = None
    why: str = ""


def wanted(session: Session, transcript: Transcript, last: Verdict | None = None) -> Wanted:
    """Whether the transcript's newest compaction needs a look, a toast, or nothing.

    ``last``: the session's last stored verdict; one about another task does not count. Asked again on every
    attempt: as soon as anybody went on, the answer is ``nothing`` (I32).
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
    """The toast of a compaction that needs no look. ``last``: the verdict of this task."""
    state = last.state if last and last.task == session.task else session.phase
    said: tuple[str, Variant] = ("Context compacted: the task goes on when you say so", "info")
    if state == "complete":
        said = ("Context compacted: the task was complete before", "success")
    elif state == "awaiting_user":
        said = ("Context compacted: the agent waits for you", "info")
    return Decision(_toast(session, limits, *said), None, "no look needed")


def decide(session: Session, case: Case, outcome: Outcome, limits: Limits, *, github: bool) -> Decision:
    """What follows from ``outcome`` for the session as it is now. ``github``: the setting of that name."""
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
    message = _allowed(outcome.message, case)
    target = _target(case) if github and action == "needs_github_update" else None
    if target is not None:
        text = github_text(case, message, target)
    elif action == "needs_clarification":
        text = clarify_text(case, message)
    else:
        action, text = "continue_task", continue_text(case, message)
    nudge = SendNudge(session.id, case.task, case.turn, text, "compaction", case.agent, case.model)
    return Decision((nudge,), action, outcome.why)


def _moved_on(s: Session, case: Case) -> str:
    """Why the session as it is now is not to be prompted; the last look before the order (I10, I14, I32)."""
    if s.task != case.task:
        return "the person typed meanwhile (guard 7)"
    if s.aborted:
        return "the person pressed Esc (guard 1)"
    if s.off or s.deleted:
        return "switched off or deleted meanwhile"
    if s.busy:
        return "the agent works again"
    if s.waiting:
        return "a permission or a question is open (guard 8)"
    return ""


def _target(case: Case) -> Reference | None:
    """Where an update may go: a number from a tool result, unless the person ruled GitHub out (I26)."""
    target = case.github.target
    if target is None or target.source != "tool" or target.number <= 0:
        return None
    forbidden = "pr" in case.forbids or any(_NO_COMMENTS.search(text) for text in case.requests)
    return None if forbidden or target.kind == "unknown" else target


def _allowed(message: str, case: Case) -> str:
    """The model's note without what the person forbade (I26)."""
    if not case.forbids:
        return message
    from daemon.core.topics import read_clause  # many patterns, seldom needed

    forbidden = set(case.forbids)
    kept = (s for s in _SENTENCE.split(message) if not read_clause(s).asks & forbidden)
    return "\n".join(kept)


def _toast(s: Session, limits: Limits, message: str, variant: Variant) -> tuple[ShowToast, ...]:
    quiet = limits.observe or not limits.toasts or not limits.enabled
    return () if quiet else (ShowToast(s.id, message, variant),)
