"""The guards of ``design/anti-loop.md``: may this turn be judged, may the agent be prompted?

The engine asks three times: with the state folded from events, with the messages it read, and when it
commits a verdict. Each guard answers ``Skip`` for no and None for yes.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from msgspec import Struct

from .session import DAY_MS, FINAL_FOR_TASK, HOUR_MS, Progress, Session, moved
from .transcript import Transcript, is_refused
from .verdict import FinalState

ABORT_ERROR = "MessageAbortedError"
PLAN_AGENTS = frozenset({"plan"})


class Limits(Struct, frozen=True):
    """The numbers that the guards compare with. They come from the settings (``daemon.config``)."""

    enabled: bool = True
    observe: bool = False
    toasts: bool = True
    max_attempts: int = 16
    max_unscored: int = 3
    max_stalled: int = 2
    max_unchanged: int = 6
    max_per_hour: int = 8
    max_per_day: int = 30
    feedback_delay_ms: int = 2_000  # after idle, in opencode's terminal UI; until then a person can step in
    max_idle_age_ms: int = 600_000
    usd_per_day: float = 2.0
    usd_per_session: float = 0.5
    tokens_per_day: int = 500_000
    learning_percent: int = 50
    wait_s: int = 600  # how long a host waits for a verdict


class Spent(Struct, frozen=True):
    """The cost of judging so far, in USD. ``tokens``: those used today by models whose price is unknown;
    ``all_tokens``: by every model.
    """

    today: float = 0.0
    session: float = 0.0
    tokens: int = 0
    all_tokens: int = 0


class Skip(Struct, frozen=True):
    """A guard's no, with its reason.

    ``final``: the state of the written verdict; None when none is written (a child session, a judge session,
    a judged turn). ``tell``: a message for the person, once. ``wait``: ask the guard again at the next event.
    """

    guard: str
    reason: str
    final: FinalState | None = None
    tell: str = ""
    wait: bool = False
    of_session: bool = False  # the limit is that of the session, not of the day


def may_judge(session: Session, now_ms: int, limits: Limits, *, children_busy: bool = False) -> Skip | None:
    """The first time: by the state folded from events, before any I/O."""
    if session.judge:
        return Skip("judge_session", "a judge session of ours (guard 2)")
    if session.parent:
        return Skip("child_session", "a child session (guard 3)")
    if session.deleted:
        return Skip("deleted", "the session was deleted")
    if not limits.enabled or session.off:
        return Skip("off", "switched off for this project or session")
    if session.aborted:
        return Skip("aborted", "the person pressed Esc (guard 1)", final="stopped")
    if session.busy:
        return Skip("busy", "the agent works again", wait=True)
    if session.waiting:
        return Skip("waiting", f"{len(session.waiting)} open permissions or questions (guard 8)", wait=True)
    if children_busy:
        return Skip("children", "a sub-agent still works (guard 8)", wait=True)
    if session.idle_at and now_ms - session.idle_at > limits.max_idle_age_ms:
        return Skip("stale_idle", "the idle is too old to act on", final="skipped")
    return None


def too_many_prompts(session: Session, now_ms: int, limits: Limits) -> Skip | None:
    """Guard 10: limits the prompts of a session. Told once.

    A person's message that the agent answers begins the count again. opencode cannot tell a person from a
    program that types, so twice the limits are never reset.
    """
    counted = session.prompts[max(0, len(session.prompts) - session.counted) :]
    for name, most, span in (
        ("an hour", limits.max_per_hour, HOUR_MS),
        ("a day", limits.max_per_day, DAY_MS),
    ):
        for prompts, limit, then in (
            (counted, most, "Type a message to go on"),
            (session.prompts, 2 * most, f"Nothing more is sent within {name}, whoever types"),
        ):
            sent = sum(t > now_ms - span for t in prompts)
            if sent >= limit:
                return Skip(
                    "prompt_limit",
                    f"{sent} prompts within {name} (guard 10)",
                    final="stopped",
                    tell=""
                    if session.prompts_told
                    else f"Stopped: the agent was sent back {sent} times within {name}. {then}",
                )
    return None


def may_judge_messages(session: Session, transcript: Transcript, limits: Limits) -> Skip | None:  # noqa: C901, PLR0912 - the table of guards
    """The second time: by the messages that were read. ``session`` was reconciled with them already."""
    turn = transcript.turn
    if transcript.missing:
        return Skip("deleted", "the host does not know this session any more")
    if transcript.parent:
        return Skip("child_session", "a child session (guard 3)")
    if transcript.busy:
        return Skip("busy", "the host says the agent works", wait=True)
    if turn is None or transcript.task is None:
        return Skip("no_turn", "nobody asked or nothing was answered yet")
    if turn.summary:
        return Skip("summary", "the last message is a compaction summary")
    if turn.id == session.final:
        return Skip("already_judged", "this turn has its final verdict (guard 4)")
    if session.phase in FINAL_FOR_TASK:
        final: FinalState | None = "stopped" if session.phase == "stopped" else None
        return Skip(f"task_{session.phase}", f"this task is {session.phase} already (guard 4)", final=final)
    if turn.error == ABORT_ERROR or session.aborted:
        return Skip("aborted", "the person pressed Esc (guard 1)", final="stopped")
    if transcript.undone:
        return Skip("undone", "the person took messages back (guard 1)", final="stopped")
    if turn.error:
        return Skip("host_error", f"the host gave up: {turn.error}", final="error")
    if any(m.order or m.id == session.task for m in transcript.since(turn.id)):
        return Skip("no_answer", "the last message has no answer yet", final="stopped")
    if transcript.calls and is_refused(transcript.calls[-1]):
        return Skip("refused", "the person refused the last call (guard 1)", final="awaiting_user")
    if any(c.status in {"pending", "running"} for c in turn.calls):
        return Skip("background", "a tool still runs (guard 8)", wait=True)
    if not turn.finish:
        return Skip("unfinished", "the host stopped the answer before it was finished", final="stopped")
    if session.attempts >= limits.max_attempts:
        tell = f"Stopped after {session.attempts} attempts: the task still looks incomplete"
        return Skip("max_attempts", f"{session.attempts} attempts (guard 5)", final="stopped", tell=tell)
    if transcript.readonly:
        return Skip("readonly_agent", "an agent that may change nothing", final="awaiting_user")
    if turn.agent in PLAN_AGENTS:
        return Skip("plan_agent", "a plan waits for the person", final="awaiting_user")
    return None


def may_commit(before: Session, now: Session) -> Skip | None:
    """The third time: before a verdict is stored. ``before`` is the state that the case was made from."""
    if now.task != before.task:
        return Skip("human_typed", "a person typed while the judge was thinking (guard 7)")
    if now.aborted:
        return Skip(
            "aborted", "the person pressed Esc while the judge was thinking (guard 1)", final="stopped"
        )
    if now.busy:
        return Skip("busy", "the agent went on while the judge was thinking", wait=True)
    if now.deleted:
        return Skip("deleted", "the session was deleted while the judge was thinking")
    if now.off:
        return Skip("off", "switched off while the judge was thinking")
    if now.final == before.turn or now.turn != before.turn:
        return Skip("already_judged", "this turn was judged meanwhile (guard 4)")
    return None


def may_prompt(session: Session, in_a_row: InARow, now_ms: int, limits: Limits) -> Skip | None:
    """Guards 5, 6 and 10: is one more round of feedback worth the person's money?"""
    if (no := too_many_prompts(session, now_ms, limits)) is not None:
        return no
    if session.attempts >= limits.max_attempts:
        tell = f"Stopped after {session.attempts} attempts: the task still looks incomplete"
        return Skip("max_attempts", f"{session.attempts} attempts (guard 5)", final="stopped", tell=tell)
    if in_a_row.stalled >= limits.max_stalled:
        tell = f"Stopped: {in_a_row.stalled} rounds of feedback in a row brought no progress"
        return Skip("no_progress", "no file, check or open item moved (guard 6)", final="stopped", tell=tell)
    if in_a_row.repeated >= limits.max_stalled:
        tell = "Stopped: the same items are still open after two rounds of feedback"
        return Skip("same_items", "the same open items again (guard 6)", final="stopped", tell=tell)
    if in_a_row.unchanged >= limits.max_unchanged:
        tell = f"Stopped: {in_a_row.unchanged} rounds of feedback changed no file"
        return Skip("no_change", "the files are as they were (guard 6)", final="stopped", tell=tell)
    return None


def may_nudge(
    session: Session, task: str, now_ms: int, limits: Limits, *, children_busy: bool = False
) -> Skip | None:
    """May the agent be prompted without a verdict? Only when it is idle, on the same task (I10, I14, I32)."""
    no = may_judge(session, now_ms, limits, children_busy=children_busy)
    if no is not None:
        return no
    if session.task != task:
        return Skip("human_typed", "a person typed meanwhile (guard 7)")
    if session.phase in FINAL_FOR_TASK:
        return Skip(f"task_{session.phase}", f"this task is {session.phase} already (guard 4)")
    return too_many_prompts(session, now_ms, limits)


def may_spend(spent: Spent, limits: Limits, *, passing: bool = False) -> Skip | None:
    """Guard 9: may a model be asked? With a limit of 0, never. While it says no, the fixed rules judge.

    ``passing``: ``spent`` includes the next call, and may reach a limit.
    """
    for what, used, limit in (
        ("today", spent.today, limits.usd_per_day),
        ("in this session", spent.session, limits.usd_per_session),
    ):
        if used > limit or (used == limit and not passing):
            tell = f"Judging cost {used:.2f} USD {what}: fixed rules judge until it is less"
            of_session = what != "today" and limit > 0
            return Skip("spend_limit", f"{used:.4f} USD {what} (guard 9)", tell=tell, of_session=of_session)
    if spent.tokens > limits.tokens_per_day or (spent.tokens == limits.tokens_per_day and not passing):
        tell = f"Judging took {spent.tokens} tokens today: fixed rules judge until tomorrow"
        return Skip("spend_limit", f"{spent.tokens} tokens today (guard 9)", tell=tell)
    return None


class InARow(NamedTuple):
    """Rounds in a row, this one included: without progress, with the same items, without changed files."""

    stalled: int
    repeated: int
    unchanged: int


def rounds_without_progress(session: Session, *, progress: Progress, items: tuple[str, ...]) -> InARow:
    """Counts the rounds up to this one. ``progress``: of now. ``items``: the normalised items to be sent."""
    before = session.progress
    if session.attempts == 0:
        return InARow(0, 0, 0)
    progressed = moved(before, progress)
    stalled = 0 if progressed else session.stalled + 1
    same = items == session.open_items or (progress.items == before.items and not progressed)
    repeated = session.repeated + 1 if items and same else 0
    unchanged = session.unchanged + 1 if before.files == progress.files else 0
    return InARow(stalled, repeated, unchanged)


def normalise_items(items: tuple[str, ...]) -> tuple[str, ...]:
    """The open items without what differs between two runs; of a secret's mark the kind stays."""
    cleaned = {_SPACE.sub(" ", _NOISE.sub(" ", _MARK.sub(r"\1", item.casefold()))).strip() for item in items}
    return tuple(sorted(cleaned - {""}))


_MARK = re.compile(r"\[redacted:([a-z]{1,20})[^\]\s]{0,60}\]")
_NOISE = re.compile(
    r"\be\d+\b|\b(?:seed|pid|duration_ms)[\s=:]{1,3}\d+(?:\.\d+)?"
    r"|\b\d+(?:\.\d+)?(?:\s?\(\d+(?:\.\d+)?\))?\s?(?:ns|us|µs|ms|s|sec|secs|seconds?|minutes?)\b"
    r"|\b\d{1,2}:\d{2}:\d{2}(?:[.,]\d{1,9})?"
    r"|\b0x[0-9a-f]{1,32}\b|\b(?=[a-f]{0,31}\d)[0-9a-f]{8,64}\b"
    r"|[`'\"()\[\].,:;]"
)
_SPACE = re.compile(r"\s+")
