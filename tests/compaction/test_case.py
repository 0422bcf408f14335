"""The case: what one look after a compaction may see."""

from __future__ import annotations

from dataclasses import replace

import pytest

from daemon.compaction.case import TEXT_CHARS, Case, compacted, make_case
from daemon.core.transcript import Message, ToolCall, Transcript
from tests.compaction import samples
from tests.compaction.samples import MESSAGES, SECRET, SUMMARY, TASK, case, transcript, verdict


@pytest.mark.shows("I28")
def test_what_a_case_holds() -> None:
    """The person's request of this task, earlier ones as context, and what the machine recorded."""
    found = case()
    assert (found.task, found.turn, found.nonce) == (TASK, SUMMARY, samples.NONCE)
    assert (found.requests, found.earlier) == ((samples.REQUEST,), ("Look at the shop first",))
    assert found.last_reply == "The page is there. Tests come next."
    assert found.summary.startswith("## Goal")
    assert found.tools == ("edit x1", "bash x1")
    assert found.recent == ("edit `login.py` completed", "bash `git push && gh pr create --fill` exit 0")
    assert found.todos == ("write tests",)
    assert (found.phase, found.open_items) == ("incomplete", ("No test covers the login page",))
    assert found.github.target is not None
    assert found.github.target.name == "PR #12"
    assert (found.agent, found.model and found.model.model, found.auto) == ("build", "big", False)


@pytest.mark.shows("I6")
def test_a_verdict_about_another_task_does_not_count() -> None:
    """What was judged about the task before says nothing about this one."""
    found = case(verdict(task="msg_1"))
    assert (found.phase, found.open_items) == ("", ())


def made(*messages: Message) -> Case:
    """The case of a session with these messages."""
    return make_case(Transcript("s", messages), at=1, nonce="n0nce", templates=samples.TEMPLATES)


@pytest.mark.shows("I46")
def test_long_texts_are_cut_and_secrets_are_gone() -> None:
    """No secret gets into the prompt, and a megabyte of text is bounded."""
    said = f"key {SECRET} " + "x" * 1_000_000 + f" key {SECRET}"
    calls = (ToolCall("c", "bash", "completed", {"command": f"curl -H 'Authorization: Bearer {SECRET}' x"}),)
    messages = (
        Message(TASK, "user", text=f"Use {SECRET}", human=True),
        Message("m", "assistant", text=said, calls=calls),
        replace(MESSAGES[-1], text=said),
    )
    found = made(*messages)
    assert SECRET not in str(found)
    assert len(found.last_reply) <= TEXT_CHARS
    assert len(found.summary) <= TEXT_CHARS + 10


def test_many_calls_and_items_are_bounded() -> None:
    """The last twenty calls in short, all of them counted."""
    calls = tuple(
        ToolCall(f"c{i}", "bash", "completed", {"command": f"echo {i} " + "y" * 999}) for i in range(500)
    )
    found = case(found=transcript(calls=calls))
    assert (found.tools, len(found.recent)) == (("bash x500",), 20)
    assert found.recent[-1].startswith("bash `echo 499 ")
    assert all(len(line) < 200 for line in found.recent)


def test_without_a_person_there_is_no_task() -> None:
    """A session that nobody typed in can still be compacted."""
    found = made(*MESSAGES[3:])
    assert (found.task, found.requests) == ("", ())
    with pytest.raises(ValueError, match="summary"):
        made(*MESSAGES[:4])


@pytest.mark.shows("I7")
def test_the_newest_compaction_counts() -> None:
    """A manual one before it does not count, nor one that broke off; what came after shows."""
    begun = Message("msg_7", "user", compaction="auto")
    summary = Message("msg_8", "assistant", text="Summary", summary=True)
    broken = replace(summary, error="MessageAbortedError")
    for last, expected in ((summary, ("msg_8", True, False)), (broken, (SUMMARY, False, True))):
        found = compacted(transcript("manual", begun, last))
        assert found is not None
        assert (found.summary.id, found.auto, found.after) == expected
    assert compacted(Transcript("s", MESSAGES[:4])) is None
