"""Whether a prompt may still leave, by the transcript as it is in that moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.hosts.claude_code.reading import read
from tests.support.hosts.claude_code_story import Story

if TYPE_CHECKING:
    from collections.abc import Callable


def judged(story: Story) -> tuple[str, str]:
    """A finished turn: its task and its id."""
    story.human("Fix it")
    story.bash("make test", "ok")
    story.say("Fixed.")
    found = read(story)
    assert found.task is not None
    assert found.turn is not None
    return found.task.id, found.turn.id


def test_where_it_was(story: Story) -> None:
    """The host's own lines after a turn change nothing; a nudge is about any turn of its task."""
    task, turn = judged(story)
    story.stopped()
    story.put("attachment", attachment={"type": "async_hook_response", "content": "x"})
    assert read(story).stale(task, turn) == ""
    assert read(story).stale(task, "") == ""
    assert read(story).stale("other", turn) == "the person wrote meanwhile"
    assert read(story).stale(task, "older") == "the agent went on meanwhile"


@pytest.mark.shows("I10", "I14")
@pytest.mark.parametrize(
    ("happens", "why"),
    [
        (lambda s: s.human("And now?"), "wrote"),
        (lambda s: s.say("One more thing."), "went on"),
        (lambda s: s.bash("ls", "a"), "went on"),
        (lambda s: s.user("<bash-input>ls</bash-input>"), "ran a command"),
        (lambda s: s.user("Stop hook feedback:\nlint fails", isMeta=True), "told something else"),
        (lambda s: s.user("<task-notification>b1 ended</task-notification>"), "told something else"),
        (lambda s: s.user([{"type": "text", "text": "[Request interrupted by user]"}]), "stopped"),
        (lambda s: s.put("system", subtype="stop_hook_summary", preventedContinuation=True), "stopped"),
    ],
)
def test_what_came_meanwhile(story: Story, happens: Callable[[Story], object], why: str) -> None:
    """A newer answer, a person's line, a running turn: the prompt is out of date."""
    task, turn = judged(story)
    happens(story)
    assert why in read(story).stale(task, turn)


def test_a_compaction_is_no_work_of_the_agent(story: Story) -> None:
    """`/compact` while the judge thinks: the turn is still the last one, until the agent goes on."""
    task, turn = judged(story)
    story.stopped()
    metadata = {"trigger": "manual", "preTokens": 100}
    story.put("system", subtype="compact_boundary", parent=None, compactMetadata=metadata)
    story.user("It is fixed.", isCompactSummary=True)
    assert read(story).stale(task, turn) == ""
    story.say("One more thing.")
    assert read(story).stale(task, turn) == "the agent went on meanwhile"
