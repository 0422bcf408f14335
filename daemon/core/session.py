"""The state of one session, folded from its events. Guards read it, the store keeps it.

Any event in any order gives a state. ``reconcile`` corrects the state by the host's messages, which count
more than events. The engine commits the changes that ``judging`` and ``settled`` make.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, assert_never

from msgspec import Struct
from msgspec.structs import replace

from . import events as ev

if TYPE_CHECKING:
    from .transcript import Transcript


class Progress(Struct, frozen=True):
    """The state of a task at a round of feedback, to count rounds without progress (I8).

    ``files``: a digest of the task's net change. ``checks``: of the last results of its checks, commits and
    runs. ``items``: the sorted cites of each open item, so that a new wording is the same item. ``cited``: a
    digest of the change of those files that an open item names or cites.
    """

    files: str = ""
    checks: str = ""
    items: tuple[str, ...] = ()
    cited: str = ""


NOWHERE: Final = Progress()
"""Before the first feedback of a task."""


def moved(before: Progress, now: Progress) -> bool:
    """Says whether a check changed its result, an open item went without a new one, or files changed. While
    every item is open, only files that an item cites count.
    """
    if set(now.items) < set(before.items) or before.checks != now.checks:
        return True
    if set(before.items) <= set(now.items):
        return before.cited != now.cited
    return before.files != now.files


Phase = Literal[
    "open", "judging", "complete", "awaiting_user", "incomplete", "stopped", "unscored", "error", "skipped"
]


MODEL_CHARS = 100
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
MOST_PROMPTS = 1000  # twice as many as ``judge.max_per_day`` may allow
ACTIVE_STEP_MS = 1_000  # ``active_at`` moves in these steps, so that most activity leaves the state as it is

FINAL_FOR_TASK: frozenset[Phase] = frozenset({"complete", "stopped"})
"""Phases that only a new message of the person ends: further turns of the task are not judged."""


class Session(Struct, frozen=True, kw_only=True):
    """One session of a host. Times are epoch ms of the host's clock.

    ``task``: id of the person's last message, empty until one was seen. ``turn``: the assistant message that
    is being judged or was judged last. ``final``: the turn that has its final verdict (guard 4). ``waiting``:
    open permissions and questions (guard 8). ``background``: running tasks that its turn waits for; the
    session counts as busy meanwhile. ``recheck``: the agent is idle and not judged yet. ``rejudged``: the
    turn that was judged again after a crash, which happens once. ``retrying``: the host waits to ask a
    failing model again. ``model``, ``context``: of the last answer read: its model, and its tokens with all
    input.

    These count for one task, and a new message of the person resets them: ``attempts``, ``unscored``,
    ``stalled``, ``repeated``, ``unchanged``, ``open_items``; ``progress``: where the task stood when feedback
    last went out (guard 6); ``nudges``; ``loop``: the key of the loop that the agent was last told of, and
    ``loop_count``: how often it had repeated then; ``rotate``: the pushed secret that the person was told of.

    No task resets these: ``prompts``: when prompts of ours were stored (epoch ms), of the last day; nothing
    takes one of them away. ``counted``: how many of the last ones count for the usual limits;
    a host's word that a person typed and the agent answers begins that again. ``prompts_told``: the person
    was told that there may be no more, until the first prompt after such a word.
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
    unchanged: int = 0
    progress: Progress = NOWHERE
    open_items: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    background: tuple[str, ...] = ()
    recheck: bool = False
    rejudged: str = ""
    retrying: bool = False
    nudges: int = 0
    loop: str = ""
    loop_count: int = 0
    rotate: str = ""
    prompts: tuple[int, ...] = ()
    counted: int = 0
    prompts_told: bool = False
    model: str = ""
    context: int = 0


_NEW_TASK: Final[dict[str, Any]] = {
    name: getattr(Session(id=""), name)
    for name in (
        *("aborted", "phase", "reason", "waiting", "background", "recheck", "rotate"),
        *("attempts", "unscored", "stalled", "repeated", "unchanged", "progress", "open_items"),
        *("nudges", "loop", "loop_count"),
    )
}
"""Fields that a new message of the person resets."""
_COUNTERS: Final = (
    *("attempts", "stalled", "repeated", "unchanged", "progress", "open_items"),
    *("prompts", "counted", "prompts_told", "nudges", "loop", "loop_count"),
)
"""Fields that are restored when a prompt is taken back."""


def fold(state: Session, event: ev.SessionEvent) -> Session:
    """The state after ``event``. Never fails. An event that changes nothing returns ``state`` itself."""
    s = replace(state, active_at=event.t) if event.t >= state.active_at + ACTIVE_STEP_MS else state
    match event:
        case ev.SessionSeen():
            return replace(
                s,
                parent=event.parent or s.parent,
                title=event.title or s.title,
                directory=event.directory or s.directory,
            )
        case ev.SessionDeleted():
            return replace(s, deleted=True, busy=False, waiting=(), background=(), recheck=False)
        case ev.SessionBusied():
            return _busied(s, event)
        case ev.SessionIdled():
            return replace(s, busy=False, retrying=False, background=(), idle_at=event.t, recheck=True)
        case ev.BackgroundAwaited():
            return replace(s, background=event.names)
        case ev.HumanMessaged():
            return _typed(s, event)
        case ev.TurnAborted():
            return _aborted(s, event)
        case ev.PersonAsked():
            return s if event.request in s.waiting else replace(s, waiting=(*s.waiting, event.request)[-32:])
        case ev.PersonAnswered():
            return replace(s, waiting=tuple(w for w in s.waiting if w != event.request))
        case ev.JudgeCreated():
            return replace(s, judge=True)
        case (
            ev.SyntheticMessaged()
            | ev.HostErrored()
            | ev.QuestionAnswered()
            | ev.CommandTyped()
            | ev.SessionCompacted()
            | ev.SessionEnded()
            | ev.ActivitySeen()
            | ev.ToolEnded()
        ):
            return s
        case _:
            assert_never(event)


def _busied(session: Session, event: ev.SessionBusied) -> Session:
    """The agent works: its last verdict no longer counts, unless that ended the task."""
    if session.retrying != event.retry:
        session = replace(session, retrying=event.retry)
    if session.background:
        session = replace(session, background=())
    if session.busy:
        return session
    if session.phase in FINAL_FOR_TASK:
        return replace(session, busy=True)
    return replace(session, busy=True, phase="open", reason="")


def _typed(session: Session, event: ev.HumanMessaged) -> Session:
    """A message that comes while the agent works belongs to the task, unless that is over. Only one that came
    while the agent was at rest, and that it answers, begins everything again.
    """
    if event.steers and session.task and session.phase not in FINAL_FOR_TASK:
        return session
    new = _new_task(session, event.message)
    return new if event.steers or new is session else replace(new, counted=0)


def _new_task(session: Session, message: str) -> Session:
    """A person typed: a new task, counters at zero (I6, I13), unless the host sent the message twice."""
    return session if message == session.task else replace(session, task=message, **_NEW_TASK)


def _aborted(session: Session, event: ev.TurnAborted) -> Session:
    """The person pressed Esc on this task (I13). Ids of opencode messages sort by time: an error that comes
    late, for an answer older than the task's own message, is not about this task.
    """
    if event.message and session.task and event.message < session.task:
        return session
    return replace(session, aborted=True, waiting=())


def reconcile(session: Session, transcript: Transcript) -> Session:
    """Correct the state by the messages read, for example by a person's message that no event told of."""
    task, turn = replace(transcript, begun=session.task).task, transcript.turn
    session = replace(
        session,
        parent=transcript.parent or session.parent,
        title=transcript.title or session.title,
        directory=transcript.directory or session.directory,
        busy=transcript.busy,
        deleted=session.deleted or transcript.missing,
        model=turn.model.model[:MODEL_CHARS]
        if turn is not None and turn.model is not None
        else session.model,
        context=(turn.tokens if turn is not None else 0) or session.context,
    )
    return _new_task(session, task.id) if task is not None and task.id != session.task else session


def judging(session: Session, turn: str) -> Session:
    """The state while ``turn`` is judged. It is stored so that after a crash the turn is judged once more."""
    return replace(session, phase="judging", reason="", turn=turn, recheck=False)


def settled(session: Session, turn: str, phase: Phase, reason: str) -> Session:
    """The state when ``turn`` has its final verdict."""
    return replace(session, phase=phase, reason=reason, turn=turn, final=turn or session.final, recheck=False)


def prompted(session: Session, at: int) -> Session:
    """The state when a prompt of ours is stored (epoch ms)."""
    recent = tuple(t for t in session.prompts if t > at - DAY_MS)
    return replace(
        session,
        prompts=(*recent, at)[-MOST_PROMPTS:],
        counted=session.counted + 1,
        prompts_told=session.prompts_told and session.counted > 0,
    )


def unread(session: Session) -> Session:
    """The state when the host does not tell the agent's answer. A task that is over stays so."""
    if session.phase in FINAL_FOR_TASK:
        return replace(session, recheck=False)
    return replace(session, recheck=False, phase="error", reason="messages not read")


def unread_turn(session: Session) -> str:
    """Stands for the id of the answer that nobody read; each idle has its own."""
    return f"unread-{session.idle_at}"


def taken_back(session: Session, before: Session) -> Session:
    """The state as if the prompt had not been sent: with the counters of ``before``."""
    return replace(session, **{name: getattr(before, name) for name in _COUNTERS})
