"""Where a transcript of Claude Code stops, and what it was then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from daemon.hosts.claude_code.past import stops_in
from daemon.hosts.claude_code.transcript import TranscriptReader
from tests.support.hosts.claude_code_story import Story

if TYPE_CHECKING:
    from pathlib import Path

    from daemon.core.transcript import Stop


def stops(folder: Path, story: Story, data: bytes | None = None) -> list[Stop]:
    """The stops of the story, as a file has it."""
    path = folder / f"{story.session}.jsonl"
    path.write_bytes(story.data() if data is None else data)
    return list(stops_in(path))


def said(found: list[Stop]) -> list[tuple[str, str, str]]:
    """The last words, who spoke next, and what the person said."""
    return [(s.transcript.turn.text if s.transcript.turn else "", s.after, s.said) for s in found]


def test_each_answer_that_ends_a_turn_is_a_stop(tmp_path: Path) -> None:
    """What the person types while the agent works ends no turn, and is in the next stop."""
    story = Story()
    story.human("Do A")
    story.bash("make a")
    story.human("and B too")
    story.bash("make b")
    story.say("Both are done.")
    story.stopped()
    story.human("Thanks")
    story.say("You're welcome.")
    found = stops(tmp_path, story)
    assert said(found) == [("Both are done.", "person", "Thanks"), ("You're welcome.", "end", "")]
    assert [m.text for m in found[0].transcript.requests] == ["Do A", "and B too"]


def test_a_stop_is_what_the_daemon_read_then(tmp_path: Path) -> None:
    """Each is the transcript that a reader finds in the lines up to it: what came later is not in it."""
    story, then = Story(), []
    for n in range(4):
        story.human(f"Task {n}")
        story.bash(f"make step-{n}", "ok")
        story.tool("TodoWrite", {"todos": [{"content": f"step {n}", "status": "completed"}]}, "ok")
        story.say(f"Done {n}.")
        story.stopped()
        path = tmp_path / str(n) / f"{story.session}.jsonl"
        path.parent.mkdir()
        path.write_bytes(story.data())
        then.append(TranscriptReader(path, is_ours=lambda _: True).read(closed=True))
    assert [s.transcript for s in stops(tmp_path, story)] == then


def test_what_was_rewound_had_its_stop(tmp_path: Path) -> None:
    """A person who goes back and asks otherwise leaves the stop that made them."""
    story = Story()
    story.human("Do A")
    start = story.tip
    story.say("A is done.")
    story.tip = start
    story.human("Do A, but with B")
    story.say("Now with B.")
    found = said(stops(tmp_path, story))
    assert found == [("A is done.", "person", "Do A, but with B"), ("Now with B.", "end", "")]


def test_esc_and_the_background(tmp_path: Path) -> None:
    """Esc is a stop with its error; an answer after which the host woke the agent says so."""
    story = Story()
    story.human("Do A")
    story.bash("make a")
    story.user([{"type": "text", "text": "[Request interrupted by user]"}])
    story.human("Do B")
    story.say("Started.")
    story.user("<task-notification>done</task-notification>", origin={"kind": "task-notification"})
    story.say("It ended.")
    found = stops(tmp_path, story)
    assert [(s.after, s.transcript.turn.error if s.transcript.turn else "") for s in found] == [
        ("person", "MessageAbortedError"),
        ("host", ""),
        ("end", ""),
    ]


def test_a_command_of_the_person_is_no_word_of_the_host(tmp_path: Path) -> None:
    """After `!command` the turn before it is a stop like any other."""
    story = Story()
    story.human("Do A")
    story.say("A is done.")
    story.user("<bash-input>git status</bash-input>")
    story.user("<bash-stdout>clean</bash-stdout>")
    assert said(stops(tmp_path, story)) == [("A is done.", "end", "")]


def test_a_file_that_ends_at_work_has_no_last_stop(tmp_path: Path) -> None:
    """A killed session: a call without its answer, a half line, noise; and no file at all."""
    story = Story()
    story.human("Do A")
    story.say("A is done.")
    story.human("Do B")
    story.bash("make b")
    found = stops(tmp_path, story, b"\x00\xff\n[[[\n" + story.data() + b'{"type":"assis')
    assert said(found) == [("A is done.", "person", "Do B")]
    assert list(stops_in(tmp_path / "none.jsonl")) == []
