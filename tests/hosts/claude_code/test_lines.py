"""One line of a Claude Code transcript: whose it is, and whether a person typed it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from daemon.hosts.claude_code.transcript import transcript_of
from tests.hosts.claude_code.reading import OURS, read, typed
from tests.support.hosts.claude_code_story import SESSION, Story


@pytest.mark.shows("I4")
def test_rule_5_meta_lines(story: Story) -> None:
    """Command bodies and caveats are nobody's message; strict feedback of ours carries its order."""
    story.human("One")
    story.user("Caveat: the messages below were generated", isMeta=True)
    story.say("Done.")
    story.user(f"Stop hook feedback:\nTests fail\n(reflectd {OURS})", isMeta=True)
    story.say("Fixed.")
    found = read(story)
    assert [m.text for m in found.messages if m.human] == ["One"]
    assert [m.order for m in found.messages if m.role == "user"] == ["", OURS]


@pytest.mark.shows("I4", "I50")
def test_rule_6_other_origins(story: Story) -> None:
    """A wake of ours and other notifications come as user lines; only an id of ours is an order."""
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


@pytest.mark.shows("I4")
def test_an_order_that_is_not_ours_is_none(tmp_path: Any) -> None:
    """A mark that the store does not know is no order, and a typed one is a person's words."""
    from daemon.hosts.claude_code.transcript import TranscriptReader

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


@pytest.mark.shows("I9")
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
    """Shell commands, local commands and commands of ours open no task."""
    story.human("One")
    story.say("Done.")
    story.user(text)
    story.say("Ok.")
    assert typed(story) == ["One"]


@pytest.mark.shows("I28")
def test_rule_9_a_slash_command_is_typed(story: Story) -> None:
    """A plugin's or a skill's command is a request: its name, what was typed after it, and what the command
    says. Other lines of the host are not, nor is the text of a skill that the agent looked up itself.
    """
    known = {} if story.old else {"origin": {"kind": "human"}}
    line = "<command-message>fix is running</command-message>\n<command-name>/fix</command-name>\n"
    story.tip = None
    prompt = story.human(line + "<command-args>issue 7</command-args>", **known)
    command = next(x["uuid"] for x in story.lines if x.get("promptId") == prompt)
    body = "Fix the issue 7. Update CHANGELOG.md too."
    story.user([{"type": "text", "text": body}], isMeta=True, parent=command)
    story.user("<system-reminder>be nice</system-reminder>", isMeta=True)
    story.tool("Skill", {"skill": "ship"}, "Launching skill: ship")
    story.user([{"type": "text", "text": "Push everything."}], isMeta=True)
    story.say("Done.")
    assert typed(story) == [f"/fix issue 7\n\n{body}"]
    found = read(story)
    assert found.task is not None
    assert found.task.id == prompt


@pytest.mark.shows("I4", "I50")
@pytest.mark.parametrize(
    "words",
    [
        "<channel> may stay as it is. Stop here.",
        "<tick> is the wrong name",
        "<system-reminder> is what the log begins with: why?",
        "<command-message> and what follows are printed twice",
        "<bash-stdout> is not closed",
    ],
)
def test_a_persons_words_may_begin_like_the_hosts(story: Story, words: str) -> None:
    """A name of the host's elements at the beginning makes no text the host's; where the host says that a
    person typed it, a whole element does not either.
    """
    known = {} if story.old else {"origin": {"kind": "human"}, "promptSource": "typed"}
    story.human(words, **known)
    story.say("Done.")
    assert typed(story) == [words]
    for text in ("<channel><item/></channel> lacks a title", "Stop hook feedback: what is that?"):
        story.human(text, **known)
        story.say("Done.")
    assert len(typed(story)) == (1 if story.old else 3)


@pytest.mark.shows("I28")
def test_rule_9_a_goal_is_a_request(story: Story) -> None:
    """`/goal` is a command of the host itself, and yet its condition is what the person wants done."""
    known = {} if story.old else {"origin": {"kind": "human"}}
    line = "<command-name>/goal</command-name>\n    <command-message>goal</command-message>\n    "
    prompt = story.human(line + "<command-args>make test must pass</command-args>", **known)
    story.user("<local-command-stdout>Goal set: make test must pass</local-command-stdout>")
    story.user("A session-scoped Stop hook is now active with condition: x", isMeta=True)
    story.say("Done.")
    story.user(line + "<command-args>clear</command-args>")
    story.user(line + "<command-args></command-args>")
    story.say("Cleared.")
    found = read(story)
    assert typed(story) == ["/goal make test must pass"]
    assert found.task is not None
    assert found.task.id == prompt


@pytest.mark.shows("I28")
def test_a_picture_alone_is_a_request(story: Story) -> None:
    """A prompt without words is not empty: the judge is told that there is a picture it can't see."""
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    story.human([picture, {"type": "document", "source": {}}])
    story.say("It is a cat.")
    story.human([{"type": "text", "text": "And this?"}, picture])
    story.say("A dog.")
    first, second = typed(story)
    assert first == "(attached without a word: 1 image, 1 document, which are not shown here)"
    assert second == "And this?"


def test_a_typed_text_is_not_expanded(story: Story) -> None:
    """A line of the host after a person's own words is no part of them."""
    uuid = story.user(
        "/etc/hosts is wrong", promptId="p1", **({} if story.old else {"origin": {"kind": "human"}})
    )
    story.user([{"type": "text", "text": "[Image: source: /tmp/a.png]"}], isMeta=True, parent=uuid)
    story.say("Done.")
    assert typed(story) == ["/etc/hosts is wrong"]


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


@pytest.mark.shows("I36")
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
    """A line that can't be read, or is of odd types, costs only itself."""
    story.human("One")
    story.bash("ls", "a")
    story.say("Done.")
    whole = story.data().split(b"\n")
    for at in range(len(whole)):
        assert transcript_of(b"\n".join([*whole[:at], line, *whole[at:]]), "f") == transcript_of(
            story.data(), "f"
        )


@pytest.mark.shows("I36")
@pytest.mark.parametrize("odd", [["typed"], {"typed": 1}, [[]]], ids=str)
def test_a_list_where_a_word_stands_is_no_word(story: Story, odd: object) -> None:
    """Lists and objects can't be looked up as words; the rest of such a line is read."""
    story.human("One", promptSource=odd, origin=None)
    queued = {"type": "queued_command", "prompt": "Two", "commandMode": odd, "origin": {"kind": "human"}}
    story.put("attachment", attachment=queued)
    story.tool("TodoWrite", {"todos": [{"content": "a", "status": odd}]}, "ok")
    story.tool("TaskCreate", {"subject": "b"}, "Task #1 created", own={"task": {"id": "1"}})
    story.tool("TaskUpdate", {"taskId": "1", "status": odd}, "ok")
    story.say("Done.")
    found = read(story)
    assert [m.text for m in found.messages if m.role == "assistant"][-1] == "Done."
    assert [(t.text, t.status) for t in found.todos] in ([("b", "pending")], [])


def test_lines_are_found_bulky_by_their_own_type_only(story: Story) -> None:
    """A text that speaks of a bulky type is read; one that is bulky is not, wherever it stands."""
    story.human('{"type":"api-request","x":1}')
    story.raw(type="file-history-snapshot", messageId="m", snapshot={"uuid": "x"})
    story.raw(type="mode", mode="normal", uuid="y", sessionId=SESSION)
    story.say("Done.")
    assert [m.text for m in read(story).messages] == ['{"type":"api-request","x":1}', "Done."]
    assert json.loads(story.data().splitlines()[0])["message"]["content"].startswith("{")
