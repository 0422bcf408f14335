"""The guards, each by itself: what it is asked, what it answers."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from daemon.core.guards import (
    InARow,
    Limits,
    Spent,
    may_commit,
    may_judge,
    may_judge_messages,
    may_nudge,
    may_prompt,
    may_spend,
    normalise_items,
    rounds_without_progress,
    too_many_prompts,
)
from daemon.core.session import Progress, Session
from daemon.core.transcript import Message, ToolCall, Transcript

NOW = 1_000_000_000
IDLE = Session(id="s", task="u1", idle_at=NOW)
LIMITS = Limits()
USER = Message("u1", "user", text="do it", human=True)
NO = ToolCall("c1", "bash", "error", error="The user rejected permission to use this specific tool call.")
ANSWER = Message("a1", "assistant", text="done", finish="stop")


def transcript(*messages: Message, **more: Any) -> Transcript:
    return Transcript("s", messages or (USER, ANSWER), **more)


@pytest.mark.shows("I1", "I10", "I11", "I16", "I17")
@pytest.mark.parametrize(
    ("changes", "guard", "final"),
    [
        ({}, None, None),
        ({"aborted": True}, "aborted", "stopped"),  # 1
        ({"judge": True}, "judge_session", None),  # 2
        ({"judge": True, "aborted": True}, "judge_session", None),
        ({"parent": "p"}, "child_session", None),  # 3
        ({"busy": True}, "busy", None),  # I10
        ({"waiting": ("per_1",)}, "waiting", None),  # 8
        ({"off": True}, "off", None),
        ({"deleted": True}, "deleted", None),
        ({"idle_at": NOW - 700_000}, "stale_idle", "skipped"),
        ({"idle_at": 0}, None, None),
    ],
)
def test_before_any_io(changes: dict[str, Any], guard: str | None, final: str | None) -> None:
    """The first asking, on folded state."""
    no = may_judge(replace(IDLE, **changes), NOW, LIMITS)
    assert (no.guard if no else None, no.final if no else None) == (guard, final)


@pytest.mark.shows("I16", "I40")
def test_off_for_the_project_and_busy_children() -> None:
    """The project switch, and sub-agents that still work."""
    off = may_judge(IDLE, NOW, replace(LIMITS, enabled=False))
    children = may_judge(IDLE, NOW, LIMITS, children_busy=True)
    assert off is not None
    assert children is not None
    assert (off.guard, children.guard, children.wait) == ("off", "children", True)


RUNNING = ToolCall("c", "bash", "running")
ERROR = replace(ANSWER, finish="", error="APIError")


@pytest.mark.shows("I3", "I7", "I11", "I16", "I17", "I21")
@pytest.mark.parametrize(
    ("state", "read", "guard", "final"),
    [
        (IDLE, transcript(), None, None),
        (IDLE, Transcript("s", missing=True), "deleted", None),
        (IDLE, transcript(parent="p"), "child_session", None),
        (IDLE, transcript(busy=True), "busy", None),
        (IDLE, Transcript("s"), "no_turn", None),
        (IDLE, transcript(USER), "no_turn", None),
        (IDLE, transcript(ANSWER), "no_turn", None),
        (IDLE, transcript(USER, replace(ANSWER, summary=True)), "summary", None),
        (replace(IDLE, final="a1"), transcript(), "already_judged", None),  # 4
        (replace(IDLE, phase="complete", turn="a0"), transcript(), "task_complete", None),  # 4
        (replace(IDLE, phase="stopped", turn="a0"), transcript(), "task_stopped", "stopped"),
        (replace(IDLE, aborted=True), transcript(), "aborted", "stopped"),  # 1
        (IDLE, transcript(USER, replace(ERROR, error="MessageAbortedError")), "aborted", "stopped"),
        (IDLE, transcript(USER, ERROR), "host_error", "error"),
        (IDLE, transcript(USER, ANSWER, Message("u2", "user", human=True)), None, None),  # of a program
        (
            replace(IDLE, task="u2"),
            transcript(USER, ANSWER, Message("u2", "user", human=True)),
            "no_answer",
            "stopped",
        ),
        (IDLE, transcript(USER, ANSWER, Message("f1", "user", order="o")), "no_answer", "stopped"),
        (IDLE, transcript(USER, replace(ANSWER, calls=(RUNNING,))), "background", None),  # 8
        (IDLE, transcript(USER, replace(ANSWER, finish="")), "unfinished", "stopped"),
        (replace(IDLE, attempts=16), transcript(), "max_attempts", "stopped"),  # 5
        (IDLE, transcript(USER, replace(ANSWER, agent="plan")), "plan_agent", "awaiting_user"),
        (IDLE, transcript(USER, ANSWER, readonly=True), "readonly_agent", "awaiting_user"),
        (IDLE, transcript(USER, ANSWER, undone=True), "undone", "stopped"),
        (IDLE, transcript(USER, replace(ANSWER, calls=(NO,))), "refused", "awaiting_user"),
        (
            IDLE,
            transcript(USER, replace(ANSWER, calls=(NO, ToolCall("c2", "bash", "completed")))),
            None,
            None,
        ),
        (IDLE, transcript(USER, replace(ANSWER, finish="length")), None, None),
    ],
)
def test_on_the_messages(state: Session, read: Transcript, guard: str | None, final: str | None) -> None:
    """The second asking, on the messages, which are the truth."""
    no = may_judge_messages(state, read, LIMITS)
    assert (no.guard if no else None, no.final if no else None) == (guard, final)


JUDGED = replace(IDLE, phase="judging", turn="a1")


@pytest.mark.shows("I12", "I14")
@pytest.mark.parametrize(
    ("changes", "guard"),
    [
        ({}, None),
        ({"task": "u2"}, "human_typed"),  # 7
        ({"aborted": True}, "aborted"),  # 1
        ({"busy": True}, "busy"),
        ({"deleted": True}, "deleted"),
        ({"off": True}, "off"),
        ({"final": "a1"}, "already_judged"),  # 4
        ({"turn": "a2"}, "already_judged"),
    ],
)
def test_at_commit(changes: dict[str, Any], guard: str | None) -> None:
    """The third asking, when the verdict is about to be stored."""
    no = may_commit(JUDGED, replace(JUDGED, **changes))
    assert (no.guard if no else None) == guard


STOOD = Progress("files 1", "checks 1", ("a", "b"))
ROUND_3 = replace(IDLE, attempts=2, progress=STOOD)


@pytest.mark.shows("I8")
@pytest.mark.parametrize(
    ("state", "now", "items", "guard"),
    [
        (IDLE, Progress(), ("x",), None),
        (replace(ROUND_3, attempts=1), STOOD, ("y",), None),
        (replace(ROUND_3, stalled=1), STOOD, ("y",), "no_progress"),
        (replace(ROUND_3, stalled=1), replace(STOOD, files="files 2"), ("y",), "no_progress"),
        (replace(ROUND_3, stalled=1), replace(STOOD, files="files 2", cited="cited 2"), ("y",), None),
        (replace(ROUND_3, stalled=1), replace(STOOD, files="files 2", items=("a", "c")), ("y",), None),
        (replace(ROUND_3, stalled=1), replace(STOOD, checks="checks 2"), ("y",), None),
        (replace(ROUND_3, stalled=1), replace(STOOD, items=("a",)), ("y",), None),
        (replace(ROUND_3, stalled=1), replace(STOOD, items=()), ("y",), None),
        (replace(ROUND_3, stalled=1), replace(STOOD, items=("a", "c")), ("y",), "no_progress"),
        (replace(ROUND_3, stalled=1), replace(STOOD, items=("a", "b", "c")), ("y",), "no_progress"),
        (replace(ROUND_3, repeated=1, open_items=("x",)), Progress("files 2"), ("x",), "same_items"),
        (replace(ROUND_3, repeated=1, open_items=("x",)), Progress("files 2"), ("z",), None),
        (replace(ROUND_3, attempts=6, unchanged=5), replace(STOOD, checks="checks 2"), ("z",), "no_change"),
        (replace(ROUND_3, repeated=1), replace(STOOD, files="files 2"), ("z",), "same_items"),
        (replace(ROUND_3, attempts=6, unchanged=5), replace(STOOD, files="files 2", cited="c"), ("z",), None),
        (replace(ROUND_3, attempts=16), Progress("files 2"), ("z",), "max_attempts"),
    ],
)
def test_is_one_more_round_worth_it(
    state: Session, now: Progress, items: tuple[str, ...], guard: str | None
) -> None:
    """Attempts, progress and open items (guards 5 and 6)."""
    no = may_prompt(state, rounds_without_progress(state, progress=now, items=items), NOW, LIMITS)
    assert (no.guard if no else None) == guard


MINUTE = 60_000
OFTEN = tuple(NOW - n * MINUTE for n in range(8))


@pytest.mark.shows("I8", "GUARD-10")
@pytest.mark.parametrize(
    ("prompts", "counted", "guard"),
    [
        (OFTEN[:7], 7, None),
        (OFTEN, 8, "prompt_limit"),
        (tuple(t - 55 * MINUTE for t in OFTEN), 8, None),  # only some of them within the hour
        (tuple(NOW - n * 45 * MINUTE for n in range(29)), 29, None),
        (tuple(NOW - n * 45 * MINUTE for n in range(30)), 30, "prompt_limit"),
        (OFTEN, 0, None),  # somebody typed since
        (OFTEN * 2, 1, "prompt_limit"),
        (tuple(NOW - n * 23 * MINUTE for n in range(59)), 0, None),
        (tuple(NOW - n * 23 * MINUTE for n in range(60)), 0, "prompt_limit"),
    ],
)
def test_prompts_are_counted_by_the_clock_too(
    prompts: tuple[int, ...], counted: int, guard: str | None
) -> None:
    """At most 8 in an hour and 30 in a day, whatever begins a task, and twice as many whoever types: before a
    model is asked, before a nudge, and at the decision. The person is told once.
    """
    s = replace(IDLE, prompts=prompts, counted=counted)
    asked = (
        too_many_prompts(s, NOW, LIMITS),
        may_nudge(s, "u1", NOW, LIMITS),
        may_prompt(s, InARow(0, 0, 0), NOW, LIMITS),
    )
    assert [no.guard if no else None for no in asked] == [guard] * 3
    for no in asked:
        assert no is None or (no.final, bool(no.tell)) == ("stopped", True)
    told = too_many_prompts(replace(s, prompts_told=True), NOW, LIMITS)
    assert told is None or told.tell == ""


def test_items_are_compared_without_what_changes_by_itself() -> None:
    """Row ids, durations, case, order and punctuation are no progress; counts are."""
    assert normalise_items(("The tests fail (E3): 2 failed in 0.31s.", "B")) == normalise_items(
        ("b", "the tests fail (E7): 2 failed in 4s")
    )
    assert normalise_items(("2 failed",)) != normalise_items(("1 failed",))


@pytest.mark.shows("I8")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1 failure in 0.017 (0.018) seconds", "1 failure in 1.2 (1.21) seconds"),
        ("(0.011 secs / 0.012 secs)", "(2 secs / 1 secs)"),
        ("fail 1 duration_ms 511.123", "fail 1 duration_ms 6"),
        ("1 failed (random seed 4711)", "1 failed (random seed=12)"),
        ("at 09:12:01.233: 1 failed", "at 10:00:59,1: 1 failed"),
        ("<Widget 0x7f31c0> is None", "<Widget 0x7f4aff> is None"),
        ("job 3f2a77d0c1 failed", "job a81b99c2d0 failed"),
        ("token=[redacted:github-2:40-characters]", "token=[redacted:github-17:36-characters]"),
    ],
)
def test_what_changes_with_each_run_is_no_news(one: str, other: str) -> None:
    """Times, seeds, addresses, ids and fresh secrets that a check prints are no progress."""
    assert normalise_items((one,)) == normalise_items((other,)) != ()


@pytest.mark.shows("GUARD-9")
@pytest.mark.parametrize(
    ("spent", "asks"),
    [
        (Spent(), True),
        (Spent(today=1.99, session=0.49, tokens=499_999), True),
        (Spent(today=2.0), False),
        (Spent(session=0.5), False),
        (Spent(tokens=500_000), False),
    ],
)
def test_may_a_model_be_asked(spent: Spent, *, asks: bool) -> None:
    """Caps per day and session in USD, per day in tokens where no price is known."""
    assert (may_spend(spent, LIMITS) is None) is asks
    assert may_spend(spent, replace(LIMITS, usd_per_day=9, usd_per_session=9, tokens_per_day=10**9)) is None
    assert may_spend(spent, replace(LIMITS, usd_per_session=0)) is not None, "0 is never, not unlimited"
