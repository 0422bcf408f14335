"""What came of a tool call in Claude Code."""

from __future__ import annotations

import pytest

from daemon.core.transcript import is_denied, is_refused
from daemon.evidence.collect import collect
from tests.hosts.claude_code.reading import read
from tests.support.hosts.claude_code_story import FOLDER, Story


def test_rule_3_what_a_person_says_with_a_tool(story: Story) -> None:
    """A refusal is a denied call, its reason and the answer to a question are the person's words."""
    story.human("One")
    refusal = "The user doesn't want to proceed with this tool use. The tool use was rejected"
    call = story.new_id("toolu_")
    story.answer({"type": "tool_use", "id": call, "name": "Bash", "input": {"command": "rm -r x"}})
    if story.old:
        said = f"{refusal}. To tell you how to proceed, the user said:\nkeep x"
        story.result(call, said, error=True, own=f"Error: {said}")
    else:
        story.result(call, refusal, error=True, userFeedback="keep x", toolDenialKind="user-rejected")
    answers = {"questions": [{"question": "Shall I add tests?"}], "answers": {"Shall I add tests?": "No"}}
    story.tool("AskUserQuestion", {"questions": []}, "User has answered your questions", own=answers)
    story.say("Done.")
    found = read(story)
    assert [m.text for m in found.requests] == ["One", "keep x", "No"]
    assert [r.kind for r in collect(found).rows if r.kind == "denied"] == ["denied"]
    assert [(c.tool, c.status) for c in found.calls] == [("Bash", "error"), ("AskUserQuestion", "completed")]


@pytest.mark.shows("I15")
@pytest.mark.parametrize(
    "said",
    [
        "The user doesn't want to proceed with this tool use. The tool use was rejected.",
        "The user doesn't want to take this action right now. STOP what you are doing and wait for the user.",
        "Claude requested permissions to write to /repo/a.py, but you haven't granted it yet.",
        "[Request interrupted by user for tool use]",
    ],
)
def test_a_refused_call_is_read_as_refused(story: Story, said: str) -> None:
    """Whoever looks at the last call sees that a person did not allow it, also where an old version only says
    so in words, and whatever the agent says after it.
    """
    story.human("Clean up")
    call = story.new_id("toolu_")
    story.answer({"type": "tool_use", "id": call, "name": "Bash", "input": {"command": "rm -r x"}})
    kind = {} if story.old else {"toolDenialKind": "user-rejected"}
    story.result(call, said, error=True, own=f"Error: {said}", **kind)
    story.say("I could not do it.")
    (refused,) = read(story).calls
    assert refused.status == "error"
    assert is_refused(refused)
    assert [r.kind for r in collect(read(story)).rows if r.kind in {"denied", "tool_error"}] == ["denied"]


@pytest.mark.parametrize("kind", ["permission-rule", "automode-blocked", ""])
def test_a_rule_is_no_word_of_the_person(story: Story, kind: str) -> None:
    """A call that the settings forbid was not made, but nobody said no to it."""
    said = "Permission to use Bash with command rm -r x has been denied."
    story.human("Clean up")
    call = story.new_id("toolu_")
    story.answer({"type": "tool_use", "id": call, "name": "Bash", "input": {"command": "rm -r x"}})
    story.result(call, said, error=True, own=f"Error: {said}", **({"toolDenialKind": kind} if kind else {}))
    story.say("I could not do it.")
    (forbidden,) = read(story).calls
    assert is_denied(forbidden)
    assert not is_refused(forbidden)


def test_an_error_that_speaks_of_users_is_no_refusal(story: Story) -> None:
    """What a command printed is an exit with its output, whatever the words are."""
    story.human("Run it")
    story.bash("./check", "The user doesn't want to be named", 1)
    story.tool("Read", {"file_path": "/x"}, "File does not exist.", error=True)
    assert not any(is_denied(c) for c in read(story).calls)


@pytest.mark.shows("I24")
def test_exit_codes_and_failures(story: Story) -> None:
    """A failed command ran; a refused or invalid call did not; what runs on has no exit code."""
    story.human("One")
    story.bash("false", "boom", 3)
    story.tool(
        "Bash",
        {"command": "grep x y"},
        "",
        own={"stdout": "", "stderr": "", "returnCodeInterpretation": "No"},
    )
    story.tool(
        "Bash", {"command": "serve &"}, "bg", own={"stdout": "", "stderr": "", "backgroundTaskId": "b1"}
    )
    story.tool(
        "Edit", {"file_path": "/repo/a"}, "<tool_use_error>String not found</tool_use_error>", error=True
    )
    story.tool("Bash", {}, "<tool_use_error>InputValidationError</tool_use_error>", error=True)
    story.tool("Read", {"file_path": "/repo/a"}, [{"type": "text", "text": "Exit code 3"}])
    found = [(c.status, c.exit, c.output, c.error) for c in read(story).calls]
    assert found == [
        ("completed", 3, "boom", ""),
        ("completed", 1, "", ""),
        ("completed", None, "bg", ""),
        ("error", None, "", "String not found"),
        ("error", None, "", "InputValidationError"),
        ("completed", None, "Exit code 3", ""),
    ]


def test_a_shell_that_moved(story: Story) -> None:
    """The folder of a command is known after the shell left the project's."""
    story.human("One")
    story.bash("cd sub")
    story.cwd = f"{FOLDER}/sub"
    story.bash("pytest", "1 passed")
    story.cwd = FOLDER
    story.bash("pytest", "1 passed")
    assert [c.input.get("workdir") for c in read(story).calls] == [None, f"{FOLDER}/sub", FOLDER]
