"""The nine guards (DESIGN §4), asked three times: on folded state, on the messages read, at commit.

``design/anti-loop.md`` maps the seed's five names to them. A guard is a question: ``Skip`` is its no.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from daemon.core.session import FINAL_FOR_TASK
from daemon.core.verdict import FinalState

if TYPE_CHECKING:
    from daemon.core.session import Session
    from daemon.core.transcript import Message, Transcript

ABORT_ERROR = "MessageAbortedError"
PLAN_AGENTS = frozenset({"plan"})


@dataclass(frozen=True, slots=True)
class Limits:
    """The numbers the guards compare with; from the settings (``daemon.config``)."""

    enabled: bool = True
    observe: bool = False
    toasts: bool = True
    max_attempts: int = 16
    max_unscored: int = 3
    max_stalled: int = 2
    max_idle_age_ms: int = 600_000
    usd_per_day: float = 2.0
    usd_per_session: float = 0.5
    tokens_per_day: int = 500_000
    wait_s: int = 600  # as long as the host waits for a verdict


@dataclass(frozen=True, slots=True)
class Spent:
    """What judging cost so far: USD today and in this session; ``tokens`` today without a known price."""

    today: float = 0.0
    session: float = 0.0
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Skip:
    """A guard's no. ``final``: what the verdict says, None when nothing is written (children, judges,
    a turn judged already). ``tell``: the person is told once. ``wait``: ask again at the next event.
    """

    guard: str
    reason: str
    final: FinalState | None = None
    tell: str = ""
    wait: bool = False
    of_session: bool = False  # a limit of this session, not of the day


def may_judge(s: Session, now_ms: int, limits: Limits, *, children_busy: bool = False) -> Skip | None:
    """First time: on folded state, before any I/O."""
    if s.judge:
        return Skip("judge_session", "a judge session of ours (guard 2)")
    if s.parent:
        return Skip("child_session", "a child session (guard 3)")
    if s.deleted:
        return Skip("deleted", "the session was deleted")
    if not limits.enabled or s.off:
        return Skip("off", "switched off for this project or session")
    if s.aborted:
        return Skip("aborted", "the person pressed Esc (guard 1)", final="stopped")
    if s.busy:
        return Skip("busy", "the agent works again", wait=True)
    if s.waiting:
        return Skip("waiting", f"{len(s.waiting)} open permissions or questions (guard 8)", wait=True)
    if children_busy:
        return Skip("children", "a sub-agent still works (guard 8)", wait=True)
    if s.idle_at and now_ms - s.idle_at > limits.max_idle_age_ms:
        return Skip("stale_idle", "the idle is too old to act on", final="skipped")
    return None


def may_judge_messages(s: Session, transcript: Transcript, limits: Limits) -> Skip | None:  # noqa: C901, PLR0912 - the table of guards
    """Second time: on the messages, which are the truth. ``s`` is already reconciled with them."""
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
    if turn.id == s.final:
        return Skip("already_judged", "this turn has its final verdict (guard 4)")
    if s.phase in FINAL_FOR_TASK:
        final: FinalState | None = "stopped" if s.phase == "stopped" else None
        return Skip(f"task_{s.phase}", f"this task is {s.phase} already (guard 4)", final=final)
    if turn.error == ABORT_ERROR or s.aborted:
        return Skip("aborted", "the person pressed Esc (guard 1)", final="stopped")
    if turn.error:
        return Skip("host_error", f"the host gave up: {turn.error}", final="error")
    if _after(transcript, turn):
        return Skip("no_answer", "the last message has no answer yet", final="stopped")
    if any(c.status in {"pending", "running"} for c in turn.calls):
        return Skip("background", "a tool still runs (guard 8)", wait=True)
    if not turn.finish:
        return Skip("unfinished", "the host stopped the answer before it was finished", final="stopped")
    if s.attempts >= limits.max_attempts:
        tell = f"Stopped after {s.attempts} attempts: the task still looks incomplete"
        return Skip("max_attempts", f"{s.attempts} attempts (guard 5)", final="stopped", tell=tell)
    if turn.agent in PLAN_AGENTS:
        return Skip("plan_agent", "a plan waits for the person", final="awaiting_user")
    return None


def may_commit(before: Session, now: Session) -> Skip | None:
    """Third time: when a verdict is about to be stored. ``before`` is the state the case was made from."""
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


def may_prompt(s: Session, *, calls: int, items: tuple[str, ...], limits: Limits) -> Skip | None:
    """Guard 5 and 6: is one more round of feedback worth the person's money?

    ``calls``: tool calls of the task so far; ``items``: the open items about to be sent, normalised.
    """
    if s.attempts >= limits.max_attempts:
        tell = f"Stopped after {s.attempts} attempts: the task still looks incomplete"
        return Skip("max_attempts", f"{s.attempts} attempts (guard 5)", final="stopped", tell=tell)
    stalled, repeated = rounds_without_progress(s, calls=calls, items=items)
    if stalled >= limits.max_stalled:
        tell = f"Stopped: {stalled} rounds of feedback in a row changed nothing"
        return Skip("no_activity", "no new tool activity (guard 6)", final="stopped", tell=tell)
    if repeated >= limits.max_stalled:
        tell = "Stopped: the same items are still open after two rounds of feedback"
        return Skip("same_items", "the same open items again (guard 6)", final="stopped", tell=tell)
    return None


def may_nudge(
    s: Session, task: str, now_ms: int, limits: Limits, *, children_busy: bool = False
) -> Skip | None:
    """A prompt that no verdict is behind: only for an idle agent, on the same task (I10, I14, I32)."""
    no = may_judge(s, now_ms, limits, children_busy=children_busy)
    if no is not None:
        return no
    if s.task != task:
        return Skip("human_typed", "a person typed meanwhile (guard 7)")
    if s.phase in FINAL_FOR_TASK:
        return Skip(f"task_{s.phase}", f"this task is {s.phase} already (guard 4)")
    return None


def may_spend(spent: Spent, limits: Limits, *, passing: bool = False) -> Skip | None:
    """Guard 9: may a model be asked? A limit of 0 is never. The no is told once; rules judge meanwhile.

    ``passing``: ``spent`` holds the likely cost of the next call too, which may reach a limit, not pass it.
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


def rounds_without_progress(s: Session, *, calls: int, items: tuple[str, ...]) -> tuple[int, int]:
    """(rounds without a new tool call, rounds with the same open items) counting this one."""
    if s.attempts == 0:
        return 0, 0
    stalled = s.stalled + 1 if calls <= s.calls else 0
    repeated = s.repeated + 1 if items and items == s.open_items else 0
    return stalled, repeated


def normalise_items(items: tuple[str, ...]) -> tuple[str, ...]:
    """Open items without what changes between rounds that changed nothing: row ids, durations, case."""
    cleaned = {_SPACE.sub(" ", _NOISE.sub(" ", item.casefold())).strip() for item in items}
    return tuple(sorted(cleaned - {""}))


_NOISE = re.compile(r"\be\d+\b|\b\d+(?:\.\d+)?\s?(?:ms|s|sec|seconds|minutes?)\b|[`'\"()\[\].,:;]")
_SPACE = re.compile(r"\s+")


def _after(transcript: Transcript, turn: Message) -> bool:
    """A human message, or feedback of ours, came after the last assistant message."""
    return any(m.human or m.order for m in transcript.since(turn.id))
