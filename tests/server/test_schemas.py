"""The bodies of the socket API against ``design/schemas``, by a real daemon on a real socket."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, get_args

import aiohttp
import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from daemon import config, paths
from daemon.app import Daemon
from daemon.core.orders import (
    CallOrder,
    CancelOrder,
    DeleteSessions,
    ReadHistory,
    ReadMessages,
    ReadProviders,
    RenewContext,
    RunJudge,
    SendFeedback,
    ShowToast,
    StoredOrder,
)
from daemon.core.transcript import Model
from daemon.hosts.opencode.orders import order_object, wire_order
from daemon.store.ledger import By

REPO = Path(__file__).resolve().parents[2]
SCHEMAS = {
    path.name.partition(".")[0]: json.loads(path.read_text("utf-8"))
    for path in (REPO / "design" / "schemas").glob("*.schema.json")
}
VERDICT = json.loads((REPO / ".reflection" / "schemas" / "verdict.schema.json").read_text("utf-8"))
REGISTRY: Registry[Any] = Registry().with_resources(
    [(s["$id"], Resource.from_contents(s)) for s in SCHEMAS.values()]
)
Json = dict[str, Any]


def validator(name: str, part: str = "") -> Any:
    """For a body, or for one of the schema's ``$defs``."""
    ref = SCHEMAS[name]["$id"] + (f"#/$defs/{part}" if part else "")
    return Draft202012Validator({"$ref": ref}, registry=REGISTRY)


class Server:
    """A daemon and one client; ``post`` gives (status, body)."""

    def __init__(self, daemon: Daemon, client: aiohttp.ClientSession, folder: Path) -> None:
        self.daemon, self.client, self.folder = daemon, client, folder

    async def call(self, method: str, route: str, body: object = None) -> tuple[int, Json]:
        data = None if body is None else json.dumps(body)
        async with self.client.request(method, f"http://reflectd/v1/{route}", data=data) as response:
            return response.status, await response.json()

    async def hello(self) -> None:
        assert (await self.call("POST", "hello", HELLO))[0] == 200


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    """In a folder with a short name: a socket path is under 104 bytes."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rd-")))
        where = paths.resolve({"HOME": str(folder)})
        daemon = Daemon(config.from_text('[judge]\nprovider = "offline"'), where)
        ready = asyncio.Event()
        serving = asyncio.create_task(daemon.serve(ready.set))
        await ready.wait()
        connector = aiohttp.UnixConnector(str(where.socket))
        client = await stack.enter_async_context(aiohttp.ClientSession(connector=connector))
        yield Server(daemon, client, folder)
        daemon.stopping.set()
        await serving


HELLO = {"api": 1, "instance": "i-1", "host": "opencode", "mode": "serve", "pid": 7, "directory": "/p"}
EVENT = {"seq": 1, "t": 1_760_000_000_000, "kind": "session.idle", "data": {"sessionID": "ses_a"}}
RESULT = {"instance": "i-1", "id": "x-1", "status": "done"}
ASK = {"instance": "i-1", "what": "gate", "data": {"sessionID": "s", "messageID": "m", "text": "Done."}}


def events(*batch: object) -> Json:
    return {"instance": "i-1", "events": list(batch)}


GOOD: list[tuple[str, object]] = [
    ("hello", HELLO),
    ("hello", {k: v for k, v in HELLO.items() if k != "api"}),
    ("hello", {**HELLO, "mode": "run", "version": "0.1.0", "debug": True}),
    ("hello", {**HELLO, "instance": "i" * 200}),
    ("events", events()),
    ("events", events(EVENT)),
    ("events", events({**EVENT, "kind": "from.the.future", "data": {"new": [1, None]}})),
    ("events", events({"seq": 2, "t": 0, "kind": "dispose"})),
    ("events", events({**EVENT, "data": "out of form: skipped, not refused"})),
    ("events", events(*[EVENT] * 500)),
    ("results", RESULT),
    ("results", {**RESULT, "status": "stale", "error": "busy"}),
    ("results", {**RESULT, "status": "failed", "data": None}),
    ("results", {**RESULT, "data": {"missing": True}}),
    ("ask", ASK),
    ("ask", {"instance": "i-1", "what": "settle"}),
    ("ask", {**ASK, "data": {}}),
    ("ask", {**ASK, "data": {"sessionID": "s", "newer": 1}}),
    ("switch", {"on": False, "session": "ses_a"}),
    ("switch", {"on": True, "directory": "/p"}),
    ("switch", {"on": True, "directory": "/p", "session": ""}),
]
BAD: list[tuple[str, object, str]] = [
    ("hello", {**HELLO, "api": 2}, "api"),
    ("hello", {**HELLO, "host": "vim"}, "host"),
    ("hello", {**HELLO, "mode": "gui"}, "mode"),
    ("hello", {**HELLO, "pid": "7"}, "pid"),
    ("hello", {**HELLO, "pid": 1.5}, "pid"),
    ("hello", {**HELLO, "pid": None}, "pid"),
    ("hello", {**HELLO, "directory": 1}, "directory"),
    ("hello", {**HELLO, "directory": "p"}, "absolute"),
    ("hello", {**HELLO, "instance": ""}, "instance"),
    ("hello", {**HELLO, "instance": "i" * 201}, "instance"),
    ("hello", {**HELLO, "debug": 1}, "debug"),
    ("hello", {**HELLO, "directry": "/p"}, "`directory`"),
    ("hello", {**HELLO, "Instance": "x"}, "`instance`"),
    ("hello", {**HELLO, "zzzzzz": 1}, "Known: "),
    ("hello", {k: v for k, v in HELLO.items() if k != "pid"}, "pid"),
    ("hello", [HELLO], "object"),
    ("hello", "hello", "object"),
    ("events", {"instance": "i-1"}, "events"),
    ("events", {"events": [EVENT]}, "instance"),
    ("events", {"instance": 1, "events": []}, "instance"),
    ("events", {"instance": "i-1", "events": EVENT}, "events"),
    ("events", events({**EVENT, "seq": "1"}), "seq"),
    ("events", events({**EVENT, "seq": True}), "seq"),
    ("events", events({**EVENT, "t": 1.5}), ".t"),
    ("events", events({**EVENT, "kind": None}), "kind"),
    ("events", events({**EVENT, "kid": "x"}), "`kind`"),
    ("events", events({"seq": 1, "kind": "dispose"}), "`t`"),
    ("events", events("x"), "object"),
    ("events", events(*[EVENT] * 501), "500"),
    ("results", {"instance": "i-1", "id": "x-1"}, "status"),
    ("results", {**RESULT, "status": "ok"}, "status"),
    ("results", {**RESULT, "id": 1}, "id"),
    ("results", {**RESULT, "error": None}, "error"),
    ("results", {**RESULT, "note": ""}, "note"),
    ("ask", {"instance": "i-1"}, "what"),
    ("ask", {**ASK, "what": "why"}, "what"),
    ("ask", {**ASK, "data": None}, "data"),
    ("ask", {**ASK, "data": {"text": 1}}, "text"),
    ("ask", {**ASK, "data": {"sessionID": "s" * 201}}, "sessionID"),
    ("ask", {**ASK, "data": {"messageID": "m" * 201}}, "messageID"),
    ("ask", {**ASK, "wait": 1}, "wait"),
    ("switch", {"on": False}, "either"),
    ("switch", {"session": "ses_a"}, "on"),
    ("switch", {"on": "no", "session": "ses_a"}, "on"),
    ("switch", {"on": True, "session": ""}, "either"),
    ("switch", {"on": True, "session": "ses_a", "directory": "/p"}, "either"),
    ("switch", {"on": True, "directory": "p"}, "absolute"),
    ("switch", {"on": True, "sesion": "ses_a"}, "`session`"),
]


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_schemas_are_draft_2020_12(name: str) -> None:
    """And each has the id by which the others may name it."""
    schema = SCHEMAS[name]
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == Draft202012Validator.META_SCHEMA["$id"]
    assert schema["$id"] == f"reflectd/{name}.schema.json"


async def test_the_daemon_takes_what_the_schemas_allow_and_nothing_else(server: Server) -> None:
    """Good bodies are answered 200 with an answer of the agreed form, bad ones 400 with words that help."""
    for route, body, words in [*((*row, None) for row in GOOD), *BAD]:
        await server.hello()
        status, found = await server.call("POST", route, body)
        said = f"{route} {str(body)[:200]}: {found}"
        assert status == (200 if words is None else 400), said
        assert validator(route).is_valid(body) is (words is None), said
        part = "answer" if route != "ask" or words is not None else body["what"]  # type: ignore[index,call-overload]
        (validator(route, part) if words is None else validator("refusal")).validate(found)
        assert (words or "") in found.get("error", ""), said


ORDERS: list[CallOrder | StoredOrder] = [
    ShowToast("ses_a", "Task complete", "success"),
    SendFeedback("ses_a", "msg_1", "msg_2", "## Reflection-3: Task Incomplete (HIGH)"),
    SendFeedback("ses_a", "msg_1", "msg_2", "go on", agent="build", model=Model("acme", "m1")),
    ReadMessages("ses_a"),
    RunJudge("ses_a", "system", "text", Model("acme", "m1"), 60_000),
    RunJudge("ses_a", "system", "text", None, 60_000),
    CancelOrder("boot-1"),
    DeleteSessions(("ses_j",)),
    RenewContext("ses_a"),
    ReadHistory("", 20),
    ReadProviders(),
]


@pytest.mark.parametrize("order", ORDERS, ids=lambda o: type(o).__name__)
def test_every_order_has_the_agreed_form(order: CallOrder | StoredOrder) -> None:
    """What ``hosts.opencode.orders`` makes of an order validates, as an object and as a line."""
    found = order_object("rfl_1", order)
    validator("order").validate(found)
    assert json.loads(wire_order("rfl_1", order)) == found
    assert not validator("order").is_valid({**found, "kind": "shell"})
    assert not validator("order").is_valid({**found, "data": {**found["data"], "command": "ls"}})


async def test_what_the_daemon_says_has_the_agreed_form(server: Server) -> None:
    """Each line of the two streams, and each page about a session that was judged."""
    workspace = server.folder / "work"
    workspace.mkdir()
    assert (await server.call("POST", "hello", {**HELLO, "directory": str(workspace)}))[0] == 200
    get = server.client.get
    async with (
        get("http://reflectd/v1/orders", params={"instance": "i-1"}) as orders,
        get("http://reflectd/v1/stream", params={"session": "ses", "directory": str(workspace)}) as stream,
    ):
        await orders.content.readline()
        assert await stream.content.readline() == b"\n"
        info = {"sessionID": "ses_a", "info": {"id": "ses_a", "title": "t", "directory": str(workspace)}}
        told = [
            ("session.created", info),
            ("chat.message", {"sessionID": "ses_a", "messageID": "msg_1", "human": True}),
            ("session.idle", {"sessionID": "ses_a"}),
        ]
        now = server.daemon.clock.now_ms()
        batch = [{"seq": n, "t": now, "kind": k, "data": d} for n, (k, d) in enumerate(told, 1)]
        assert (await server.call("POST", "events", events(*batch)))[0] == 200
        lines: list[Json] = []
        for kind in ("read", "feedback"):
            order = json.loads(await orders.content.readline())
            validator("order").validate(order)
            assert order["kind"] == kind
            result = {"instance": "i-1", "id": order["id"], "status": "done", "data": READ}
            assert (await server.call("POST", "results", result))[0] == 200
        while not lines or lines[-1]["kind"] != "verdict":
            lines.append(json.loads(await stream.content.readline()))
        skip = {
            "session": "ses_a",
            "directory": str(workspace),
            "guard": "busy",
            "reason": "it works",
            "at": 1,
        }
        server.daemon.world.stream.publish("skip", skip)
        lines.append(json.loads(await stream.content.readline()))
    for line in lines:
        validator("stream").validate(line)
        if line["kind"] != "skip":
            ours = {"api", "kind", "at", "title", "directory", "feedback_sent"}
            Draft202012Validator(VERDICT).validate({k: v for k, v in line.items() if k not in ours})
    said = [(line["kind"], line["directory"], line.get("feedback_sent")) for line in lines]
    where = str(workspace)
    assert said == [("judging", where, False), ("verdict", where, True), ("skip", where, None)]
    await server.daemon.engine.filing.drain()
    for route in ("status", "line", "sessions", "verdicts"):
        status, found = await server.call("GET", route)
        assert status == 200
        validator(route).validate(found)
        assert found.get(route, True), f"{route} says nothing"
    (verdict,) = found["verdicts"]
    for added in ("directory", "title", "feedback_sent"):
        del verdict[added]
    Draft202012Validator(VERDICT).validate(verdict)
    for ask in ("", "?session=ses_a", "?session=s", f"?directory={workspace}", "?directory=/elsewhere"):
        status, found = await server.call("GET", f"why{ask}")
        assert status == 200
        validator("why").validate(found)
        assert found["session"]["session"] == "ses_a"
        assert found["guard"] == skip
        assert found["verdicts"][0]["order"]["status"] == "done"
        assert found["ledger"]["sums"]["rules"] == 1
        assert [Path(p).parent for p in found["cases"]] == [workspace / ".reflection"]
    for ask in ("?session=s", f"?directory={workspace}", f"?directory={workspace / 'a'}"):
        status, found = await server.call("GET", f"line{ask}")
        assert status == 200
        validator("line").validate(found)
        assert (found["session"], found["state"], found["round"]) == ("ses_a", "incomplete", 1)
    asked: list[Json] = [
        {},
        {"session": "s"},
        {"directory": str(workspace / "a" / "b")},
        {"since": 1, "limit": 1},
    ]
    for query in asked:
        found = json.loads(json.dumps(await server.daemon.status.history(**query)))
        validator("history").validate(found)
        assert [(s["session"], len(s["rounds"])) for s in found["sessions"]] == [("ses_a", 1)]
    assert (await server.daemon.status.history(directory="/elsewhere") or {})["sessions"] == []
    for by in (None, *get_args(By)):
        found = json.loads(json.dumps(await server.daemon.status.ledger("", 0, 50, by)))
        validator("ledger").validate(found)
        assert [r["session"] for r in found["rows"]] == ["ses_a"]
        assert [g["calls"] for g in found["groups"]] == ([1] if by else [])


@pytest.mark.parametrize(
    ("route", "status"),
    [
        ("why", 404),
        ("why?session=nobody", 404),
        ("why?directory=relative", 400),
        ("why?session=ses_", 400),
        ("why?session=ses_one&round=1", 400),
        ("why?session=ses_one&round=x", 400),
        ("line?directory=relative", 400),
        ("stream?directory=relative", 400),
    ],
)
async def test_odd_questions_are_refused_in_words(server: Server, route: str, status: int) -> None:
    """Unknown is 404; several sessions that begin alike are 400 and are named."""
    await server.hello()
    for n, session in enumerate(("ses_one", "ses_two"), 1):
        wire = {"seq": n, "t": 1, "kind": "session.status"}
        data = {"sessionID": session, "status": {"type": "busy"}}
        assert (await server.call("POST", "events", events({**wire, "data": data})))[0] == 200
    found, body = await server.call("GET", route)
    assert found == status, body
    validator("refusal").validate(body)
    if route.endswith("ses_"):
        assert "ses_one, ses_two" in body["error"]


FAILED = {"status": "completed", "input": {"command": "pytest -q"}, "output": "1 failed in 0.1s", "exit": 1}
WRITTEN = {"status": "completed", "input": {"filePath": "a.py"}, "output": "ok"}
READ = {
    "missing": False,
    "busy": False,
    "session": {"id": "ses_a", "title": "t"},
    "todos": [],
    "messages": [
        {
            "info": {"id": "msg_1", "role": "user", "time": {"created": 1}},
            "parts": [{"type": "text", "id": "p1", "text": "Fix the login"}],
        },
        {
            "info": {"id": "msg_2", "role": "assistant", "finish": "stop", "time": {"created": 2}},
            "parts": [
                {"type": "tool", "id": "p2", "callID": "c1", "tool": "write", "state": WRITTEN},
                {"type": "tool", "id": "p3", "callID": "c2", "tool": "bash", "state": FAILED},
                {"type": "text", "id": "p4", "text": "Done."},
            ],
        },
    ],
}
