"""opencode's events to core events."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.core import events as ev
from daemon.core.errors import BadReply
from daemon.hosts.opencode.events import KINDS, parse_event
from tests.hosts.opencode.samples import JSON, S


@pytest.mark.shows("I36")
@pytest.mark.parametrize(
    ("kind", "data", "expected"),
    [
        (
            "session.created",
            {**S, "info": {"id": "s", "parentID": "p", "title": "t", "directory": "/d", "new": 1}},
            (ev.SessionSeen("s", 5, "p", "t", "/d"),),
        ),
        ("session.created", {"info": {"id": "s"}}, (ev.SessionSeen("s", 5),)),
        ("session.updated", {**S, "info": {"id": "s", "title": "t"}}, (ev.SessionSeen("s", 5, "", "t"),)),
        ("session.deleted", S, (ev.SessionDeleted("s", 5),)),
        ("session.status", {**S, "status": {"type": "busy"}}, (ev.SessionBusied("s", 5),)),
        (
            "session.status",
            {**S, "status": {"type": "retry", "next": 9}},
            (ev.SessionBusied("s", 5, retry=True),),
        ),
        ("session.status", {**S, "status": {"type": "idle"}}, ()),
        ("session.status", {**S, "status": {"type": "dreaming"}}, ()),
        ("session.idle", S, (ev.SessionIdled("s", 5),)),
        (
            "session.error",
            {**S, "error": {"name": "MessageAbortedError", "message": "x"}},
            (ev.TurnAborted("s", 5),),
        ),
        (
            "session.error",
            {**S, "error": {"name": "APIError", "message": "m"}},
            (ev.HostErrored("s", 5, "APIError", "m"),),
        ),
        (
            "session.error",
            {**S, "error": {"name": "APIError", "data": {"message": "m"}}},
            (ev.HostErrored("s", 5, "APIError", "m"),),
        ),
        ("session.error", {"error": {"name": "UnknownError"}}, ()),
        ("session.error", S, (ev.HostErrored("s", 5),)),
        (
            "message.error",
            {**S, "messageID": "m", "error": {"name": "MessageAbortedError"}},
            (ev.TurnAborted("s", 5, "m"),),
        ),
        ("session.compacted", S, (ev.SessionCompacted("s", 5),)),
        (
            "chat.message",
            {**S, "messageID": "m", "agent": "build", "human": True},
            (ev.HumanMessaged("s", 5, "m", "build"),),
        ),
        (
            "chat.message",
            {**S, "messageID": "m", "human": False, "order": "o"},
            (ev.SyntheticMessaged("s", 5, "m", "o"),),
        ),
        ("permission.asked", {**S, "id": "q"}, (ev.PersonAsked("s", 5, "q"),)),
        ("question.asked", {**S, "id": "q"}, (ev.PersonAsked("s", 5, "q"),)),
        ("permission.replied", {**S, "requestID": "q"}, (ev.PersonAnswered("s", 5, "q"),)),
        ("question.replied", {**S, "requestID": "q"}, (ev.PersonAnswered("s", 5, "q"),)),
        ("question.rejected", {**S, "requestID": "q"}, (ev.PersonAnswered("s", 5, "q"),)),
        ("activity", {**S, "bytes": 12}, (ev.ActivitySeen("s", 5),)),
        ("judge.created", S, (ev.JudgeCreated("s", 5),)),
        ("dispose", {}, (ev.InstanceDisposed(5),)),
        ("something.new", {"a": 1}, ()),
        ("", {}, ()),
    ],
)
def test_events(kind: str, data: dict[str, Any], expected: tuple[ev.Event, ...]) -> None:
    """Each kind of the protocol, as object, bytes and raw JSON; unknown kinds and fields pass."""
    wire = json.dumps(data).encode()
    assert parse_event(kind, 5, data) == parse_event(kind, 5, wire) == parse_event(kind, 5, msgspec.Raw(wire))
    assert parse_event(kind, 5, data) == expected


@pytest.mark.shows("I46")
def test_a_long_title_ends_with_a_whole_word() -> None:
    """Secrets are found in what is kept, so no half of one is: and the title says that it was cut."""
    key = "sk-ant-api03-" + "k" * 80
    for words in (60, 81, 82, 99, 100, 780, 785, 799):
        title = "word " * words + key
        (seen,) = parse_event("session.updated", 5, {"info": {"id": "s", "title": title}})
        assert isinstance(seen, ev.SessionSeen)
        assert seen.title == title or set(seen.title.split()) == {"word", "…"}


@pytest.mark.shows("I36")
@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("session.idle", b"{}"),
        ("session.idle", b"[]"),
        ("session.idle", b"{"),
        ("session.idle", b'{"sessionID": 5}'),
        ("chat.message", b'{"sessionID": "s"}'),
        ("permission.asked", b'{"sessionID": "s"}'),
        ("permission.replied", b'{"sessionID": "s", "id": "q"}'),
    ],
)
def test_broken_events_say_why(kind: str, data: bytes) -> None:
    """A known kind without its ids raises ``BadReply``, with the kind in it, for the caller to log."""
    with pytest.raises(BadReply, match=kind):
        parse_event(kind, 1, data)


@pytest.mark.shows("I36")
@given(
    st.sampled_from(sorted(KINDS)),
    JSON | st.dictionaries(st.sampled_from(["sessionID", "id", "info", "error"]), JSON),
)
def test_any_event_is_read_or_refused(kind: str, data: Any) -> None:
    """No payload of a known kind raises anything but ``BadReply``."""
    try:
        found = parse_event(kind, 1, json.dumps(data).encode())
    except BadReply:
        return
    assert len(found) <= 1
