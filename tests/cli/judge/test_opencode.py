"""opencode's past sessions through a real daemon: what a plugin answers, and what it may answer wrongly."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from daemon import paths
from daemon.cli.judge.sessions import OLD, past_of
from daemon.core.errors import BadReply, Unavailable
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import Sandbox
from tests.support.hosts.wire import WireHost

Json = dict[str, Any]
NOW = int(time.time() * 1000)


@pytest.fixture
def daemon(box: Sandbox) -> Iterator[Daemon]:
    with Daemon(box) as running:
        yield running


def where(box: Sandbox) -> paths.Paths:
    return paths.resolve({"HOME": str(box.home)}, state_dir=str(box.state), socket=str(box.socket))


def host(daemon: Daemon, **answers: Callable[[Json], Any]) -> WireHost:
    """A plugin that answers orders of these kinds."""

    def answer(order: Json) -> Json:
        made = answers.get(order["kind"])
        return {"status": "done"} if made is None else {"status": "done", "data": made(order)}

    return WireHost(daemon.box.socket, daemon.box.project, answer)


def listed(order: Json) -> Json:
    """Three sessions, two on a page."""
    every = [f"{NOW + n:015d}:ses_{n}" for n in range(3)]
    rest = [mark for mark in every if mark > order["data"]["after"]]
    sessions = [{"session": {"id": m.partition(":")[2], "updated": int(m[:15])}} for m in rest[:2]]
    return {"sessions": sessions, "after": rest[1] if len(rest) > 1 else every[-1], "more": len(rest) > 2}


def test_page_by_page(box: Sandbox, daemon: Daemon) -> None:
    """Oldest first; what is older than wanted is not asked for; a session's messages come when asked for."""
    read: list[str] = []

    def messages(order: Json) -> Json:
        assert order["data"] == {"whole": True}
        read.append(order["session"])
        asked = {"info": {"id": "m1", "role": "user"}, "parts": [{"type": "text", "text": "Go"}]}
        done = {"info": {"id": "m2", "role": "assistant", "finish": "stop"}, "parts": []}
        return {"whole": True, "session": {}, "messages": [asked, done]}

    with host(daemon, history=listed, read=messages) as there:
        found = past_of(where(box))
        assert [p.name for p in found] == ["opencode:ses_0", "opencode:ses_1", "opencode:ses_2"]
        assert all(o["data"]["listed"] for o in there.orders if o["kind"] == "history")
        assert [p.name for p in past_of(where(box), NOW + 2)] == ["opencode:ses_2"]
        assert read == []
        (stop,) = found[1].read()
    assert (read, stop.transcript.session) == (["ses_1"], "ses_1")


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        ({"messages": []}, Unavailable, OLD),
        ({"whole": True, "messages": {}}, BadReply, "no list of messages"),
        (7, BadReply, "no session"),
    ],
)
def test_what_is_no_session(
    box: Sandbox, daemon: Daemon, answer: object, error: type[Exception], words: str
) -> None:
    """A plugin of an older version, and one that answers nonsense. Without an opencode there is none, and one
    that was deleted meanwhile has no stops.
    """
    assert past_of(where(box)) == []
    with host(daemon, history=listed, read=lambda _: answer):
        past = past_of(where(box))[0]
        with pytest.raises(error, match=words):
            list(past.read())
    with host(daemon, history=listed, read=lambda _: {"missing": True}):
        assert list(past_of(where(box))[0].read()) == []
    with host(daemon, history=lambda _: {"sessions": 3}), pytest.raises(Unavailable, match="no list"):
        past_of(where(box))
    daemon.stop()
    assert past_of(where(box)) == []
