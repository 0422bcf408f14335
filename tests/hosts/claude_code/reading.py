"""A story of a Claude Code session, read as a transcript."""

from __future__ import annotations

from daemon.core.transcript import Transcript
from daemon.hosts.claude_code.transcript import transcript_of
from tests.support.hosts.claude_code_story import Story

OURS = "rfl_0123456789abcdef0123"


def read(story: Story) -> Transcript:
    return transcript_of(story.data(), "file")


def typed(story: Story) -> list[str]:
    return [m.text for m in read(story).messages if m.human]
