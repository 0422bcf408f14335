"""Shell commands of a session, for the tests of what they did on GitHub."""

from __future__ import annotations

from typing import Any

from daemon.compaction.github import GithubWork, github_work
from daemon.core.transcript import Message, ToolCall, Transcript

PR = "https://github.com/acme/shop/pull/12"
ISSUE = "https://github.com/acme/shop/issues/7"


Ran = tuple[str, str] | tuple[str, str, int]


def call(command: str, output: str = "", exit_code: int | None = 0, **changes: Any) -> ToolCall:
    values: dict[str, Any] = {"id": "c", "tool": "bash", "status": "completed"}
    values |= {"input": {"command": command}, "output": output, "exit": exit_code}
    return ToolCall(**(values | changes))


def work(*calls: ToolCall, request: str = "Do it", said: str = "") -> GithubWork:
    messages = (
        Message("m1", "user", text=request, human=True),
        Message("m2", "assistant", text=said, calls=calls, finish="stop"),
    )
    return github_work(Transcript("ses_1", messages))


def ran(*commands: Ran) -> GithubWork:
    return work(*(call(*command) for command in commands))
