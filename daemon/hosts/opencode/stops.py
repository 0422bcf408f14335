"""The stops in a session that ``opencode export`` wrote, each as the host would have told it then.

A stop is an answer that ended a turn and after which the agent said no more by itself. What the export says
of the session as it is now (messages taken back) counts for its last stop only. Reads no files. Raises
``BadReply`` for any other form.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ...core.errors import BadReply
from ...core.stop import Stop
from .export import parse_export

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...core.stop import After
    from ...core.transcript import Message


def stops_of_export(found: object) -> Iterator[Stop]:
    """``found``: as for ``parse_export``. Oldest first."""
    whole = parse_export(found)
    info, wire = (found["info"], found["messages"]) if isinstance(found, dict) else (None, found)
    if not isinstance(wire, list):
        raise BadReply("no list of messages")
    messages = whole.messages
    for i, m in enumerate(messages):
        after = messages[i + 1] if i + 1 < len(messages) else None
        ended = m.role == "assistant" and (m.is_end or m.error)
        if not ended or (after is not None and after.role == "assistant"):
            continue
        if after is None:
            yield Stop(whole, "end")
            continue
        known = [w for w in wire[: _place(wire, after.id)] if isinstance(w, dict)]
        then = parse_export({"info": info, "messages": known})
        who, said = _next(messages[i + 1 :])
        yield Stop(replace(then, session=whole.session, undone=False), who, said)


def _place(wire: list[object], message: str) -> int:
    """Where the message with this id stands."""
    for at, each in enumerate(wire):
        info = each.get("info") if isinstance(each, dict) else None
        if isinstance(info, dict) and info.get("id") == message:
            return at
    return len(wire)


def _next(messages: tuple[Message, ...]) -> tuple[After, str]:
    """Who spoke next, before the agent did, and what the person said."""
    for m in messages:
        if m.role == "assistant":
            break
        if m.human:
            return "person", m.text
        if m.order:
            return "feedback", ""
    return "host", ""
