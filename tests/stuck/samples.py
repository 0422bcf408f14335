"""Silent sessions and their calls, for the tests of this folder."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from daemon.core.transcript import Message, ToolCall, Transcript
from daemon.stuck.loops import loop_in
from daemon.stuck.silence import Seen

BUSY = Seen(busy=True, silent_ms=36_000)
NOT_FOUND = "Could not find oldString in the file. It must match exactly, including whitespace."


def tool(name: str, error: str = "", output: str = "", **given: Any) -> ToolCall:
    return ToolCall("c", name, "error" if error else "completed", given, output, error)


def session(*parts: ToolCall | str | Message, ask: str = "fix the parser") -> Transcript:
    """One assistant message for each call or text. A text as the last part ends the turn."""
    messages = [Message("u", "user", text=ask, human=True)]
    for i, part in enumerate(parts):
        if isinstance(part, Message):
            messages.append(part)
        elif isinstance(part, str):
            messages.append(Message(f"a{i}", "assistant", text=part, finish="stop"))
        else:
            messages.append(Message(f"a{i}", "assistant", calls=(part,), finish="tool-calls"))
    return Transcript("ses", tuple(messages))


def quiet(*parts: ToolCall | str | Message, ask: str = "fix the parser") -> bool:
    """No alarm at any point of the stream."""
    whole = session(*parts, ask=ask)
    return all(
        loop_in(replace(whole, messages=whole.messages[:n])) is None
        for n in range(1, len(whole.messages) + 1)
    )
