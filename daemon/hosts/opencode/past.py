"""Past sessions of opencode as a transcript, and as its stops: from ``opencode export``, from its list of
messages, or from an open opencode.

An export has exit codes, our order ids and the model of a human message at other places than the shim's
``read`` result, and its todo list only in the last ``todowrite`` call. ``parse_transcript`` does the rest.

A stop is an answer that ended a turn and after which the agent said no more by itself, as the host would have
told it then. Facts of the session as it is now (messages taken back, an agent that may change nothing) count
for its last stop only. Reads no files. Raises ``BadReply`` for any other form.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ...core.errors import BadReply
from ...core.transcript import Stop
from ..wire import record
from .messages import parse_transcript

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ...core.transcript import After, Message, Todo, Transcript

Json = dict[str, Any]


def parse_export(found: object, *, on_skip: Callable[[str], None] | None = None) -> Transcript:
    """``found``: ``{"info": …, "messages": […]}`` or ``[{"info": …, "parts": […]}, …]``, as decoded JSON."""
    read, session = read_of(found)
    # no store can be asked here, and only reflectd marks a part with an order
    return parse_transcript(read, is_ours=lambda _: True, session=session, on_skip=on_skip)


def read_of(found: object) -> tuple[Json, str]:
    """An export in the form of the shim's ``read`` result, and the session's id as its messages have it."""
    info, messages = (found.get("info"), found.get("messages")) if isinstance(found, dict) else (None, found)
    if not isinstance(messages, list) or not all(isinstance(m, dict) for m in messages):
        raise BadReply("no list of messages")
    projected = [_message(m) for m in messages]
    session = next((s for m in projected if isinstance(s := m["info"].get("sessionID"), str)), "")
    read = {"session": record(info), "messages": projected, "todos": _todos(projected) or []}
    return read, session


def todo_lists(messages: list[Json]) -> dict[str, tuple[Todo, ...]]:
    """The todo list as it was after each message of a ``read`` result, by the message's id."""
    found: dict[str, tuple[Todo, ...]] = {}
    now: tuple[Todo, ...] = ()
    for one in messages:
        if (said := _todos([one])) is not None:
            now = parse_transcript({"todos": said}, is_ours=lambda _: True).todos
        found[str(record(one.get("info")).get("id"))] = now
    return found


def _message(wire: Json) -> Json:
    info = record(wire.get("info"))
    model = record(info.get("model"))
    parts = wire.get("parts")
    return {
        "info": {
            **info,
            "agent": info.get("agent") or info.get("mode"),
            "providerID": info.get("providerID") or model.get("providerID"),
            "modelID": info.get("modelID") or model.get("modelID"),
        },
        "parts": [_part(p) for p in parts if isinstance(p, dict)] if isinstance(parts, list) else [],
    }


def _part(part: Json) -> Json:
    if part.get("type") == "tool":
        return {**part, "state": _state(record(part.get("state")))}
    ours = record(record(part.get("metadata")).get("reflectd"))
    nobody = bool(part.get("synthetic") or part.get("ignored") or "command" in ours)
    return {**part, "order": ours.get("order"), "synthetic": nobody}


def _state(state: Json) -> Json:
    metadata, time = record(state.get("metadata")), record(state.get("time"))
    return {
        **state,
        "output": state.get("output") or metadata.get("output"),
        "exit": metadata.get("exit"),
        "start": time.get("start"),
        "end": time.get("end"),
    }


def _todos(messages: list[Json]) -> list[object] | None:
    """The todos of the last finished ``todowrite`` call; None when there is none."""
    for message in reversed(messages):
        for part in reversed(message.get("parts") or []):
            if part.get("type") == "tool" and part.get("tool") == "todowrite":
                state = record(part.get("state"))
                todos = record(state.get("input")).get("todos")
                if state.get("status") == "completed" and isinstance(todos, list):
                    return todos
    return None


def stops_of_export(found: object) -> Iterator[Stop]:
    """``found``: as for ``parse_export``. Oldest first."""
    return stops_of_read(*read_of(found))


def stops_of_read(read: dict[str, Any], session: str = "") -> Iterator[Stop]:
    """``read``: the result of the order `read` with all messages (``design/protocol.md``). ``session``: the
    id where it has none. Oldest first.
    """
    wire = read.get("messages")
    if not isinstance(wire, list) or not all(isinstance(m, dict) for m in wire):
        raise BadReply("no list of messages")
    whole = parse_transcript(read, is_ours=lambda _: True, session=session)
    messages, todos = whole.messages, todo_lists(wire)
    for i, m in enumerate(messages):
        after = messages[i + 1] if i + 1 < len(messages) else None
        ended = m.role == "assistant" and (m.is_end or m.error)
        if not ended or (after is not None and after.role == "assistant"):
            continue
        if after is None:
            yield Stop(whole, "end")
            continue
        known = replace(whole, busy=False, undone=False, readonly=False)
        then = replace(known, messages=messages[: i + 1], todos=todos.get(m.id, ()))
        who, said = _next(islice(messages, i + 1, None))
        yield Stop(then, who, said)


def _next(messages: Iterable[Message]) -> tuple[After, str]:
    """The next speaker before the agent, and the person's words."""
    for m in messages:
        if m.role == "assistant":
            break
        if m.human:
            return "person", m.text
        if m.order:
            return "feedback", ""
    return "host", ""
