"""Sessions of Claude Code that are over, as files in the folder where it keeps a project's transcripts."""

from __future__ import annotations

import os
import re
from pathlib import Path

from harness.machine.sandbox import Sandbox
from tests.support.hosts.claude_code_story import Story

OLD = 1_760_000_000  # when the files were written to, seconds


def folder_of(box: Sandbox) -> Path:
    """Where Claude Code keeps the transcripts of the sandbox's project."""
    name = re.sub(r"[^A-Za-z0-9]", "-", str(box.project.resolve()))
    return box.home / ".claude" / "projects" / name


def worked(story: Story, request: str, *, calls: int = 3, final: str = "All of it is done.") -> None:
    """One task: what was asked, some calls, and the answer."""
    story.human(request)
    for i in range(calls):
        story.bash(f"make step-{i}", f"step {i} passed")
    story.say(final)
    story.stopped()


def begun(box: Sandbox, number: int) -> Story:
    """The session with this number, which is also its place in time."""
    return Story(
        session=f"{number:08d}-5a7e-4b6e-9f57-3a1c2b4d5e6f", cwd=str(box.project.resolve()), _n=number * 1_000
    )


def kept(box: Sandbox, story: Story, *, age: int = 0) -> Path:
    """Its file. ``age``: seconds since it was written to last, where that counts."""
    folder = folder_of(box)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{story.session}.jsonl"
    path.write_bytes(story.data())
    at = OLD + story._n
    os.utime(path, None if age else (at, at))
    return path


def past(box: Sandbox, number: int, *requests: str, calls: int = 3) -> Path:
    """A whole session with these tasks."""
    story = begun(box, number)
    for request in requests or (f"Do step {number} of the plan, and run its checks",):
        worked(story, request, calls=calls, final=f"Done with {number}: {request[:20]}")
    return kept(box, story)
