"""The case: what one look after a compaction may see."""

from __future__ import annotations

from dataclasses import replace

import pytest

from daemon.compaction.case import TEXT_CHARS, compacted, make_case
from daemon.core.transcript import Message, ToolCall, Transcript
from tests.compaction.samples import (
    MESSAGES,
    NONCE,
    REQUEST,
    SUMMARY,
    TASK,
    TEMPLATES,
    case,
    transcript,
    verdict,
)

SECRET = "ghp_" + "a1B2" * 9


@pytest.mark.shows("I28")
def test_what_a_case_holds() -> None:
    """The person's request of this task, earlier ones as context, and what the machine recorded."""
    found = case()
    assert (found.task, found.turn, found.nonce) == (TASK, SUMMARY, NONCE)
    assert (found.requests, found.earlier) == ((REQUEST,), ("Look at the shop first",))
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
    made = make_case(Transcript("s", messages), at=1, nonce=NONCE, templates=TEMPLATES)
    assert SECRET not in str(made)
    assert len(made.last_reply) <= TEXT_CHARS
    assert len(made.summary) <= TEXT_CHARS + 10


def test_many_calls_and_items_are_bounded() -> None:
    """The last twenty calls in short, all of them counted."""
    calls = tuple(
        ToolCall(f"c{i}", "bash", "completed", {"command": f"echo {i} " + "y" * 999}) for i in range(500)
    )
    found = case(found=transcript(calls=calls))
    assert (found.tools, len(found.recent)) == (("bash x500",), 20)
    assert found.recent[-1].startswith("bash `echo 499 ")
    assert all(len(line) < 200 for line in found.recent)


@pytest.mark.shows("I26")
def test_what_the_person_forbade_is_kept() -> None:
    """A request that rules out commits and pull requests says so in the case."""
    messages = (
        Message(TASK, "user", text="Add a login page. Do not commit, do not open a PR.", human=True),
        *MESSAGES[3:],
    )
    found = make_case(Transcript("s", messages), at=1, nonce=NONCE, templates=TEMPLATES)
    assert {"commit", "pr"} <= set(found.forbids)


def test_without_a_person_there_is_no_task() -> None:
    """A session that nobody typed in can still be compacted."""
    found = make_case(Transcript("s", MESSAGES[3:]), at=1, nonce=NONCE, templates=TEMPLATES)
    assert (found.task, found.requests) == ("", ())
    with pytest.raises(ValueError, match="summary"):
        make_case(Transcript("s", MESSAGES[:4]), at=1, nonce=NONCE, templates=TEMPLATES)


@pytest.mark.shows("I7")
def test_the_newest_compaction_counts() -> None:
    """A manual one before it does not count, nor one that broke off; what came after shows."""
    again = (
        Message("msg_7", "user", compaction="auto"),
        Message("msg_8", "assistant", text="Summary", summary=True),
    )
    found = compacted(transcript("manual", *again))
    assert found is not None
    assert (found.summary.id, found.auto, found.after) == ("msg_8", True, False)
    found = compacted(transcript("manual", again[0], replace(again[1], error="MessageAbortedError")))
    assert found is not None
    assert (found.summary.id, found.auto, found.after) == (SUMMARY, False, True)
    assert compacted(Transcript("s", MESSAGES[:4])) is None
