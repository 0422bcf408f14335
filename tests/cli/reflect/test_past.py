"""opencode's past sessions, asked for through the daemon: page by page, and only then."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from daemon import paths
from daemon.cli.reflect.past import pages
from daemon.core.errors import Unavailable
from harness.machine.reflectd import Daemon
from tests.support.hosts.wire import WireHost

if TYPE_CHECKING:
    from harness.machine.sandbox import Sandbox

Json = dict[str, Any]


def session(name: str, *said: tuple[str, str]) -> Json:
    messages = [
        {
            "info": {"id": f"{name}-{i}", "role": role, "time": {"created": i}},
            "parts": [{"type": "text", "id": f"p{i}", "text": text}],
        }
        for i, (role, text) in enumerate(said)
    ]
    return {"session": {"id": name, "title": name, "directory": "/p", "updated": 5}, "messages": messages}


def where(box: Sandbox) -> paths.Paths:
    return paths.resolve(os.environ, state_dir=str(box.state), socket=str(box.socket))


def test_all_pages_are_read_and_odd_sessions_left_out(box: Sandbox) -> None:
    """FR1, I36: human messages with the agent's words before them; the mark for the next scan."""
    talk = session("ses_1", ("user", "Set it up"), ("assistant", "With npm?"), ("user", "No, use bun"))
    told: dict[str, Json] = {
        "": {"sessions": [talk, {"session": 1}, "x"], "after": "005:ses_1", "more": True},
        "005:ses_1": {"sessions": [session("ses_2")], "after": "006:ses_2", "more": False},
    }

    def answer(order: Json) -> Json | None:
        return (
            {"status": "done", "data": told[order["data"]["after"]]} if order["kind"] == "history" else None
        )

    with Daemon(box), WireHost(box.socket, box.project, answer) as host:
        found = list(pages(where(box), box.project))
        assert [page.after for page in found] == ["005:ses_1", "006:ses_2"]
        first, second = (t for page in found for t in page.sessions)
        assert [(m.human, m.text) for m in first.messages] == [
            (True, "Set it up"),
            (False, "With npm?"),
            (True, "No, use bun"),
        ]
        assert (second.session, second.messages) == ("ses_2", ())
        assert host.kinds("providers") == ["history", "history"]
        assert [page.after for page in pages(where(box), box.project, "005:ses_1")] == ["006:ses_2"]


@pytest.mark.parametrize(
    "data", [None, {}, {"sessions": 1}, {"sessions": [], "after": "", "more": True}], ids=repr
)
def test_an_odd_answer_ends_it(box: Sandbox, data: Json | None) -> None:
    """Never an endless loop, whatever comes."""

    def answer(order: Json) -> Json | None:
        return {"status": "done", "data": data} if order["kind"] == "history" else None

    with Daemon(box), WireHost(box.socket, box.project, answer):
        if data and isinstance(data.get("sessions"), list):
            assert len(list(pages(where(box), box.project))) == 1
        else:
            with pytest.raises(Unavailable, match="no list of sessions"):
                list(pages(where(box), box.project))


def test_without_an_opencode_it_says_so(box: Sandbox) -> None:
    """And without a daemon."""
    with pytest.raises(Unavailable, match="no daemon answers"):
        list(pages(where(box), box.project))
    with Daemon(box), pytest.raises(Unavailable, match="no opencode is open in"):
        list(pages(where(box), box.project))
