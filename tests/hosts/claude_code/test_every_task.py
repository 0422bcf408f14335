"""All tasks of a session that is over, from Claude Code's transcript file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from daemon.hosts.claude_code.transcript import TranscriptReader, every_task
from tests.support.hosts.claude_code_story import FOLDER, Story

if TYPE_CHECKING:
    from pathlib import Path


def requests(path: Path) -> list[list[str]]:
    return [[m.text for m in task.requests] for task in every_task(path).tasks]


def told(story: Story, *texts: str) -> None:
    for text in texts:
        story.human(text)
        story.bash("make", "ok")
        story.say(f"Did: {text}")


@pytest.mark.parametrize("old", [False, True])
def test_every_task_is_there_and_the_last_is_the_current_one(tmp_path: Path, old: bool) -> None:
    """The daemon's reader gives the last one only; both agree on it, on the session and on its folder."""
    story, path = Story(old=old), tmp_path / "s.jsonl"
    told(story, "one", "two", "three")
    path.write_bytes(story.data().rstrip(b"\n"))
    found = every_task(path)
    last = TranscriptReader(path, is_ours=lambda _: True).read(closed=True)
    assert requests(path) == [["one"], ["two"], ["three"]]
    assert [len(t.calls) for t in found.tasks] == [1, 1, 1]
    assert (found.tasks[-1].requests, found.tasks[-1].work) == (last.requests, last.work)
    assert (found.session, found.directory) == (story.session, FOLDER)


def test_what_the_person_went_back_on_is_not_there(tmp_path: Path) -> None:
    """A prompt whose parent is an earlier answer begins a new branch: what followed it was undone."""
    story, path = Story(), tmp_path / "s.jsonl"
    told(story, "one")
    back = story.tip
    told(story, "wrong", "worse")
    story.tip = back
    told(story, "better")
    path.write_bytes(story.data())
    assert requests(path) == [["one"], ["better"]]
