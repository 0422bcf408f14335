"""What a test scripts for Claude Code (``model_server`` speaks to it), and what its requests say."""

from __future__ import annotations

import re
from typing import Any

from harness.models.server import Request, Tool, text_of

REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>\s*", re.DOTALL)


def bash(command: str, **more: Any) -> Tool:
    """Claude Code's shell tool; ``run_in_background=True`` leaves it running."""
    return Tool("Bash", {"command": command, "description": "scripted", **more})


def write(path: str, content: str) -> Tool:
    """Its write tool; the path is absolute."""
    return Tool("Write", {"file_path": path, "content": content})


def sub_agent(prompt: str, **more: Any) -> Tool:
    """A sub-agent, in the background where the version does so (``run_in_background=False`` for neither)."""
    asked = {"description": "scripted", "prompt": prompt, "subagent_type": "general-purpose"}
    return Tool("Agent", asked | more)


def structured(**data: Any) -> Tool:
    """The answer of a call that asked for structured output."""
    return Tool("StructuredOutput", data)


def said(request: Request) -> list[str]:
    """What the user role said, oldest first, without Claude Code's reminders and tool results. Since 2.1.331
    the words of a Stop hook come in the system role.
    """
    texts = (
        REMINDER.sub("", text_of(m["content"]))
        for m in request.messages
        if m["role"] == "user" or text_of(m["content"]).startswith("Stop hook")
    )
    return [t for t in texts if t.strip()]
