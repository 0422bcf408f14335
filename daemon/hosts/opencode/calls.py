"""One tool call of opencode as its plugin tells of it when it ended (``POST /v1/ask``, ``reminder``).

Pure. Whatever has another form raises ``BadReply``. Long texts are cut: only their tail tells of an error.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct, field

from ...core.errors import BadReply
from ...core.transcript import ToolCall
from ..wire import decode, text_or_empty

MAX_NAME: Final = 200
TAIL: Final = 8_000


class _Told(Struct):
    tool: Any = None
    call: Any = field(name="callID", default=None)
    args: Any = None
    output: Any = None
    error: Any = None
    exit: Any = None


def parse_call(data: str) -> ToolCall:
    """The call that ``data`` (JSON) tells of. Raises ``BadReply``."""
    told = decode(data.encode("utf-8", "surrogatepass"), _Told)
    tool = text_or_empty(told.tool)[:MAX_NAME]
    if not tool:
        raise BadReply("a tool call without the name of its tool")
    error = text_or_empty(told.error)
    return ToolCall(
        id=text_or_empty(told.call)[:MAX_NAME],
        tool=tool,
        status="error" if error else "completed",
        input=told.args if isinstance(told.args, dict) else {},
        output=text_or_empty(told.output)[-TAIL:],
        error=error[-TAIL:],
        exit=told.exit if type(told.exit) is int else None,
    )
