"""The tool call that a hook of Claude Code is about: before it ran, or after it failed.

Pure. Of long texts only what can meet a trigger is kept. Raises ``BadReply`` for a body of another form.
"""

from __future__ import annotations

import re
from typing import Any, Final

from msgspec import Struct

from ...core.transcript import ToolCall
from ..wire import decode, text_or_empty

EVENTS: Final = frozenset({"PreToolUse", "PostToolUseFailure"})
MAX_NAME: Final = 200
TAIL: Final = 8_000
SHELL: Final = "Bash"
_EXIT: Final = re.compile(r"Exit code (\d{1,4})(?:\n|$)")


class _Body(Struct):
    tool_name: Any = None
    tool_use_id: Any = None
    tool_input: Any = None
    error: Any = None
    cwd: Any = None


def call_of(event: str, body: bytes) -> ToolCall:
    """The call. One that has not run yet is ``running``; what ran in the shell has its folder."""
    wire = decode(body, _Body)
    tool, error = text_or_empty(wire.tool_name)[:MAX_NAME], text_or_empty(wire.error)
    given: dict[str, object] = wire.tool_input if isinstance(wire.tool_input, dict) else {}
    if tool == SHELL and (cwd := text_or_empty(wire.cwd)):
        given = {**given, "workdir": cwd}
    code = _EXIT.match(error)
    return ToolCall(
        id=text_or_empty(wire.tool_use_id)[:MAX_NAME],
        tool=tool,
        status="error" if event == "PostToolUseFailure" else "running",
        input=given,
        error=error[-TAIL:],
        exit=int(code[1]) if code else None,
    )
