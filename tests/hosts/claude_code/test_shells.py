"""Shells in the background: which of them a turn waits for, and what the log says of them."""

from __future__ import annotations

import pytest

from daemon.evidence.collect import collect
from daemon.hosts.claude_code.transcript import awaited, still_running
from tests.hosts.claude_code.reading import OURS, read
from tests.support.hosts.claude_code_story import Story


def leave(story: Story, command: str, shell: str) -> str:
    """A command that runs in the background."""
    own = {"stdout": "", "stderr": "", "interrupted": False, "backgroundTaskId": shell}
    said = f"Command running in background with ID: {shell}. Output is being written to: /t/{shell}.output"
    given = {"command": command, "run_in_background": True}
    return story.tool("Bash", given, said, own=own)


@pytest.mark.shows("I16")
def test_a_shell_of_this_turn_is_awaited(story: Story) -> None:
    """What the turn started may be the tests it speaks of; an older server says nothing about it."""
    story.human("Start the server")
    leave(story, "npm run dev", "b1")
    story.say("It runs.")
    assert awaited(read(story), ["b1", "b9"]) == {"b1"}
    story.human("Fix the bug")
    leave(story, "npm test", "b2")
    story.say("The tests run.")
    assert awaited(read(story), ["b1", "b2", ""]) == {"b2"}


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("TaskOutput", {"task_id": "b1", "block": True}),
        ("BashOutput", {"bash_id": "b1"}),
        ("Read", {"file_path": "/t/b1.output"}),
        ("Bash", {"command": "tail -3 /t/b1.output"}),
    ],
)
def test_an_older_shell_counts_when_it_is_looked_at(
    story: Story, tool: str, given: dict[str, object]
) -> None:
    """The agent read or awaited it in this turn, so its answer may depend on it."""
    story.human("Start the server")
    leave(story, "npm run dev", "b1")
    story.say("It runs.")
    story.human("Fix the bug")
    story.tool(tool, given, "compiled")
    story.say("Fixed.")
    assert awaited(read(story), ["b1"]) == {"b1"}


def test_feedback_begins_a_turn_and_a_notification_does_not(story: Story) -> None:
    """Told that one shell ended, the agent may still wait for the other; after our feedback it is older."""
    story.human("Run both")
    leave(story, "make a", "b1")
    leave(story, "make b", "b2")
    story.say("Both run.")
    story.user("<task-notification><task-id>b1</task-id></task-notification>")
    story.say("One is through.")
    assert awaited(read(story), ["b2"]) == {"b2"}
    story.user(f"<task-notification>Stop hook feedback (reflectd {OURS})</task-notification>")
    story.say("I go on.")
    assert awaited(read(story), ["b2"]) == set()


def test_the_log_says_that_it_still_runs(story: Story) -> None:
    """The judge reads that the call has no end yet, and no row takes it for a check that passed."""
    story.human("Run the tests")
    leave(story, "npm test", "b1")
    story.bash("ls", "a")
    story.say("Tests pass.")
    found = collect(still_running(read(story), {"b1"}))
    assert [act.text for act in found.log] == ["bash `npm test` → still running", "bash `ls` → exit 0"]
    assert "still running" not in str(collect(read(story)).log)
    assert not [r for r in found.rows if r.kind == "check" and r.outcome == "passed"]
