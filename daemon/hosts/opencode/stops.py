"""The stops in a session that ``opencode export`` wrote, each as the host would have told it then.

A stop is an answer that ended a turn and after which the agent said no more by itself. What the export says
of the session as it is now (messages taken back) counts for its last stop only. Reads no files. Raises
``BadReply`` for any other form.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from ...core.stop import Stop
from .export import parse_export, todo_lists

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ...core.stop import After
    from ...core.transcript import Message


def stops_of_export(found: object) -> Iterator[Stop]:
    """``found``: as for ``parse_export``. Oldest first."""
    whole = parse_export(found)
    wire: Any = found["messages"] if isinstance(found, dict) else found
    messages, todos = whole.messages, todo_lists(wire)
    for i, m in enumerate(messages):
        after = messages[i + 1] if i + 1 < len(messages) else None
        ended = m.role == "assistant" and (m.is_end or m.error)
        if not ended or (after is not None and after.role == "assistant"):
            continue
        if after is None:
            yield Stop(whole, "end")
            continue
        then = replace(whole, messages=messages[: i + 1], todos=todos.get(m.id, ()), undone=False)
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
