"""Claude Code's lines to a core transcript: the eleven rules, calls, interrupts, compaction, branches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from daemon.core.guards import ABORT_ERROR, Limits, Skip, may_judge_messages
from daemon.core.session import Session
from daemon.core.transcript import Message, Model, Todo, ToolCall, Transcript
from daemon.evidence.collect import collect
from tests.support.hosts.claude_code_story import FOLDER, SESSION, Story

if TYPE_CHECKING:
    from collections.abc import Callable

    from daemon.core.evidence import Evidence
from tests.hosts.claude_code.reading import OURS, read


def skipped(found: Transcript) -> Skip:
    """Why the turn is not judged."""
    skip = may_judge_messages(Session(id=SESSION), found, Limits())
    assert skip is not None
    return skip


@pytest.mark.shows("I24")
def test_a_turn_with_a_tool(story: Story) -> None:
    """Request, call with its result, and final text, in both versions' forms; usage counts once."""
    task = story.human("Fix the bug")
    story.answer(
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "pytest"}},
        message="msg_1",
    )
    story.result("toolu_1", "3 passed", own={"stdout": "3 passed", "stderr": "", "interrupted": False})
    last = story.say("Done.")
    story.stopped()
    found = read(story)
    assert (found.session, found.directory) == (SESSION, FOLDER)
    assert found.task is not None
    assert (found.task.id, found.task.text) == (task, "Fix the bug")
    first, final = found.work
    assert (first.text, first.finish, first.tokens) == ("I look.", "tool-calls", 115)
    assert first.model == Model("anthropic", "claude-opus-5-5")
    (call,) = first.calls
    assert (call.tool, call.status, call.output, call.exit) == ("Bash", "completed", "3 passed", 0)
    assert (final.id, final.text, final.finish) == (last, "Done.", "stop")
    assert final.completed >= final.at > first.at > 0
    assert may_judge_messages(Session(id=SESSION), found, Limits()) is None


def test_rule_2_typed_while_the_agent_works(story: Story) -> None:
    """Steering is an attachment and belongs to the same task; a queued notification is not typed."""
    story.human("One")
    story.bash("ls")
    origin = {} if story.old else {"origin": {"kind": "human"}}
    queued = {"type": "queued_command", "prompt": "and two", "commandMode": "prompt", **origin}
    story.put("attachment", attachment=queued)
    other = {
        "type": "queued_command",
        "prompt": f"<task-notification>({OURS})",
        "commandMode": "task-notification",
    }
    story.put("attachment", attachment=other)
    blocks = [{"type": "text", "text": "three"}, {"type": "image", "source": {}}]
    story.put("attachment", attachment=queued | {"prompt": blocks})
    story.say("Done.")
    found = read(story)
    assert [m.text for m in found.requests] == ["One", "and two", "three"]
    assert [m.order for m in found.messages if m.order] == [OURS]


@pytest.mark.shows("I7")
@pytest.mark.parametrize("trigger", ["auto", "manual"])
def test_rule_4_compaction(story: Story, trigger: str) -> None:
    """The summary is no request; the task goes on, and who began the compaction is known."""
    task = story.human("One")
    story.say("half")
    asked = story.tip
    more = {"compactMetadata": {"trigger": trigger, "preTokens": 9}, "logicalParentUuid": asked}
    story.put("system", parent=None, subtype="compact_boundary", **more)
    story.user("This session is being continued", isCompactSummary=True, isVisibleInTranscriptOnly=True)
    found = read(story)
    assert found.task is not None
    assert found.task.id == task
    mark, summary = found.messages[-2:]
    assert (mark.role, mark.compaction) == ("user", trigger)
    assert (summary.role, summary.summary, summary.text) == (
        "assistant",
        True,
        "This session is being continued",
    )
    assert skipped(found).guard == "summary"
    story.say("Done.")
    assert [m.text for m in read(story).requests] == ["One"]


@pytest.mark.shows("I11")
def test_rule_7_interrupts(story: Story) -> None:
    """Esc gives the answer before it the abort error, or makes an empty answer that carries it."""
    story.human("One")
    call = story.new_id("toolu_")
    story.answer({"type": "tool_use", "id": call, "name": "Bash", "input": {"command": "sleep 99"}})
    story.user([{"type": "text", "text": "[Request interrupted by user for tool use]"}])
    found = read(story)
    assert found.turn is not None
    assert found.turn.error == ABORT_ERROR
    assert found.turn.calls[0].status == "error"
    assert skipped(found).guard == "aborted"
    story.human("Two")
    story.user([{"type": "text", "text": "[Request interrupted by user]"}])
    found = read(story)
    assert [m.text for m in found.requests] == ["One", "Two"]
    assert found.turn is not None
    assert (found.turn.error, found.turn.text) == (ABORT_ERROR, "")


@pytest.mark.shows("I6", "I7")
def test_ids_follow_the_prompt_then_the_line(story: Story) -> None:
    """A second typed line of a prompt is named by its line; the same text twice is two tasks."""
    first = story.human("continue")
    story.say("Done.")
    second = story.human("continue")
    story.user("more", **({} if story.old else {"origin": {"kind": "human"}}))
    line = story.tip
    story.human("again", promptId=None)
    ids = [m.id for m in read(story).messages if m.human]
    assert ids[:3] == [first, second, line]
    assert len(set(ids)) == 4


@pytest.mark.parametrize(
    ("stop", "finish"),
    [("end_turn", "stop"), ("max_tokens", "length"), ("tool_use", "tool-calls"), (None, "stop")],
)
def test_why_the_model_stopped(story: Story, stop: str | None, finish: str) -> None:
    """Old versions write no reason: a text without a call then ends the turn."""
    story.human("One")
    story.say("text", stop=stop or "")
    turn = read(story).turn
    assert turn is not None
    assert turn.finish == finish


@pytest.mark.shows("I33")
def test_the_hosts_errors(story: Story) -> None:
    """An API error is the host's, not the agent's last word."""
    story.human("One")
    story.say("API Error: 529", isApiErrorMessage=True, error="server_error", apiErrorStatus=529)
    turn = read(story).turn
    assert turn is not None
    assert (turn.error, turn.error_message, turn.text) == ("server_error", "API Error: 529", "")
    assert skipped(read(story)).final == "error"


@pytest.mark.shows("I25")
def test_plan_mode(story: Story) -> None:
    """A plan waits for the person until it was approved."""
    story.mode = "plan"
    story.human("Plan it")
    story.say("The plan.")
    found = read(story)
    assert found.task is not None
    assert found.task.agent == "plan"
    assert skipped(found).guard == "plan_agent"
    story.tool("ExitPlanMode", {"plan": "p"}, "User has approved your plan")
    story.say("Built.")
    turn = read(story).turn
    assert turn is not None
    assert turn.agent == ""


def test_todos_of_both_tools(story: Story) -> None:
    """The list as the work left it, from TodoWrite or from the task tools; an open entry is evidence."""
    story.human("One")
    story.tool(
        "TodoWrite",
        {"todos": [{"content": "a", "status": "completed"}, {"content": "b", "status": "pending"}]},
    )
    story.say("Done.")
    assert read(story).todos == (Todo("a", "completed"), Todo("b", "pending"))
    story.human("Two")
    created = "Task #1 created successfully: c"
    story.tool(
        "TaskCreate", {"subject": "c", "description": "d"}, created, own={"task": {"id": "1", "subject": "c"}}
    )
    story.tool("TaskCreate", {"subject": "x", "description": "d"}, "Task #2 created successfully: x")
    story.tool("TaskUpdate", {"taskId": "1", "status": "in_progress"}, "Updated task #1 status")
    story.tool("TaskUpdate", {"taskId": "2", "status": "deleted"}, "Updated task #2 deleted")
    story.say("Done.")
    found = read(story)
    assert found.todos == (Todo("c", "in_progress"),)
    assert [r.detail for r in collect(found).of("todo")] == ["c"]


def test_a_notebook_edit_names_its_file(story: Story) -> None:
    """Evidence looks for the path where other tools have it."""
    story.human("One")
    story.tool("NotebookEdit", {"notebook_path": "/repo/a.ipynb", "new_source": "x"})
    (call,) = read(story).calls
    assert call.input["file_path"] == "/repo/a.ipynb"


def opencode(*calls: ToolCall, ask: str, final: str) -> Transcript:
    """The same story as opencode tells it."""
    messages = (
        Message("u", "user", 1, ask, human=True),
        *(Message(c.id, "assistant", 2, finish="tool-calls", calls=(c,)) for c in calls),
        Message("z", "assistant", 3, final, finish="stop"),
    )
    return Transcript("s", messages, directory=FOLDER)


def shell(command: str, output: str, code: int = 0) -> ToolCall:
    return ToolCall(f"c{command}", "bash", "completed", {"command": command}, output, exit=code)


def edited(path: str, old: str, new: str) -> ToolCall:
    given: dict[str, object] = {"filePath": path, "oldString": old, "newString": new}
    return ToolCall(f"c{path}", "edit", "completed", given)


def _failed_after_edit(s: Story) -> Transcript:
    s.tool("Edit", {"file_path": "/repo/a.py", "old_string": "1", "new_string": "2"}, "updated")
    s.bash("pytest -q", "FAILED tests/test_a.py::x\n1 failed in 0.1s", 1)
    return opencode(
        edited("/repo/a.py", "1", "2"),
        shell("pytest -q", "FAILED tests/test_a.py::x\n1 failed in 0.1s", 1),
        ask="Fix the bug in a.py",
        final="All tests pass now.",
    )


def _not_run_since(s: Story) -> Transcript:
    s.bash("pytest -q", "3 passed in 0.1s")
    s.tool(
        "MultiEdit", {"file_path": "/repo/a.py", "edits": [{"old_string": "1", "new_string": "2"}]}, "updated"
    )
    edit = ToolCall(
        "m",
        "multiedit",
        "completed",
        {"filePath": "/repo/a.py", "edits": [{"oldString": "1", "newString": "2"}]},
    )
    return opencode(
        shell("pytest -q", "3 passed in 0.1s"), edit, ask="Fix the bug in a.py", final="All tests pass now."
    )


def _committed(s: Story) -> Transcript:
    s.tool("Write", {"file_path": "/repo/b.py", "content": "x = 1\n"}, "created")
    s.bash("npm test", "Tests: 3 passed, 3 total")
    s.bash("git commit -am b", "[main 1a2b3c4] b\n 1 file changed")
    write = ToolCall("w", "write", "completed", {"filePath": "/repo/b.py", "content": "x = 1\n"})
    return opencode(
        write,
        shell("npm test", "Tests: 3 passed, 3 total"),
        shell("git commit -am b", "[main 1a2b3c4] b\n 1 file changed"),
        ask="Fix the bug in a.py",
        final="All tests pass now.",
    )


def without_tool_names(found: Evidence) -> Evidence:
    """Claude Code writes its tools' names with capitals, and the log shows them as they are."""
    return replace(found, log=tuple(replace(act, text=act.text.lower()) for act in found.log))


@pytest.mark.shows("I24")
@pytest.mark.parametrize("tell", [_failed_after_edit, _not_run_since, _committed])
def test_evidence_is_the_same_as_in_opencode(story: Story, tell: Callable[[Story], Transcript]) -> None:
    """One story in both hosts' forms gives the same evidence."""
    story.human("Fix the bug in a.py")
    other = tell(story)
    story.say("All tests pass now.")
    story.stopped()
    here, there = (without_tool_names(collect(found)) for found in (read(story), other))
    assert here == there
    assert [r for r in here.rows if r.kind == "check"]


@pytest.mark.shows("REQ-REFL-001")
def test_of_thoughts_only_the_cited_points_are_kept(story: Story) -> None:
    """Names in thinking arrive, each once and in order; not a word of the thoughts does."""
    story.human("Fix the bug")
    story.answer(
        {
            "type": "thinking",
            "thinking": "As [pat-001] and [mis-002], [pat-001] say: secret",
            "signature": "s",
        },
        {"type": "thinking", "thinking": ["[pat-009]"]},
        {"type": "text", "text": "I look [ctx-3]."},
        message="msg_1",
    )
    (answer,) = read(story).work
    assert answer.cited == ("pat-001", "mis-002")
    assert "secret" not in repr(answer)
