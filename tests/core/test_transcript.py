"""A transcript in its tasks."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

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
    """What came while the agent worked, after Esc, or after a summary is of the same task; so is what the
    agent did not answer, and what was put in while it worked on feedback.
    """
    first = [typed(), said(finish="tool-calls"), typed(), said(), ours(), said()]
    second = [typed(), said(error="MessageAbortedError"), typed(), said(summary=True), typed(), said()]
    third = [typed(), said(), typed(), ours(), said(finish="tool-calls"), typed(), said(), typed()]
    found = Transcript("s", (said("hello"), *first, *second, *third), todos=(Todo("x", "pending"),)).tasks
    assert [list(t.messages) for t in found] == [first, second, third]
    assert [len(t.todos) for t in found] == [0, 0, 1], "the todos are those of now"
    assert {t.session for t in found} == {"s"}


def test_the_task_is_known_by_what_the_agent_answered() -> None:
    """A program puts words in: while the agent works, and when nobody answers. The task stays the same, with
    its calls. A person who types at rest, also after Esc, begins another.
    """
    asked, more = typed(), typed()
    work = (asked, said(), ours(), cut(), typed(), said())
    for put_in in ((), (typed(),), (typed(), ours(), said())):
        whole = Transcript("s", (*work, *put_in))
        assert whole.task == asked
        assert whole.work[: len(work) - 1] == work[1:]
    assert Transcript("s", (*work, more, said())).task == more
    assert Transcript("s", (*work, typed(), said(error="MessageAbortedError"), more, said())).task == more
    esc = said(finish="", error="MessageAbortedError")
    assert Transcript("s", (asked, cut(), esc, more, said())).task == more, (
        "they stopped it before its answer"
    )
    at_work = replace(more, steers=True)
    assert Transcript("s", (*work, at_work, said())).task == asked, "the host says that the agent was at work"
    assert Transcript("s", (*work, more), busy=True).task == more, "it is being answered"
    compacted = Transcript("s", (asked, cut(), summed_up(), more, said()))
    assert compacted.task == asked, "a summary ends no work"


def test_the_task_that_a_session_knows_stands() -> None:
    """Until the agent has answered a later message; one that is gone from the messages does not count."""
    asked, steered, more = typed(), typed(), typed()
    whole = Transcript("s", (asked, cut(), steered, said()), begun=steered.id)
    assert whole.task == steered
    assert replace(whole, messages=(*whole.messages, more, said())).task == more
    assert replace(whole, begun="gone").task == asked


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
