"""The stops in a past session of opencode, each as the host would have told it then: in a session that
``opencode export`` wrote, and in one that an open opencode was asked for.

A stop is an answer that ended a turn and after which the agent said no more by itself. What is said of the
session as it is now (messages taken back, an agent that may change nothing) counts for its last stop only.
Reads no files. Raises ``BadReply`` for any other form.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from ...core.errors import BadReply
from ...core.stop import Stop
from .export import read_of, todo_lists
from .messages import parse_transcript

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ...core.stop import After
    from ...core.transcript import Message


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
    """Who spoke next, before the agent did, and what the person said."""
    for m in messages:
        if m.role == "assistant":
            break
        if m.human:
            return "person", m.text
        if m.order:
            return "feedback", ""
    return "host", ""
