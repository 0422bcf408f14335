"""opencode's past sessions, asked for through the daemon: page by page, and only then."""

from __future__ import annotations

from typing import Any

import pytest

from harness.machine.reflectd import Daemon
from harness.machine.sandbox import Sandbox
from tests.cli.reflect.past import asked
from tests.support.hosts.wire import WireHost

Json = dict[str, Any]


def session(name: str, *said: tuple[str, str]) -> Json:
    messages = []
    for i, (role, text) in enumerate(said):
        info = {"id": f"{name}-{i}", "role": role, "time": {"created": i}}
        messages.append({"info": info, "parts": [{"type": "text", "id": f"p{i}", "text": text}]})
    return {"session": {"id": name, "title": name, "directory": "/p", "updated": 5}, "messages": messages}


@pytest.mark.shows("I36")
@pytest.mark.parametrize(
    "data",
    [None, {}, {"sessions": 1}, {"sessions": [{"session": 1}, "x"], "after": "", "more": True}],
    ids=repr,
)
def test_an_odd_answer_ends_it(box: Sandbox, data: Json | None) -> None:
    """Never an endless loop, whatever comes; odd sessions are left out."""

    def answer(order: Json) -> Json | None:
        return {"status": "done", "data": data} if order["kind"] == "history" else None

    with Daemon(box), WireHost(box.socket, box.project, answer):
        found = asked(box)
    fine = bool(data and isinstance(data.get("sessions"), list))
    assert (found["candidates"], any("no list of sessions" in t for t in found["told"])) == ([], not fine)


ALWAYS = "No, always use bun instead of npm."


class Opencode:
    """The order `history` of an opencode: one session on each page, those behind ``after`` only."""

    def __init__(self) -> None:
        self.talks: dict[str, Json] = {}
        self.asked: list[str] = []
        self.fails = False

    def said(self, mark: str, *words: str) -> None:
        turns = [
            turn for word in words for turn in (("assistant", "I installed it with npm."), ("user", word))
        ]
        self.talks[mark] = session(f"ses_{mark[:3]}", *turns)

    def __call__(self, order: Json) -> Json | None:
        if order["kind"] != "history":
            return None
        after = order["data"]["after"]
        self.asked.append(after)
        rest = sorted(mark for mark in self.talks if mark > after)
        if self.fails and len(self.asked) > 1:
            return {"status": "failed", "error": "the disk is gone"}
        sessions = [self.talks[mark] for mark in rest[:1]]
        return {
            "status": "done",
            "data": {"sessions": sessions, "after": rest[0] if rest else after, "more": len(rest) > 1},
        }


@pytest.mark.shows("FR1", "RULES-11")
def test_a_scan_reads_them_once_and_goes_on_where_it_stopped(box: Sandbox) -> None:
    """Page by page; what was read is not asked for again; a session that is used again counts once."""
    opencode = Opencode()
    opencode.said("001:a", ALWAYS)
    opencode.said("002:b", "thanks", ALWAYS)
    with Daemon(box), WireHost(box.socket, box.project, opencode):
        first = asked(box)
        assert (opencode.asked, first["read"]["sessions"], first["read"]["messages"]) == (["", "001:a"], 2, 3)
        assert sessions(first) == 2
        assert asked(box)["read"]["messages"] == 0
        assert opencode.asked[2:] == ["002:b"]
        opencode.talks["003:b"] = opencode.talks.pop("002:b")
        opencode.said("004:c", ALWAYS)
        last = asked(box)
        assert opencode.asked[3:] == ["002:b", "003:b"]
    assert sessions(last) == 3


def sessions(found: Json) -> int:
    """In how many sessions the person said it."""
    return next(int(c["sessions"]) for c in found["candidates"] if c["text"] == ALWAYS)


def test_one_that_fails_half_way_loses_nothing(box: Sandbox) -> None:
    """What came is counted, the failure is told, and the next scan goes on behind it."""
    opencode = Opencode()
    opencode.said("001:a", ALWAYS)
    opencode.said("002:b", ALWAYS)
    opencode.fails = True
    with Daemon(box), WireHost(box.socket, box.project, opencode):
        found = asked(box)
        assert [line for line in found["told"] if "the disk is gone" in line], found
        assert sessions(found) == 1
        opencode.fails = False
        opencode.asked.clear()
        assert sessions(asked(box)) == 2
    assert opencode.asked == ["001:a"]
