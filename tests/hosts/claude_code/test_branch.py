"""Which lines of a Claude Code transcript are the live conversation, and what is kept of them."""

from __future__ import annotations

import pytest

from tests.hosts.claude_code.reading import read
from tests.support.hosts.claude_code_story import Story


def test_rule_1_sidechains_and_copies(story: Story) -> None:
    """Lines of sub-agents are skipped, and a line that comes twice counts once."""
    story.human("One")
    tip = story.tip
    story.user("sub-agent's task", isSidechain=True)
    story.tip = tip
    story.say("Done.")
    story.lines += story.lines[:]
    found = read(story)
    assert [m.text for m in found.messages] == ["One", "Done."]


def test_rule_11_a_prompt_that_was_taken_back(story: Story) -> None:
    """The edited prompt is a sibling: the first one, and all that came of it, is not in the conversation."""
    story.human("Zero")
    story.say("Done.")
    story.stopped()
    fork = story.tip
    story.human("One")
    story.bash("touch a")
    story.say("Did one.")
    story.tip = fork
    story.human("Two")
    story.say("Did two.")
    found = read(story)
    assert [m.text for m in found.messages] == ["Zero", "Done.", "Two", "Did two."]
    story.tip = None
    story.human("From the start")
    assert [m.text for m in read(story).messages] == ["From the start"]


def test_rule_11_back_into_an_earlier_task(story: Story) -> None:
    """The parent of the new prompt stands in the middle of a task before: its answer was undone too."""
    story.human("One")
    story.bash("touch a")
    fork = story.tip
    story.say("Did one.")
    story.human("Two")
    story.say("Did two.")
    story.tip = fork
    story.human("One, but with b")
    story.say("Did b.")
    found = read(story)
    assert [m.text for m in found.messages if m.text] == ["One", "One, but with b", "Did b."]
    assert [m.text for m in found.requests] == ["One", "One, but with b"]


def test_rule_12_the_first_answer_stands_before_its_prompt(story: Story) -> None:
    """It belongs below its prompt, so that what the person types next is a new task; also while the lines
    with which the session begins are not there yet, and when one of them is too bulky to be read.
    """
    story.human("Zero")
    story.user("a reminder", isMeta=True)
    story.bash("ls")
    story.say("Done.")
    story.stopped()
    until_human = next(i for i, line in enumerate(story.lines) if line["type"] == "assistant")
    opening, answers = story.lines[:until_human], story.lines[until_human:]
    story.lines = [*answers]
    assert [m.text for m in read(story).messages if m.text] == ["Done."]
    story.lines = [*answers, *opening[:1]]
    assert [m.text for m in read(story).messages if m.text] == ["Zero", "Done."]
    for left in (opening, opening[:1]):
        story.lines = [*answers, *left]
        story.human("One")
        story.say("Did one.")
        found = read(story)
        assert [m.text for m in found.messages if m.text] == ["Zero", "Done.", "One", "Did one."]
        assert [m.text for m in found.requests] == ["One"]
        assert len(found.calls) == 0


def test_parallel_calls_are_no_branch(story: Story) -> None:
    """Two calls of one answer: the first result hangs off the first line, and both are kept."""
    story.human("One")
    uses = [
        {"type": "tool_use", "id": f"t{i}", "name": "Read", "input": {"file_path": f"/repo/{i}"}}
        for i in "ab"
    ]
    first = story.answer(uses[0], message="m")
    second = story.answer(uses[1], message="m")
    one = story.result("ta", "A", parent=first)
    story.result("tb", "B", parent=second)
    story.say("Done.", parent=one)
    assert [(c.id, c.output) for c in read(story).calls] == [("ta", "A"), ("tb", "B")]


@pytest.mark.shows("I28")
def test_only_the_task_is_kept_whole(story: Story) -> None:
    """Five earlier requests as text and the answer before the task; the older ones are let go."""
    for n in range(9):
        story.human(f"task {n}")
        story.bash(f"echo {n}")
        story.say(f"did {n}")
        story.stopped()
    found = read(story)
    texts = [m.text for m in found.messages]
    assert texts == ["task 3", "task 4", "task 5", "task 6", "task 7", "did 7", "task 8", "", "did 8"]
    assert [m.text for m in found.requests] == ["task 8"]
    assert len([c for m in found.messages for c in m.calls]) == 1
