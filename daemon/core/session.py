"""Session state: the fold of a session's events (DESIGN §3). Guards read it, the store persists it.

Pure and total: any event in any order gives a state. ``reconcile`` corrects it by the host's messages,
which are the truth; ``judging`` and ``settled`` are the transitions the engine commits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, assert_never

from daemon.core.events import (
    ActivitySeen,
    HostErrored,
    HumanMessaged,
    JudgeCreated,
    PersonAnswered,
    PersonAsked,
    SessionBusied,
    SessionCompacted,
    SessionDeleted,
    SessionIdled,
    SessionSeen,
    SyntheticMessaged,
    ToolEnded,
    TurnAborted,
)

if TYPE_CHECKING:
    from daemon.core.events import SessionEvent
    from daemon.core.transcript import Transcript

Phase = Literal[
    "open",
    "judging",
    "complete",
    "awaiting_user",
    "incomplete",
    "stopped",
    "unscored",
    "error",
    "skipped",
]


ACTIVE_STEP_MS = 1_000  # ``active_at`` moves in these steps, so that most activity changes nothing

FINAL_FOR_TASK: frozenset[Phase] = frozenset({"complete", "stopped"})
"""Phases that only a new human message leaves: more turns of the same task are not judged again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One session of a host. Times are epoch ms of the host's clock.

    ``task``: id of the last human message, empty until one was seen. ``turn``: the assistant message
    that is or was judged last. ``final``: the turn that has its final verdict (guard 4).
    ``attempts`` … ``open_items`` count for this task only; a new human message resets them.
    ``calls``: tool calls of the task when feedback last went out (guard 6).
    ``nudges``: nudges of this task; ``loop``: what repeated itself when the agent was last told so, and
    ``loop_count`` how often. ``retrying``: the host backs off from a failing model.
    ``waiting``: open permissions and questions (guard 8). ``recheck``: an idle not judged yet.
    ``rejudged``: the turn that was judged again after a crash (once).
    """

    id: str
    host: str = "opencode"
    directory: str = ""
    instance: str = ""
    parent: str = ""
    title: str = ""
    judge: bool = False
    deleted: bool = False
    off: bool = False
    busy: bool = False
    idle_at: int = 0
    active_at: int = 0
    task: str = ""
    aborted: bool = False
    turn: str = ""
    final: str = ""
    phase: Phase = "open"
    reason: str = ""
    attempts: int = 0
    unscored: int = 0
    stalled: int = 0
    repeated: int = 0
    calls: int = -1
    open_items: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    recheck: bool = False
    rejudged: str = ""
    retrying: bool = False
    nudges: int = 0
    loop: str = ""
    loop_count: int = 0


def fold(state: Session, event: SessionEvent) -> Session:
    """The state after ``event``. Never fails; an event that says nothing new returns ``state`` itself."""
    s = replace(state, active_at=event.t) if event.t >= state.active_at + ACTIVE_STEP_MS else state
    match event:
        case SessionSeen():
            return replace(
                s,
                parent=event.parent or s.parent,
                title=event.title or s.title,
                directory=event.directory or s.directory,
            )
        case SessionDeleted():
            return replace(s, deleted=True, busy=False, waiting=(), recheck=False)
        case SessionBusied():
            return _busied(s, event)
        case SessionIdled():
            return replace(s, busy=False, retrying=False, idle_at=event.t, recheck=True)
        case HumanMessaged():
            return _new_task(s, event.message)
        case TurnAborted():
            return _aborted(s, event)
        case PersonAsked():
            return s if event.request in s.waiting else replace(s, waiting=(*s.waiting, event.request)[-32:])
        case PersonAnswered():
            return replace(s, waiting=tuple(w for w in s.waiting if w != event.request))
        case JudgeCreated():
            return replace(s, judge=True)
        case SyntheticMessaged() | HostErrored() | SessionCompacted() | ActivitySeen() | ToolEnded():
            return s
        case _:
            assert_never(event)


def _busied(s: Session, event: SessionBusied) -> Session:
    """The agent works (again): a verdict that does not end the task is past."""
    if s.retrying != event.retry:
        s = replace(s, retrying=event.retry)
    if s.busy:
        return s
    if s.phase in FINAL_FOR_TASK:
        return replace(s, busy=True)
    return replace(s, busy=True, phase="open", reason="")


def _new_task(s: Session, message: str) -> Session:
    """A person typed: a new task with fresh counters (I6, I13), unless the host repeats itself."""
    if message == s.task:
        return s
    return replace(
        s,
        task=message,
        aborted=False,
        phase="open",
        reason="",
        attempts=0,
        unscored=0,
        stalled=0,
        repeated=0,
        calls=-1,
        open_items=(),
        waiting=(),
        recheck=False,
        nudges=0,
        loop="",
        loop_count=0,
    )


def _aborted(s: Session, event: TurnAborted) -> Session:
    """Esc marks this task only (I13). Ids of opencode messages sort by time, so the late error of an
    answer older than the task's own message says nothing about the task.
    """
    if event.message and s.task and event.message < s.task:
        return s
    return replace(s, aborted=True, waiting=())


def reconcile(s: Session, transcript: Transcript) -> Session:
    """Correct the state by the messages read: a human message or a parent we never heard of."""
    task = transcript.task
    s = replace(
        s,
        parent=transcript.parent or s.parent,
        title=transcript.title or s.title,
        directory=transcript.directory or s.directory,
        busy=transcript.busy,
        deleted=s.deleted or transcript.missing,
    )
    return _new_task(s, task.id) if task is not None and task.id != s.task else s


def judging(s: Session, turn: str) -> Session:
    """The turn is being judged. Stored, so that a restart judges it again once."""
    return replace(s, phase="judging", reason="", turn=turn, recheck=False)


def settled(s: Session, turn: str, phase: Phase, reason: str) -> Session:
    """The turn has its final verdict."""
    return replace(s, phase=phase, reason=reason, turn=turn, final=turn or s.final, recheck=False)


def taken_back(s: Session, before: Session) -> Session:
    """The prompt is as if it had not been: the counters are those of ``before``."""
    return replace(
        s,
        attempts=before.attempts,
        stalled=before.stalled,
        repeated=before.repeated,
        calls=before.calls,
        open_items=before.open_items,
        nudges=before.nudges,
        loop=before.loop,
        loop_count=before.loop_count,
    )
