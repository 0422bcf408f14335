"""What a person said in a transcript: which lines, with which words before them, and from where on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.core.transcript import Said
from daemon.hosts.claude_code.past import said_in
from daemon.hosts.jsonl import Cursor
from tests.support.hosts.claude_code_story import Story

REJECTED = "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\n"


def read(path: Path, cursor: Cursor | None = None) -> tuple[list[Said], Cursor]:
    found: list[Said] = []
    now = said_in(path, cursor, found.append)
    assert now is not None
    return found, now


def told(story: Story, folder: Path) -> list[Said]:
    path = folder / "s.jsonl"
    path.write_bytes(story.data())
    return read(path)[0]


@pytest.mark.parametrize("old", [False, True])
def test_only_what_was_typed(tmp_path: Path, old: bool) -> None:
    """Not commands and their output, reminders, our feedback, summaries, answers to a question, sub-agents,
    nor what a program gave to `claude -p`.
    """
    story = Story(old=old)
    story.human("Add a list")
    story.say("I added a list.")
    story.human("No, use a table")
    story.user("<local-command-stdout>no, always wrong</local-command-stdout>")
    story.user("<system-reminder>never mention this</system-reminder>")
    story.user("<bash-input>git push</bash-input>")
    story.user("<command-name>/model</command-name>\n<command-args>no</command-args>")
    story.user("<command-message>review</command-message>\n<command-name>/review</command-name>")
    story.user("Stop hook feedback:\nAlways test.", isMeta=True)
    story.user("Never stop.", isCompactSummary=True)
    story.user("no", isSidechain=True)
    story.user("Always push", promptSource="sdk")
    call = story.new_id("toolu_")
    story.answer({"type": "tool_use", "id": call, "name": "AskUserQuestion", "input": {"questions": []}})
    own = {"questions": [{"question": "Which?"}], "answers": {"Which?": "no, always tabs"}}
    story.result(call, "answered", own=own)
    story.bash("echo no, never")
    story.user([{"type": "image", "source": {}}])
    assert [s.text for s in told(story, tmp_path)][:2] == ["Add a list", "No, use a table"]
    assert [s.text for s in told(story, tmp_path)][2:] == [
        "(attached without a word: 1 image, which are not shown here)"
    ]


def test_the_agents_words_come_with_it(tmp_path: Path) -> None:
    """All it said since the last message, in order; line and ids say where it stands."""
    story = Story()
    story.human("Add a list")
    story.say("I look at the code.")
    story.bash("ls", "a.py")
    story.say("I added a list.")
    story.stopped()
    story.human("No, use a table")
    first, second = told(story, tmp_path)
    assert (first.prior, first.line, first.session) == ("", 1, story.session)
    assert second.prior == "I look at the code.\n\nI added a list."
    lines = story.data().splitlines()
    assert b"use a table" in lines[second.line - 1]
    assert second.message == json.loads(lines[second.line - 1])["uuid"]
    assert second.at > first.at > 1_700_000_000_000


@pytest.mark.parametrize("old", [False, True])
def test_queued_messages_refusals_and_interrupts(tmp_path: Path, old: bool) -> None:
    """What was typed while the agent worked, why a call was refused in either form, and after Esc."""
    story = Story(old=old)
    story.human("Install x")
    story.say("I install it.")
    attached = {"type": "queued_command", "prompt": "with pnpm", "commandMode": "prompt"}
    story.put("attachment", attachment=attached | ({} if old else {"origin": {"kind": "human"}}))
    call = story.new_id("toolu_")
    story.answer(
        {"type": "text", "text": "Now npm."},
        {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": "npm install x"}},
    )
    if old:
        story.result(call, REJECTED + "I said pnpm", error=True, own=f"Error: {REJECTED}I said pnpm")
    else:
        more = {"userFeedback": "I said pnpm", "toolDenialKind": "user-rejected"}
        story.result(call, "The user doesn't want to proceed", error=True, own="Error: no", **more)
    story.user("[Request interrupted by user for tool use]")
    story.human("only the types")
    _, queued, refused, after = told(story, tmp_path)
    assert (queued.text, queued.prior) == ("with pnpm", "I install it.")
    assert (refused.text, refused.refusal) == ("I said pnpm", True)
    assert refused.prior.endswith("Now npm.\n\nBash: npm install x")
    assert (after.text, after.interrupted, after.refusal) == ("only the types", True, False)


def test_a_failed_call_is_no_word_of_a_person(tmp_path: Path) -> None:
    """Also when its output looks like one."""
    story = Story()
    story.human("Run it")
    story.bash("cat log", f"{REJECTED}always wrong", 1)
    assert [s.text for s in told(story, tmp_path)] == ["Run it"]


@pytest.mark.parametrize("spaced", [False, True])
def test_fields_in_any_order_and_with_spaces(tmp_path: Path, spaced: bool) -> None:
    """A line is told by its fields, wherever they stand, and however the JSON is written."""
    path = tmp_path / "s.jsonl"
    answer = {
        "message": {"content": [{"text": "I used npm.", "type": "text"}]},
        "uuid": "a",
        "type": "assistant",
    }
    human = {"message": {"content": [{"text": "no, pnpm", "type": "text"}]}, "uuid": "b", "type": "user"}
    given = {"ensure_ascii": True} if spaced else {"separators": (",", ":")}
    path.write_text("".join(json.dumps(line, **given) + "\n" for line in (answer, human)))  # type: ignore[arg-type]
    ((said), _) = read(path)
    assert [(s.text, s.prior) for s in said] == [("no, pnpm", "I used npm.")]


def test_lines_that_come_while_it_is_read_are_read_next(tmp_path: Path) -> None:
    """A file that grew meanwhile does not count as unchanged."""
    path, story = tmp_path / "s.jsonl", Story()
    story.human("one")
    path.write_bytes(story.data())

    def meanwhile(_: Said) -> None:
        story.human("two")
        path.write_bytes(story.data())

    cursor = said_in(path, None, meanwhile)
    assert cursor is not None
    assert not cursor.is_unchanged(path.stat())
    assert [s.text for s in read(path, cursor)[0]] == ["two"]


def test_only_what_is_new_is_read(tmp_path: Path) -> None:
    """From where reading stopped; the agent's words before that point still come with it."""
    path, story = tmp_path / "s.jsonl", Story()
    story.human("one")
    story.say("I did one.")
    path.write_bytes(story.data())
    first, cursor = read(path)
    assert [s.text for s in first] == ["one"]
    assert cursor.is_unchanged(path.stat())
    assert read(path, cursor) == ([], cursor)
    before = len(story.data().splitlines())
    story.human("no, two")
    path.write_bytes(story.data())
    ((said,), later) = read(path, cursor)
    assert (said.text, said.prior, said.line) == ("no, two", "I did one.", before + 1)
    assert not cursor.is_unchanged(path.stat())
    assert later.at == path.stat().st_size
    assert Cursor.of(json.loads(json.dumps(later))) == later
    for broken in (None, [], list(later)[:5], [*list(later)[:5], 6], [True, *list(later)[1:]], {"at": 1}):
        assert Cursor.of(broken) is None


def test_a_line_that_is_being_written(tmp_path: Path) -> None:
    """Half of a line is nothing yet; a whole one without its end counts, and comes again with its end."""
    path, story = tmp_path / "s.jsonl", Story()
    story.human("one")
    story.human("no, two")
    whole = story.data().splitlines(keepends=True)
    path.write_bytes(b"".join(whole[:2]) + whole[2][:40])
    found, cursor = read(path)
    assert [s.text for s in found] == ["one"]
    path.write_bytes(b"".join(whole[:2]) + whole[2][:-1])
    found, cursor = read(path, cursor)
    assert [s.text for s in found] == ["no, two"]
    path.write_bytes(story.data())
    again, cursor = read(path, cursor)
    assert again == found
    assert read(path, cursor)[0] == []


LINES = st.lists(
    st.sampled_from(["human", "say", "bash", "note", "junk", "stop"]).map(str) | st.binary(max_size=20),
    max_size=25,
)


@given(parts=st.lists(LINES, min_size=1, max_size=4))
def test_in_parts_as_in_one_go(tmp_path_factory: pytest.TempPathFactory, parts: list[list[Any]]) -> None:
    """However the file grows, the same messages come, each with the same words and line."""
    path = tmp_path_factory.mktemp("h") / "s.jsonl"
    story, data, found, cursor = Story(), b"", list[Said](), None
    for part in parts:
        for kind in part:
            before = len(story.data())
            match kind:
                case "human":
                    story.human(f"message {len(story.lines)}")
                case "say":
                    story.say(f"words {len(story.lines)}")
                case "bash":
                    story.bash("ls", "out")
                case "note":
                    story.user("<system-reminder>x</system-reminder>")
                case "stop":
                    story.stopped()
                case _:
                    data += (kind if isinstance(kind, bytes) else b'{"type":"user"').replace(
                        b"\n", b""
                    ) + b"\n"
            data += story.data()[before:]
        path.write_bytes(data)
        new, cursor = read(path, cursor)
        found += new
    assert found == read(path)[0]
