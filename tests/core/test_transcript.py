"""A transcript in its tasks."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from daemon.core.transcript import Message, Todo, Transcript

if TYPE_CHECKING:
    from collections.abc import Callable

_ids = count()


def typed(text: str = "Do it") -> Message:
    return Message(f"u{next(_ids)}", "user", text=text, human=True)


def said(text: str = "Done.", *, finish: str = "stop", error: str = "", summary: bool = False) -> Message:
    return Message(f"a{next(_ids)}", "assistant", text=text, finish=finish, error=error, summary=summary)


def ours() -> Message:
    """Feedback of reflectd: no person typed it."""
    return Message(f"o{next(_ids)}", "user", text="Go on", order="order")


def cut() -> Message:
    return said(finish="tool-calls")


def failed() -> Message:
    return said(error="E")


def summed_up() -> Message:
    return said(summary=True)


KINDS = st.sampled_from([typed, said, ours, cut, failed, summed_up])


def test_a_task_begins_after_a_finished_answer() -> None:
    """What the person typed while the agent worked, after Esc, or after a summary is of the same task."""
    first = [typed(), said(finish="tool-calls"), typed(), said(), ours(), said()]
    second = [typed(), said(error="MessageAbortedError"), typed(), said(summary=True), typed(), said()]
    third = [typed()]
    found = Transcript("s", (said("hello"), *first, *second, *third), todos=(Todo("x", "pending"),)).tasks
    assert [list(t.messages) for t in found] == [first, second, third]
    assert [len(t.todos) for t in found] == [0, 0, 1], "the todos are those of now"
    assert {t.session for t in found} == {"s"}


def test_without_a_person_there_is_no_task() -> None:
    """Empty, or only an agent's words."""
    assert Transcript("s").tasks == ()
    assert Transcript("s", (said(), ours())).tasks == ()


@given(st.lists(KINDS, max_size=30))
def test_the_tasks_are_those_that_the_last_one_says(kinds: list[Callable[[], Message]]) -> None:
    """Of any messages: together they are all from the first human message on, in order, and the last is the
    current task as ``requests`` and ``work`` have it.
    """
    messages = tuple(kind() for kind in kinds)
    whole = Transcript("s", messages)
    tasks = whole.tasks
    first = next((i for i, m in enumerate(messages) if m.human), len(messages))
    assert tuple(m for t in tasks for m in t.messages) == messages[first:]
    for i, task in enumerate(tasks):
        assert task.messages[0].human
        upto = replace(whole, messages=tuple(m for t in tasks[: i + 1] for m in t.messages))
        assert task.requests == upto.requests
        assert task.work == upto.work
