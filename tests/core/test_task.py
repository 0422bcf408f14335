"""When a task is over, and what is then said of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from daemon.core.session import Phase, Session
from daemon.core.task import closed

OPEN = Session(id="s", task="t1", directory="/p", attempts=2)


@pytest.mark.parametrize("phase", ["complete", "stopped"])
def test_a_final_verdict_closes_the_task(phase: Phase) -> None:
    """Judged complete, or stopped by a guard or the person."""
    found = closed(OPEN, replace(OPEN, phase=phase, attempts=3), 7)
    assert found is not None
    assert (found.session, found.task, found.why, found.attempts, found.at) == ("s", "t1", phase, 3, 7)


def test_the_next_message_closes_it() -> None:
    """Whatever the state of the task was, the person went on to another one; its own attempts count."""
    found = closed(OPEN, replace(OPEN, task="t2", attempts=0), 7)
    assert found is not None
    assert (found.task, found.why, found.attempts) == ("t1", "next_task", 2)


def test_deleting_the_session_closes_it() -> None:
    """There will be no next message."""
    found = closed(OPEN, replace(OPEN, deleted=True), 7)
    assert found is not None
    assert found.why == "deleted"


def test_a_task_is_closed_once() -> None:
    """Complete, then the next message, then deleted: one fact about the first task."""
    done = replace(OPEN, phase="complete")
    assert closed(done, replace(done, task="t2", phase="open"), 7) is None
    assert closed(done, replace(done, deleted=True), 7) is None
    assert closed(replace(OPEN, deleted=True), replace(OPEN, deleted=True, task="t2"), 7) is None


@pytest.mark.parametrize("phase", ["incomplete", "unscored", "awaiting_user", "error", "skipped", "judging"])
def test_nothing_else_closes_it(phase: Phase) -> None:
    """There may be another round."""
    assert closed(OPEN, replace(OPEN, phase=phase, busy=True), 7) is None


def test_sessions_that_have_no_task_of_a_person() -> None:
    """Sub-agents, judges, a session before its first message."""
    for before in (None, replace(OPEN, task=""), replace(OPEN, judge=True), replace(OPEN, parent="p")):
        assert closed(before, replace(before or OPEN, task="t9"), 7) is None
