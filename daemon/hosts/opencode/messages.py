"""The results of the orders ``read`` and ``providers`` (``design/protocol.md``) as core types.

Owns opencode's names of messages and parts, and the rule that says which user-role messages a person typed.
Keeps no state and does no I/O. Unknown fields are skipped. A bad item (a message, a part, a todo) is left
out, and ``on_skip`` is told why. Only a body that is no JSON object raises ``BadReply``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, cast

from msgspec import Meta, Struct, field

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
from ..wire import Wire, decode_most, milliseconds
from .events import Error, Info

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...core.fast import Offered

MAX_ID: Final = 200
MAX_CITED: Final = 100
MOST_MODELS: Final = 10_000  # ids in all; the shim sends at most half as many
OWN_COMMAND: Final = "The following tool was executed by the user"
MAX_AMOUNT: Final = 1e12  # of tokens or USD; more than that is nonsense


class _Time(Struct):
    created: float | None = None
    completed: float | None = None


class _Header(Struct):
    id: Annotated[str, Meta(min_length=1, max_length=MAX_ID)]
    role: Literal["user", "assistant"]
    parent: str | None = field(name="parentID", default=None)
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
    status: ToolStatus
    input: Any = None
    output: str | None = None
    cut: float | None = None
    error: str | None = None
    exit: int | None = None
    session: str | None = None
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
    info: _Header
    parts: list[_Part] | None = None


class _Todo(Struct):
    status: TodoStatus
    content: str = ""


class _Read(Struct):
    missing: bool | None = None
    busy: bool | None = None
    undone: bool | None = None
    readonly: bool | None = None
    session: Info | None = None
    messages: list[_Message] | None = None
    todos: list[_Todo] | None = None


def parse_transcript(
    data: Wire,
    *,
    is_ours: Callable[[str], bool],
    session: str = "",
    on_skip: Callable[[str], None] | None = None,
) -> Transcript:
    """The result of a ``read`` order as a transcript. ``session``: the id to use when the host sends none.

    A user message is human if it has a file or a text part that is not synthetic, no compaction part, and no
    part with one of our orders (I4). The person's `!command` is left out: no agent ran it. ``is_ours`` says
    whether the store knows an order id: a part with an unknown one is a person's copy of our text, and human.
    Messages keep the host's order, because its clock may jump.
    """
    read = decode_most(data, _Read, on_skip or (lambda _reason: None))
    messages: dict[str, Message] = {}
    own_commands: set[str] = set()
    for wire in read.messages or ():
        if _is_own_command(wire):
            own_commands.add(wire.info.id)
        if wire.info.id in own_commands or wire.info.parent in own_commands:
            continue
        # a repeated id replaces the older text and keeps its place
        messages[wire.info.id] = _message(wire, is_ours)
    info = read.session or Info()
    parent, title, folder = info.told
    return Transcript(
        session=info.id or session,
        messages=tuple(messages.values()),
        todos=tuple(Todo(todo.content, todo.status) for todo in read.todos or ()),
        busy=bool(read.busy),
        parent=parent,
        title=title,
        directory=folder,
        missing=bool(read.missing),
        undone=bool(read.undone),
        readonly=bool(read.readonly),
    )


def _is_own_command(wire: _Message) -> bool:
    """Says whether the person ran a shell command (`!ls`), which the host stores as a user message of its
    own.
    """
    return wire.info.role == "user" and [p.text for p in wire.parts or ()] == [OWN_COMMAND]


def _message(wire: _Message, is_ours: Callable[[str], bool]) -> Message:
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
            if (call := _call(part, f"{info.id}/{i}")) is not None:
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
        id=info.id,
        role=info.role,
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
    state = part.state
    if state is None:
        return None
    return ToolCall(
        id=part.call or part.id or fallback_id,
        tool=part.tool or "",
        status=state.status,
        input=state.input if isinstance(state.input, dict) else {},
        output=state.output or "",
        error=state.error or "",
        exit=state.exit,
        cut=milliseconds(state.cut),
        ended=milliseconds(state.end),
        agent=(state.session or "")[:MAX_ID],
    )


# Which models are offered


Name = Annotated[str, Meta(min_length=1, max_length=MAX_ID)]


class _Provider(Struct):
    id: Name
    models: list[Name] = field(default_factory=list)


class _Providers(Struct):
    providers: list[_Provider] = field(default_factory=list)


def parse_providers(data: Wire) -> Offered:
    """The result of a ``providers`` order: provider id to model ids, in the host's order, without repeats. A
    bad item is left out (I36).
    """
    offered: dict[str, tuple[str, ...]] = {}
    left = MOST_MODELS
    for provider in decode_most(data, _Providers, lambda _reason: None).providers:
        kept = tuple(dict.fromkeys(provider.models))[:left]
        if kept and provider.id not in offered:
            offered[provider.id] = kept
            left -= len(kept)
    return offered
