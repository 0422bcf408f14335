"""opencode on the wire to core values: the events and the ``read`` projection of ``design/protocol.md``.

Owns opencode's message and part names, and the rule which user-role message a person typed. Never does
I/O, never keeps state. Unknown fields are skipped. One bad item (a message, a part, a todo) is left out
with a reason given to ``on_skip``; only a body that is no JSON object at all raises ``BadReply``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast, get_args

from msgspec import Raw, Struct, field

from daemon.core.errors import BadReply
from daemon.core.transcript import (
    Compaction,
    Message,
    Model,
    Todo,
    TodoStatus,
    ToolCall,
    ToolStatus,
    Transcript,
)
from daemon.hosts.opencode_events import KINDS, parse_event
from daemon.hosts.wire import Error, Info, Wire, decode, milliseconds

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["KINDS", "parse_event", "parse_transcript"]

TOOL_STATUSES: Final = frozenset(get_args(ToolStatus))
MOST: Final = 1e12
TODO_STATUSES: Final = frozenset(get_args(TodoStatus))


class _Time(Struct):
    created: float | None = None
    completed: float | None = None


class _Header(Struct):
    id: str | None = None
    role: str = ""
    agent: str | None = None
    provider: str | None = field(name="providerID", default=None)
    model: str | None = field(name="modelID", default=None)
    finish: str | None = None
    error: Error | None = None
    summary: Any = None  # true on a compaction's summary; an object on user messages
    cost: Any = None  # a number where the host knows the price
    tokens: Any = None
    time: _Time | None = None


class _ToolState(Struct):
    status: str = ""
    input: Any = None
    output: str | None = None
    cut: float | None = None
    error: str | None = None
    exit: int | None = None
    start: float | None = None
    end: float | None = None


class _Part(Struct):
    type: str = ""
    id: str | None = None
    text: str | None = None
    synthetic: bool | None = None
    order: str | None = None
    auto: Any = None  # of a compaction: true when the host began it by itself
    call: str | None = field(name="callID", default=None)
    tool: str | None = None
    state: _ToolState | None = None


class _Message(Struct):
    info: _Header = field(default_factory=_Header)
    parts: list[_Part] | None = None


class _LooseMessage(Struct):
    info: _Header = field(default_factory=_Header)
    parts: Raw = Raw(b"null")


class _Todo(Struct):
    content: str = ""
    status: str = ""


class _Read(Struct):
    missing: bool | None = None
    busy: bool | None = None
    session: Raw = Raw(b"null")
    messages: Raw = Raw(b"null")
    todos: Raw = Raw(b"null")


def parse_transcript(
    data: Wire,
    *,
    is_ours: Callable[[str], bool],
    session: str = "",
    on_skip: Callable[[str], None] | None = None,
) -> Transcript:
    """The result of a ``read`` order. ``session`` is used when the host sends none.

    ``is_ours`` says whether the store knows an order id. A user message is human if a typed (not
    synthetic) text part is there, no compaction part, and no part of one of our orders (I4). A mark that
    the store does not know is a person's copy of our text: human. The host's order is kept: its clock
    may have jumped.
    """
    skip = on_skip or (lambda _reason: None)
    read = decode(data, _Read)
    try:
        info = decode(read.session, Info)
    except BadReply as error:
        skip(f"session: {error}")
        info = Info()
    messages: dict[str, Message] = {}
    for i, wire in enumerate(_messages(read.messages, skip)):
        message_id = wire.info.id
        if not message_id or wire.info.role not in {"user", "assistant"}:
            skip(f"messages[{i}]: no id, or the role {wire.info.role!r}")
            continue
        # a repeated id replaces the older text and keeps its place
        messages[message_id] = _message(message_id, wire, is_ours, skip)
    return Transcript(
        session=info.id or session,
        messages=tuple(messages.values()),
        todos=_todos(read.todos, skip),
        busy=bool(read.busy),
        parent=info.parent or "",
        title=info.title or "",
        directory=info.directory or "",
        missing=bool(read.missing),
    )


def _messages(raw: Raw, skip: Callable[[str], None]) -> list[_Message]:
    """All at once where every type is right; else one by one, so that one bad part costs only itself."""
    try:
        return decode(raw, list[_Message])
    except BadReply:
        pass
    found: list[_Message] = []
    for i, item in enumerate(_items(raw, "messages", skip)):
        try:
            loose = decode(item, _LooseMessage)
        except BadReply as error:
            skip(f"messages[{i}]: {error}")
            continue
        parts: list[_Part] = []
        for j, part in enumerate(_items(loose.parts, f"messages[{i}].parts", skip)):
            try:
                parts.append(decode(part, _Part))
            except BadReply as error:
                skip(f"messages[{i}].parts[{j}]: {error}")
        found.append(_Message(loose.info, parts))
    return found


def _message(
    message_id: str, wire: _Message, is_ours: Callable[[str], bool], skip: Callable[[str], None]
) -> Message:
    info, parts = wire.info, wire.parts or []
    order, typed, said = "", [], []
    compaction: Compaction = ""
    calls: dict[str, ToolCall] = {}
    for i, part in enumerate(parts):
        if part.type == "text":
            said.append(part.text or "")
            if not part.synthetic:
                typed.append(part.text or "")
            if part.order and not order and is_ours(part.order):
                order = part.order
        elif part.type == "tool":
            call = _call(part, f"{message_id}/{i}")
            if call is None:
                skip(f"message {message_id}, part {i}: a tool call without a known status")
            else:
                calls[call.id] = call
        elif part.type == "compaction":
            compaction = "auto" if part.auto is True else "manual"
    human = info.role == "user" and bool(typed) and not order and not compaction
    time, error = info.time or _Time(), info.error or Error()
    return Message(
        id=message_id,
        role="user" if info.role == "user" else "assistant",
        at=milliseconds(time.created),
        text="\n\n".join(text for text in (typed if human else said) if text),
        human=human,
        order=order,
        agent=info.agent or "",
        model=Model(info.provider, info.model) if info.provider and info.model else None,
        finish=info.finish or "",
        error=(error.name or "unknown") if info.error else "",
        error_message=error.said,
        summary=info.summary is True,
        completed=milliseconds(time.completed),
        calls=tuple(calls.values()),
        cost=_amount(info.cost),
        tokens=int(_amount(info.tokens) or 0),
        compaction=compaction if info.role == "user" else "",
    )


def _amount(value: object) -> float | None:
    """A sum of money or tokens; None for zero, which is what the host says of what it does not know."""
    fine = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < MOST
    return float(cast("float", value)) if fine else None


def _call(part: _Part, fallback_id: str) -> ToolCall | None:
    state = part.state or _ToolState()
    if state.status not in TOOL_STATUSES:
        return None
    return ToolCall(
        id=part.call or part.id or fallback_id,
        tool=part.tool or "",
        status=cast("ToolStatus", state.status),
        input=state.input if isinstance(state.input, dict) else {},
        output=state.output or "",
        error=state.error or "",
        exit=state.exit,
        cut=milliseconds(state.cut),
        started=milliseconds(state.start),
        ended=milliseconds(state.end),
    )


def _todos(raw: Raw, skip: Callable[[str], None]) -> tuple[Todo, ...]:
    found: list[Todo] = []
    for i, item in enumerate(_items(raw, "todos", skip)):
        try:
            todo = decode(item, _Todo)
        except BadReply as error:
            skip(f"todos[{i}]: {error}")
            continue
        if todo.status in TODO_STATUSES:
            found.append(Todo(todo.content, cast("TodoStatus", todo.status)))
        else:
            skip(f"todos[{i}]: the status {todo.status!r}")
    return tuple(found)


def _items(raw: Raw, name: str, skip: Callable[[str], None]) -> list[Raw]:
    """The items of a list; none where something else stands (``messages`` may be ``{}``, I36)."""
    try:
        return decode(raw, list[Raw])
    except BadReply as error:
        skip(f"{name}: {error}")
        return []
