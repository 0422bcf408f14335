"""Claude Code's lines to a core transcript: the eleven rules, calls, interrupts, compaction, branches."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from daemon.core.collect import collect
from daemon.core.guards import ABORT_ERROR, Limits, may_judge_messages
from daemon.core.session import Session
from daemon.core.transcript import Message, Model, Todo, ToolCall, Transcript
from daemon.hosts.claude_transcript import transcript_of
from tests.support.claude_story import FOLDER, SESSION, Story

if TYPE_CHECKING:
    from collections.abc import Callable

OURS = "rfl_0123456789abcdef0123"


def read(story: Story) -> Transcript:
    return transcript_of(story.data(), "file")


def typed(story: Story) -> list[str]:
    return [m.text for m in read(story).messages if m.human]


@pytest.fixture(params=[False, True], ids=["2.1.330", "2.1.197"])
def story(request: pytest.FixtureRequest) -> Story:
    return Story(old=request.param)


def test_a_turn_with_a_tool(story: Story) -> None:
    """I24: request, call with its result, and final text, in both versions' forms; usage counts once."""
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


@pytest.mark.parametrize("trigger", ["auto", "manual"])
def test_rule_4_compaction(story: Story, trigger: str) -> None:
    """I7: the summary is no request; the task goes on, and who began the compaction is known."""
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
    skip = may_judge_messages(Session(id=SESSION), found, Limits())
    assert skip is not None
    assert skip.guard == "summary"
    story.say("Done.")
    assert [m.text for m in read(story).requests] == ["One"]


def test_rule_5_meta_lines(story: Story) -> None:
    """I4: command bodies and caveats are nobody's message; strict feedback of ours carries its order."""
    story.human("One")
    story.user("Caveat: the messages below were generated", isMeta=True)
    story.say("Done.")
    story.user(f"Stop hook feedback:\nTests fail\n(reflectd {OURS})", isMeta=True)
    story.say("Fixed.")
    found = read(story)
    assert [m.text for m in found.messages if m.human] == ["One"]
    assert [m.order for m in found.messages if m.role == "user"] == ["", OURS]


def test_rule_6_other_origins(story: Story) -> None:
    """I4: a wake of ours and other notifications come as user lines; only an id of ours is an order."""
    story.human("One")
    story.say("Done.")
    text = f"<task-notification>\n<summary>Stop hook feedback</summary>\nGo on\n(reflectd {OURS})"
    known = {} if story.old else {"origin": {"kind": "task-notification"}}
    story.user(text, **known)
    story.say("Going on.")
    if not story.old:
        story.user("psst", origin={"kind": "peer"})
        story.say("Yes?")
    found = read(story)
    assert [m.text for m in found.messages if m.human] == ["One"]
    assert OURS in [m.order for m in found.messages]
    assert [m.text for m in found.work if m.role == "assistant"][:2] == ["Done.", "Going on."]


def test_an_order_that_is_not_ours_is_none(tmp_path: Any) -> None:
    """I4: a mark that the store does not know is no order, and a typed one is a person's words."""
    from daemon.hosts.claude_transcript import TranscriptReader

    story = Story()
    story.human(f"what is {OURS}?")
    story.say("An id.")
    story.user(f"<task-notification>({OURS})</task-notification>", origin={"kind": "task-notification"})
    story.say("Hm.")
    path = tmp_path / "s.jsonl"
    path.write_bytes(story.data())
    found = TranscriptReader(path, is_ours=lambda _: False).read()
    assert [m.order for m in found.messages] == [""] * 4
    assert [m.human for m in found.messages] == [True, False, False, False]


def test_rule_7_interrupts(story: Story) -> None:
    """I11: Esc gives the answer before it the abort error, or makes an empty answer that carries it."""
    story.human("One")
    call = story.new_id("toolu_")
    story.answer({"type": "tool_use", "id": call, "name": "Bash", "input": {"command": "sleep 99"}})
    story.user([{"type": "text", "text": "[Request interrupted by user for tool use]"}])
    found = read(story)
    assert found.turn is not None
    assert found.turn.error == ABORT_ERROR
    assert found.turn.calls[0].status == "error"
    skip = may_judge_messages(Session(id=SESSION), found, Limits())
    assert skip is not None
    assert skip.guard == "aborted"
    story.human("Two")
    story.user([{"type": "text", "text": "[Request interrupted by user]"}])
    found = read(story)
    assert [m.text for m in found.requests] == ["One", "Two"]
    assert found.turn is not None
    assert (found.turn.error, found.turn.text) == (ABORT_ERROR, "")


@pytest.mark.parametrize(
    "text",
    [
        "<bash-input>ls</bash-input>",
        "<bash-stdout>a</bash-stdout><bash-stderr></bash-stderr>",
        "<local-command-stdout>Set model</local-command-stdout>",
        "<system-reminder>x</system-reminder>",
        "<command-name>/model</command-name>\n<command-message>model</command-message>",
        "<command-message>reflectd:why</command-message>\n<command-name>/reflectd:why</command-name>",
        "",
    ],
)
def test_rules_8_and_9_the_hosts_own_lines(story: Story, text: str) -> None:
    """I9: shell commands, local commands and commands of ours open no task."""
    story.human("One")
    story.say("Done.")
    story.user(text)
    story.say("Ok.")
    assert typed(story) == ["One"]


def test_rule_9_a_slash_command_is_typed(story: Story) -> None:
    """A plugin's or a skill's command is a request: its name and what was typed after it."""
    known = {} if story.old else {"origin": {"kind": "human"}}
    line = "<command-message>fix is running</command-message>\n<command-name>/fix</command-name>\n"
    story.human(line + "<command-args>issue 7</command-args>", **known)
    story.user([{"type": "text", "text": "You must do all of: …"}], isMeta=True)
    story.say("Done.")
    assert typed(story) == ["/fix issue 7"]


def test_rule_10_prompts_of_print_mode_and_of_old_versions() -> None:
    """``-p`` has no proof of a person, but its prompt is the task; an unknown source is not."""
    for more in ({"promptSource": "sdk", "entrypoint": "sdk-cli"}, {"promptSource": None}, {}):
        story = Story(old=True)
        story.human("One", **more)
        story.say("Done.")
        assert typed(story) == ["One"]
    story = Story(old=True)
    story.human("One", promptSource="auto-continue")
    assert typed(story) == []


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


def test_ids_follow_the_prompt_then_the_line(story: Story) -> None:
    """I6, I7: a second typed line of a prompt is named by its line; the same text twice is two tasks."""
    first = story.human("continue")
    story.say("Done.")
    second = story.human("continue")
    story.user("more", **({} if story.old else {"origin": {"kind": "human"}}))
    line = story.tip
    story.human("again", promptId=None)
    ids = [m.id for m in read(story).messages if m.human]
    assert ids[:3] == [first, second, line]
    assert len(set(ids)) == 4


def test_only_the_task_is_kept_whole(story: Story) -> None:
    """I28: five earlier requests as text and the answer before the task; the older ones are let go."""
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


def test_exit_codes_and_failures(story: Story) -> None:
    """I24: a failed command ran; a refused or invalid call did not; what runs on has no exit code."""
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


def test_long_outputs_and_texts_are_cut(story: Story) -> None:
    """Head and tail stay, and how much is missing is known."""
    story.human("h" * 50_000)
    story.bash("make", "start\n" + "x" * 90_000 + "\nthe end")
    story.tool("Write", {"file_path": "/repo/a", "content": "y" * 50_000})
    story.say("f" * 50_000 + "!")
    found = read(story)
    call, write = found.calls
    assert call.output.startswith("start\n")
    assert call.output.endswith("the end")
    assert call.cut > 80_000
    assert len(call.output) < 3_300
    assert len(str(write.input["content"])) < 17_000
    assert all(len(m.text) < 17_000 for m in found.messages)
    assert found.messages[-1].text.endswith("!")


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


def test_the_hosts_errors(story: Story) -> None:
    """I33: an API error is the host's, not the agent's last word."""
    story.human("One")
    story.say("API Error: 529", isApiErrorMessage=True, error="server_error", apiErrorStatus=529)
    turn = read(story).turn
    assert turn is not None
    assert (turn.error, turn.error_message, turn.text) == ("server_error", "API Error: 529", "")
    skip = may_judge_messages(Session(id=SESSION), read(story), Limits())
    assert skip is not None
    assert skip.final == "error"


def test_plan_mode(story: Story) -> None:
    """I25: a plan waits for the person until it was approved."""
    story.mode = "plan"
    story.human("Plan it")
    story.say("The plan.")
    found = read(story)
    assert found.task is not None
    assert found.task.agent == "plan"
    skip = may_judge_messages(Session(id=SESSION), found, Limits())
    assert skip is not None
    assert skip.guard == "plan_agent"
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


def test_a_shell_that_moved(story: Story) -> None:
    """The folder of a command is known after the shell left the project's."""
    story.human("One")
    story.bash("cd sub")
    story.cwd = f"{FOLDER}/sub"
    story.bash("pytest", "1 passed")
    story.cwd = FOLDER
    story.bash("pytest", "1 passed")
    assert [c.input.get("workdir") for c in read(story).calls] == [None, f"{FOLDER}/sub", FOLDER]


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


@pytest.mark.parametrize("tell", [_failed_after_edit, _not_run_since, _committed])
def test_evidence_is_the_same_as_in_opencode(story: Story, tell: Callable[[Story], Transcript]) -> None:
    """I24: one story in both hosts' forms gives the same evidence."""
    story.human("Fix the bug in a.py")
    other = tell(story)
    story.say("All tests pass now.")
    story.stopped()
    here, there = collect(read(story)), collect(other)
    assert here == there
    assert [r for r in here.rows if r.kind == "check"]


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\x00\xff\xfe",
        b"null",
        b"[]",
        b"{",
        b'{"type":"user"}',
        b"[" * 200_000,
        b'{"type":"user","uuid":"x","message":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
        b'{"type":"user","uuid":7,"message":{"content":"evil"}}',
        b'{"type":"user","uuid":"x","message":"evil"}',
        b'{"type":"assistant","uuid":"x","message":{"content":[{"type":"tool_use","input":[]}]},"isSidechain":true}',
        b'{"type":"user","uuid":"x","timestamp":"9999-99-99","isMeta":true,"message":{"content":[null,1,{"type":7}]}}',
        b'{"type":"attachment","uuid":"x","attachment":[1]}',
        b'{"type":["user"],"uuid":"x"}',
    ],
    ids=lambda b: repr(b[:30]),
)
def test_garbage_between_lines_changes_nothing(story: Story, line: bytes) -> None:
    """I36: a line that can't be read, or is of odd types, costs only itself."""
    story.human("One")
    story.bash("ls", "a")
    story.say("Done.")
    whole = story.data().split(b"\n")
    for at in range(len(whole)):
        assert transcript_of(b"\n".join([*whole[:at], line, *whole[at:]]), "f") == transcript_of(
            story.data(), "f"
        )


def test_half_characters_are_read(story: Story) -> None:
    """A text cut in the middle of an emoji is not lost."""
    story.human("One")
    story.say("Done")
    data = story.data().replace(b'"Done"', b'"Done \\ud83d"')
    turn = transcript_of(data, "f").turn
    assert turn is not None
    assert turn.text == "Done �"


def test_lines_are_found_bulky_by_their_own_type_only(story: Story) -> None:
    """A text that speaks of a bulky type is read; one that is bulky is not, wherever it stands."""
    story.human('{"type":"api-request","x":1}')
    story.raw(type="file-history-snapshot", messageId="m", snapshot={"uuid": "x"})
    story.raw(type="mode", mode="normal", uuid="y", sessionId=SESSION)
    story.say("Done.")
    assert [m.text for m in read(story).messages] == ['{"type":"api-request","x":1}', "Done."]
    assert json.loads(story.data().splitlines()[0])["message"]["content"].startswith("{")
