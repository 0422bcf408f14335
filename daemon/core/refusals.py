"""Failed tool calls that are no real errors: the person said no, or the call only looked for something."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .transcript import ToolCall

_LOOKS_UP: Final = re.compile(
    r"(?:^|_)(?:read|grep|glob|list|ls|webfetch|websearch|fetch|search|get|find|query|view|show|describe"
    r"|todo\w*|lsp"
    r"|codesearch|question|askuserquestion|skill|invalid|notebookread|toolsearch)(?:_|$)",
    re.IGNORECASE,
)
_DENIED: Final = re.compile(
    r"rejected permission|rule which prevents you|doesn't want to proceed|dismissed this question"
    r"|user rejected"
    r"|execution aborted|User aborted|Request interrupted by user|[Pp]ermission .{0,40}denied by the user"
)


def is_denied(call: ToolCall) -> bool:
    """Whether the person refused or stopped the call, by opencode's or Claude Code's wording."""
    if call.status == "error":
        return bool(_DENIED.search(call.error[:2000]) or _DENIED.search(call.output[:2000]))
    return call.status == "completed" and "User aborted the command" in call.output[-1000:]


def is_refused(call: ToolCall) -> bool:
    """Whether the person said no to the call or stopped it. A rule in the settings that forbids it is no word
    on this call.
    """
    return is_denied(call) and "rule which prevents you" not in call.error[:2000]


def looks_up(tool: str) -> bool:
    """Whether the tool only reads: not finding something is an answer, not unfinished work."""
    return bool(_LOOKS_UP.search(tool))
