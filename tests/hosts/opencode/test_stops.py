"""Where an exported session of opencode stops, and what it was then."""

from __future__ import annotations

import json
from typing import Any

import pytest

from daemon.core.errors import BadReply
from daemon.core.transcript import Todo
from daemon.hosts.opencode.past import parse_export, stops_of_export
from harness.machine.sandbox import REPO

Json = dict[str, Any]
EXPORT = REPO / "tests" / "data" / "exports" / "opencode_1.18.json"


def user(name: str, text: str) -> Json:
    return {
        "info": {"id": name, "role": "user", "sessionID": "ses_1"},
        "parts": [{"type": "text", "text": text}],
    }


def agent(name: str, text: str, *parts: Json, finish: str = "stop") -> Json:
    info = {"id": name, "role": "assistant", "sessionID": "ses_1", "finish": finish}
    return {"info": info, "parts": [*parts, {"type": "text", "text": text}]}


def todos(status: str) -> Json:
    given = {"todos": [{"content": "Write it", "status": status}]}
    state = {"status": "completed", "input": given, "output": "ok"}
    return {"type": "tool", "tool": "todowrite", "callID": f"c_{status}", "state": state}


def test_each_stop_has_its_own_todos() -> None:
    """The list is that of the moment, and steps before the end of a turn are no stops."""
    messages = [
        user("m1", "Write it"),
        agent("m2", "", todos("pending"), finish="tool-calls"),
        agent("m3", "Begun."),
        user("m4", "Go on"),
        agent("m5", "Done.", todos("completed")),
    ]
    first, second = stops_of_export({"info": {"id": "ses_1", "directory": "/repo"}, "messages": messages})
    assert (first.after, first.said, second.after) == ("person", "Go on", "end")
    assert first.transcript.todos == (Todo("Write it", "pending"),)
    assert second.transcript.todos == (Todo("Write it", "completed"),)
    assert [m.id for m in first.transcript.messages] == ["m1", "m2", "m3"]
    assert first.transcript.directory == "/repo"


def test_each_stop_is_as_the_export_was_then() -> None:
    """As if the session had been exported at that moment."""
    messages = json.loads(EXPORT.read_text("utf-8"))["messages"]
    messages += [user("m8", "Once more"), agent("m9", "Done.", todos("completed"))]
    found = list(stops_of_export(messages))
    assert len(found) == 3
    for stop in found:
        last = stop.transcript.messages[-1].id
        until = [m["info"]["id"] for m in messages].index(last)
        assert stop.transcript == parse_export(messages[: until + 1])


def test_the_real_export_has_two_stops() -> None:
    """Our feedback came after the first one; a list of messages alone reads the same."""
    found = json.loads(EXPORT.read_text("utf-8"))
    assert [(s.after, s.said) for s in stops_of_export(found)] == [("feedback", ""), ("end", "")]
    assert [s.after for s in stops_of_export(found["messages"])] == ["feedback", "end"]


@pytest.mark.parametrize("found", [{}, [1], {"messages": "x"}, None])
def test_any_other_form_is_refused(found: object) -> None:
    """What is no export raises ``BadReply``."""
    with pytest.raises(BadReply):
        list(stops_of_export(found))
