"""The results of the orders ``read`` and ``providers`` (``design/protocol.md``) as core types.

Owns opencode's names of messages and parts, and the rule that says which user-role messages a person typed.
Keeps no state and does no I/O. Unknown fields are skipped. A bad item (a message, a part, a todo) is left
out, and ``on_skip`` is told why. Only a body that is no JSON object raises ``BadReply``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast, get_args

from msgspec import Raw, Struct, field

from ...core.errors import BadReply
from ...core.given import cited_ids
from ...core.transcript import (
    Compaction,
    Message,
    Model,
    Todo,
    TodoStatus,
    ToolCall,
    ToolStatus,
    Transcript,
)
from ..wire import Wire, decode, milliseconds
from .events import Error, Info

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...core.fast import Offered

TOOL_STATUSES: Final = frozenset(get_args(ToolStatus))
MAX_ID: Final = 200
MAX_CITED: Final = 100
MOST_MODELS: Final = 10_000  # ids in all; the shim sends at most half as many
OWN_COMMAND: Final = "The following tool was executed by the user"
MAX_AMOUNT: Final = 1e12  # of tokens or USD; more than that is nonsense
TODO_STATUSES: Final = frozenset(get_args(TodoStatus))


class _Time(Struct):
    created: float | None = None
    completed: float | None = None


class _Header(Struct):
    id: str | None = None
    parent: str | None = field(name="parentID", default=None)
    role: str = ""
    agent: str | None = None
    provider: str | None = field(name="providerID", default=None)
    model: str | None = field(name="modelID", default=None)
    finish: str | None = None
    error: Error | None = None
    steers: Any = None
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
    session: str | None = None
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
    name: str | None = None  # of an attached file
    state: _ToolState | None = None
    cited: Any = None  # names of points, in what the agent thought


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
    undone: bool | None = None
    readonly: bool | None = None
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
    """The result of a ``read`` order as a transcript. ``session``: the id to use when the host sends none.

    A user message is human if it has a file or a text part that is not synthetic, no compaction part, and no
    part that carries one of our orders (I4). What the person ran as `!command` is left out: no agent did it.
    ``is_ours`` says whether the store knows an order id: a part with an unknown one is a person's copy of our
    text, and human. Messages keep the host's order, because its clock may jump.
    """
    skip = on_skip or (lambda _reason: None)
    read = decode(data, _Read)
    try:
        info = decode(read.session, Info)
    except BadReply as error:
        skip(f"session: {error}")
        info = Info()
    messages: dict[str, Message] = {}
    own_commands: set[str] = set()
    for i, wire in enumerate(_messages(read.messages, skip)):
        message_id = wire.info.id
        if not message_id or len(message_id) > MAX_ID or wire.info.role not in {"user", "assistant"}:
            skip(f"messages[{i}]: no id or one that is too long, or the role {(wire.info.role or '')[:50]!r}")
            continue
        if _is_own_command(wire):
            own_commands.add(message_id)
        if message_id in own_commands or wire.info.parent in own_commands:
            continue
        # a repeated id replaces the older text and keeps its place
        messages[message_id] = _message(message_id, wire, is_ours, skip)
    parent, title, folder = info.told
    return Transcript(
        session=info.id or session,
        messages=tuple(messages.values()),
        todos=_todos(read.todos, skip),
        busy=bool(read.busy),
        parent=parent,
        title=title,
        directory=folder,
        missing=bool(read.missing),
        undone=bool(read.undone),
        readonly=bool(read.readonly),
    )


def _messages(raw: Raw, skip: Callable[[str], None]) -> list[_Message]:
    """Decode all messages at once, or part by part when a type is wrong: then only bad parts are lost."""
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


def _is_own_command(wire: _Message) -> bool:
    """Whether the person ran a shell command (`!ls`), which the host stores as a user message of its own."""
    return wire.info.role == "user" and [p.text for p in wire.parts or ()] == [OWN_COMMAND]


def _message(
    message_id: str, wire: _Message, is_ours: Callable[[str], bool], skip: Callable[[str], None]
) -> Message:
    info, parts = wire.info, wire.parts or []
    order = ""
    typed: list[str] = []
    said: list[str] = []
    attached: list[str] = []
    thought: list[str] = []
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
        elif part.type == "file":
            attached.append(part.name or "a file")
        elif part.type == "reasoning" and isinstance(part.cited, list):
            thought += [f"[{name}]" for name in part.cited[:MAX_CITED] if isinstance(name, str)]
        elif part.type == "compaction":
            compaction = "auto" if part.auto is True else "manual"
    human = info.role == "user" and bool(typed or attached) and not order and not compaction
    if human and attached and not any(typed):
        typed = [f"[attached: {', '.join(attached)}]"]
    time, error = info.time or _Time(), info.error or Error()
    return Message(
        id=message_id,
        role="user" if info.role == "user" else "assistant",
        at=milliseconds(time.created),
        text="\n\n".join(text for text in (typed if human else said) if text),
        human=human,
        steers=human and info.steers is True,
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
        cited=cited_ids(thought),
    )


def _amount(value: object) -> float | None:
    """An amount of money or tokens. 0 becomes None: opencode writes 0 when it does not know."""
    fine = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < MAX_AMOUNT
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
        agent=(state.session or "")[:MAX_ID],
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
    """The items of a list; none when it is no list (``messages`` may be ``{}``, I36)."""
    try:
        return decode(raw, list[Raw])
    except BadReply as error:
        skip(f"{name}: {error}")
        return []


# Which models are offered


class _Provider(Struct):
    id: str = ""
    models: list[object] = field(default_factory=list)


class _Providers(Struct):
    providers: list[Raw] = field(default_factory=list)


def parse_providers(data: Wire) -> Offered:
    """The result of a ``providers`` order: provider id to model ids, in the host's order, without repeats. A
    bad item is left out (I36).
    """
    offered: dict[str, tuple[str, ...]] = {}
    left = MOST_MODELS
    for item in decode(data, _Providers).providers:
        try:
            provider = decode(item, _Provider)
        except BadReply:
            continue
        ids = dict.fromkeys(m for m in provider.models if isinstance(m, str) and 0 < len(m) <= MAX_ID)
        kept = tuple(ids)[:left]
        if 0 < len(provider.id) <= MAX_ID and provider.id not in offered and kept:
            offered[provider.id] = kept
            left -= len(kept)
    return offered
