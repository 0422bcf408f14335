"""The fold: total, ordered, and honest about tasks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from daemon.core import events as ev
from daemon.core.session import Session, fold, judging, prompted, reconcile, settled
from daemon.core.transcript import Message, Model, Transcript

S = Session(id="s")


def folded(*events: ev.SessionEvent, start: Session = S) -> Session:
    for event in events:
        start = fold(start, event)
    return start


@pytest.mark.shows("I6", "I13")
def test_a_human_message_opens_a_task_with_fresh_counters() -> None:
    """Identity is the message id; counters and the abort mark belong to the task."""
    worn = replace(
        S, task="u1", attempts=5, unscored=2, stalled=1, aborted=True, phase="stopped", recheck=True
    )
    fresh = fold(worn, ev.HumanMessaged("s", 5, "u2"))
    assert (fresh.task, fresh.attempts, fresh.unscored, fresh.stalled) == ("u2", 0, 0, 0)
    assert (fresh.aborted, fresh.phase, fresh.recheck) == (False, "open", False)


@pytest.mark.shows("I4")
def test_the_same_message_again_changes_nothing() -> None:
    """A host that repeats itself resets no counter."""
    worn = replace(S, task="u1", attempts=5, active_at=9)
    assert fold(worn, ev.HumanMessaged("s", 5, "u1")) is worn


@pytest.mark.shows("I4")
def test_synthetic_messages_open_no_task() -> None:
    """Feedback, continuations and notifications are not human."""
    worn = replace(S, task="u1", attempts=5, active_at=9)
    assert fold(worn, ev.SyntheticMessaged("s", 5, "u2", "rfl_1")) is worn


@pytest.mark.shows("I4", "I49")
def test_only_a_message_at_rest_begins_the_count_of_prompts() -> None:
    """What comes while the agent works begins a task where the last one is over, and no count that nothing
    resets.
    """
    over = replace(S, task="u1", phase="stopped", prompts=(1, 2), counted=2, prompts_told=True)
    steered = fold(over, ev.HumanMessaged("s", 5, "u2", steers=True))
    assert (steered.task, steered.counted, steered.prompts_told) == ("u2", 2, True)
    typed = fold(over, ev.HumanMessaged("s", 5, "u2"))
    assert (typed.task, typed.prompts, typed.counted, typed.prompts_told) == ("u2", (1, 2), 0, True)
    again = prompted(typed, 3)
    assert (again.prompts, again.counted, again.prompts_told) == ((1, 2, 3), 1, False)
    assert prompted(replace(again, prompts_told=True), 4).prompts_told


@pytest.mark.shows("I11", "I13")
def test_an_abort_marks_this_task_only() -> None:
    """A late error of an older answer does not mark the newer task."""
    typed = folded(ev.HumanMessaged("s", 1, "msg_05"))
    assert fold(typed, ev.TurnAborted("s", 2)).aborted
    assert fold(typed, ev.TurnAborted("s", 2, "msg_07")).aborted
    assert not fold(typed, ev.TurnAborted("s", 2, "msg_03")).aborted


@pytest.mark.shows("I10")
def test_busy_reopens_all_but_final_tasks() -> None:
    """A session that works is open again; a complete or stopped task stays so until a person types."""
    for phase, expected in (("incomplete", "open"), ("judging", "open"), ("complete", "complete")):
        assert fold(replace(S, phase=phase), ev.SessionBusied("s", 1)).phase == expected  # type: ignore[arg-type]
    assert fold(replace(S, phase="stopped"), ev.SessionBusied("s", 1)).phase == "stopped"


@pytest.mark.shows("I16")
def test_waiting_for_a_person() -> None:
    """Permissions and questions open and close; a stray answer is harmless."""
    asked = folded(ev.PersonAsked("s", 1, "p1"), ev.PersonAsked("s", 1, "p1"), ev.PersonAsked("s", 1, "p2"))
    assert asked.waiting == ("p1", "p2")
    assert folded(ev.PersonAnswered("s", 2, "p1"), ev.PersonAnswered("s", 2, "zz"), start=asked).waiting == (
        "p2",
    )


def test_the_messages_correct_the_state() -> None:
    """A human message we never heard of opens its task; a parent makes it a child."""
    read = Transcript("s", (Message("u9", "user", human=True),), parent="p", busy=True)
    found = reconcile(replace(S, task="u1", attempts=3), read)
    assert (found.task, found.attempts, found.parent, found.busy) == ("u9", 0, "p", True)


def test_the_model_and_its_context() -> None:
    """Those of the last answer; one without figures, such as a failed one, leaves them."""
    answer = Message("a1", "assistant", model=Model("p", "m" * 200), tokens=84_000)
    found = reconcile(S, Transcript("s", (Message("u1", "user", human=True), answer)))
    assert (found.model, found.context) == ("m" * 100, 84_000)
    assert reconcile(found, Transcript("s", (Message("a2", "assistant"),))).context == 84_000


def test_transitions() -> None:
    """Judging and its end."""
    at = judging(replace(S, recheck=True), "a1")
    assert (at.phase, at.turn, at.recheck, at.final) == ("judging", "a1", False, "")
    assert settled(at, "a1", "complete", "judged").final == "a1"


ids = st.sampled_from(["u1", "u2", "u3", ""])
times = st.integers(-1, 100)
any_event = st.one_of(
    st.builds(ev.SessionSeen, st.just("s"), times, ids, ids, ids),
    st.builds(ev.SessionDeleted, st.just("s"), times),
    st.builds(ev.SessionBusied, st.just("s"), times),
    st.builds(ev.SessionIdled, st.just("s"), times),
    st.builds(ev.HumanMessaged, st.just("s"), times, ids),
    st.builds(ev.SyntheticMessaged, st.just("s"), times, ids, ids),
    st.builds(ev.TurnAborted, st.just("s"), times, ids),
    st.builds(ev.HostErrored, st.just("s"), times),
    st.builds(ev.PersonAsked, st.just("s"), times, ids),
    st.builds(ev.PersonAnswered, st.just("s"), times, ids),
    st.builds(ev.SessionCompacted, st.just("s"), times),
    st.builds(ev.ActivitySeen, st.just("s"), times),
    st.builds(ev.JudgeCreated, st.just("s"), times),
)


@pytest.mark.shows("I1", "I44")
@given(st.lists(any_event, max_size=40))
def test_any_events_in_any_order(events: list[ev.SessionEvent]) -> None:
    """The fold is total; a judge session stays one; waiting stays bounded."""
    state = S
    for event in events:
        after = fold(state, event)
        assert after.judge >= state.judge
        assert after.deleted >= state.deleted
        assert len(after.waiting) <= 32
        assert fold(after, event).task == after.task
        state = after
