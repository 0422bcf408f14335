"""What anyone may send to the real socket of the real daemon: it says what is wrong and goes on serving."""

from __future__ import annotations

import contextlib
import json
import socket

import pytest

from daemon.clock import SystemClock
from daemon.learning.rules.learned_rules import LearnedRules
from harness.machine.reflectd import Daemon
from harness.machine.waiting import PATIENCE_S, wait_until
from tests.server.asking import BATCH, HELLO, batch, clean, event, fine, hello, refused
from tests.support.hosts.wire import Json, WireHost, raw, send, unfinished
from tests.support.hosts.witness import a_later_host


@pytest.mark.parametrize(
    "session",
    [
        "",
        "../../../../tmp/evil",
        "/etc/passwd",
        "..",
        ".",
        "a" * 10_000,
        "nul\0inside",
        "line\nbreak",
        "\x1b[31mred",
        "💥" * 50,
        "\ud800",
        "%s%n",
        "'; DROP TABLE sessions; --",
        "verdict_x",
    ],
    ids=ascii,
)
def test_hostile_session_ids(daemon: Daemon, session: str) -> None:
    """Bad input: any text may be a session id; nothing leaves the folder, breaks the log or the store."""
    before = fine(daemon, "POST", "/v1/events", BATCH)["seq"]
    answers = unfinished(daemon.box.project)
    with WireHost(daemon.box.socket, daemon.box.project, answers, instance="known") as host:
        host.seq = before
        assert host.send(host.turn(session)).status == 200
        if 0 < len(session) <= 200:
            wait_until(lambda: "feedback" in host.kinds(), "feedback", daemon.log)
        wait_until(lambda: send(daemon.box.socket, "GET", "/v1/sessions").status == 200)
    allowed = {daemon.box.project / ".reflection", daemon.box.project / ".git"}
    outside = [p for p in daemon.box.project.iterdir() if p not in allowed and p.name != "Makefile"]
    assert not outside
    assert "\x1b[31m" not in daemon.new_log()


@pytest.mark.shows("I35")
def test_events_out_of_order_and_again(daemon: Daemon) -> None:
    """A batch is folded by ``seq``; what came before is ignored, alone or mixed with new events."""
    hello(daemon, "order")
    busy = event("session.status", 2, sessionID="ses_order", status={"type": "busy"})
    idle = event("session.idle", 3, sessionID="ses_order")
    made = event("session.created", 1, sessionID="ses_order", info={"id": "ses_order", "title": "one"})
    assert fine(daemon, "POST", "/v1/events", batch(idle, made, busy, instance="order"))["seq"] == 3
    assert daemon.session("ses_order")["busy"] is False
    late = event("session.status", 2, sessionID="ses_order", status={"type": "busy"})
    assert fine(daemon, "POST", "/v1/events", batch(late, made, instance="order"))["seq"] == 3
    assert daemon.session("ses_order")["busy"] is False
    again = event("session.status", 4, sessionID="ses_order", status={"type": "busy"})
    assert fine(daemon, "POST", "/v1/events", batch(again, late, instance="order"))["seq"] == 4
    assert daemon.session("ses_order")["busy"] is True


def test_events_for_sessions_never_seen(daemon: Daemon) -> None:
    """Bad input: an event for an unknown session makes it known, a late deletion too."""
    hello(daemon, "late")
    kinds = ["session.idle", "session.deleted", "permission.replied", "session.compacted", "message.error"]
    events = [
        event(kind, n + 1, sessionID=f"ses_never_{n}", requestID="r", messageID="m", error={"name": "E"})
        for n, kind in enumerate(kinds)
    ]
    assert fine(daemon, "POST", "/v1/events", batch(*events, instance="late"))["seq"] == len(kinds)
    assert daemon.session("ses_never_0")["phase"] == "open"


@pytest.mark.parametrize(
    ("method", "route", "body"),
    [
        ("POST", "/v1/events", {"instance": "nobody", "events": []}),
        ("POST", "/v1/ask", {"instance": "nobody", "what": "settle"}),
        ("POST", "/v1/results", {"instance": "nobody", "id": "x", "status": "done"}),
        ("GET", "/v1/orders?instance=nobody", None),
        ("GET", "/v1/orders", None),
        ("GET", "/v1/orders?instance=%ff%00%ed%a0%80", None),
        ("GET", "/v1/orders?instance=" + "x" * 5000, None),
    ],
)
def test_an_unknown_instance_is_told_to_say_hello(
    daemon: Daemon, method: str, route: str, body: Json | None
) -> None:
    """Bad input: 409 for an instance that this daemon never heard of, so that a shim says hello again."""
    assert "hello" in refused(daemon, 409, method, route, body)


def test_a_process_id_that_no_system_has_is_refused(daemon: Daemon) -> None:
    """Bad input: nobody could ask whether that process runs, and the look at all hosts would end there."""
    assert "pid" in refused(daemon, 400, "POST", "/v1/hello", HELLO | {"instance": "far", "pid": 2**31})


def test_the_first_preference_reaches_a_process_that_runs(daemon: Daemon) -> None:
    """Within a second events are refused once: the shim says hello again and hears that it is to ask."""
    project = daemon.box.root / "first"
    project.mkdir()
    here = HELLO | {"instance": "noon", "directory": str(project)}
    assert fine(daemon, "POST", "/v1/hello", here)["state"]["context"] is False
    info = {"id": "ses_noon", "title": "one", "directory": str(project)}
    one = batch(event("session.created", 1, sessionID="ses_noon", info=info), instance="noon")
    assert fine(daemon, "POST", "/v1/events", one)["seq"] == 1
    rules = LearnedRules(project, daemon.box.state, SystemClock(), daemon.box.env())
    rules.learn("Prefer short answers", soft=True)
    two = batch(event("session.idle", 2, sessionID="ses_noon"), instance="noon")

    def told() -> str:
        answer = send(daemon.box.socket, "POST", "/v1/events", two)
        return "" if answer.status == 200 else str(answer.json["error"])

    assert "say hello again" in wait_until(told, "the refusal")
    assert fine(daemon, "POST", "/v1/hello", here)["state"]["context"] is True
    assert fine(daemon, "POST", "/v1/events", two)["seq"] == 2
    asked = {"instance": "noon", "what": "context", "data": {"sessionID": "ses_noon"}}
    assert "- Prefer short answers" in fine(daemon, "POST", "/v1/ask", asked)["text"]


@pytest.mark.shows("I36")
@pytest.mark.parametrize(
    "data",
    [
        None,
        {},
        [],
        "text",
        7,
        {"messages": {}},
        {"messages": "x", "session": 5, "todos": {}},
        {"messages": [None, 5, {}, {"info": 1}, {"info": {"id": "m", "role": "assistant"}, "parts": {}}]},
        {"missing": True},
        {"busy": "yes"},
    ],
    ids=str,
)
def test_a_read_that_makes_no_sense(daemon: Daemon, data: object) -> None:
    """Whatever a host answers to ``read``, nobody is prompted and the daemon goes on."""
    name = f"read-{abs(hash(str(data)))}"
    asked = {"status": "done", "data": data}
    with WireHost(daemon.box.socket, daemon.box.project, lambda _: asked, instance=name) as host:
        assert host.send(host.turn(f"ses_{name}")).status == 200
        wait_until(lambda: f"ses_{name}" in {o["session"] for o in host.orders}, "read", daemon.log)
        a_later_host(daemon)
        assert "feedback" not in host.kinds()


@pytest.mark.shows("I5")
def test_results_that_come_twice(daemon: Daemon) -> None:
    """Bad input: an order answered twice, then otherwise, then by another host, counts once."""
    answer = unfinished(daemon.box.project)
    with WireHost(daemon.box.socket, daemon.box.project, answer, instance="twice") as host:
        host.send(host.turn("ses_twice"))
        wait_until(lambda: "feedback" in host.kinds(), "feedback", daemon.log)
        daemon.wait_verdict("ses_twice", "incomplete")
        for order in list(host.orders):
            for status in ("done", "stale", "failed"):
                body = {"instance": "known", "id": order["id"], "status": status, "data": {"missing": True}}
                assert fine(daemon, "POST", "/v1/results", body) == {"api": 1}
        assert daemon.session("ses_twice")["attempts"] == 1
        assert [v["state"] for v in daemon.verdicts("ses_twice")] == ["incomplete"]


@pytest.mark.parametrize(
    ("status", "method", "route"),
    [
        (404, "GET", "/"),
        (404, "GET", "/v1"),
        (404, "GET", "/v2/status"),
        (404, "GET", "/v1/status/"),
        (404, "POST", "/v1/../../etc/passwd"),
        (404, "GET", "/%00%ff"),
        (405, "GET", "/v1/hello"),
        (405, "PUT", "/v1/events"),
        (405, "DELETE", "/v1/sessions"),
        (405, "POST", "/v1/status"),
        (405, "HEAD", "/v1/status"),
        (405, "OPTIONS", "/v1/events"),
        (400, "GET", "/v1/verdicts?limit=0"),
        (400, "GET", "/v1/verdicts?limit=501"),
        (400, "GET", "/v1/verdicts?limit=-1"),
        (400, "GET", "/v1/verdicts?limit=x"),
        (400, "GET", "/v1/sessions?limit=0000019999"),
        (400, "GET", "/v1/sessions?limit=000001" + "9" * 5000),
        (400, "GET", "/v1/features/playbook/points?directory=%00"),
    ],
)
def test_wrong_routes_methods_and_queries(daemon: Daemon, status: int, method: str, route: str) -> None:
    """Bad input: 404, 405 and 400 are JSON too and name the API version."""
    if method == "HEAD":
        assert send(daemon.box.socket, method, route).status == status
    else:
        assert refused(daemon, status, method, route)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://localhost"},
        {"Origin": "null"},
        {"Host": "evil.example"},
        {"Host": "127.0.0.1:80"},
        {"Host": "reflectd.evil.example"},
        {"Host": "localhost@evil.example"},
    ],
    ids=str,
)
@pytest.mark.parametrize("route", ["/v1/status", "/v1/nothing"])
def test_web_pages_are_refused(daemon: Daemon, headers: dict[str, str], route: str) -> None:
    """An ``Origin`` or a foreign ``Host`` is refused on every route, before anything is done."""
    answer = clean(send(daemon.box.socket, "GET", route, headers=headers))
    assert answer.status == 403
    assert answer.json["api"] == 1


@pytest.mark.parametrize(
    "data",
    [
        b"\x00" * 4096,
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 64 + b"\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /v1/status\r\n\r\n",
        b"GET /v1/status HTTP/9.9\r\n\r\n",
        b"GET /v1/status HTTP/1.1\r\nHost reflectd\r\n\r\n",
        b"GET /v1/status HTTP/1.1\r\nHost: reflectd\r\nHost: evil\r\n\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: reflectd\r\n\r\n",
        b"GET /v1/status HTTP/1.1\r\nHost: reflectd\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
        b"POST /v1/hello HTTP/1.1\r\nHost: reflectd\r\nContent-Length: -5\r\n\r\n{}",
        b"POST /v1/hello HTTP/1.1\r\nHost: reflectd\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        b"POST /v1/hello HTTP/1.1\r\nHost: reflectd\r\nContent-Length: 2\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /v1/hello HTTP/1.1\r\nHost: reflectd\r\nTransfer-Encoding: chunked\r\n\r\nzzz\r\n",
        b"POST /v1/hello HTTP/1.1\r\nHost: reflectd\r\nContent-Encoding: gzip\r\n"
        b"Content-Length: 4\r\n\r\nabcd",
        b"CONNECT a:1 HTTP/1.1\r\nHost: reflectd\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
    ids=lambda b: repr(b[:60]),
)
def test_http_garbage(daemon: Daemon, data: bytes) -> None:
    """Bad input: what is no HTTP gets a refusal or a closed connection, and no trace in the log."""
    answer = clean(raw(daemon.box.socket, data))
    assert answer.status == 0 or 400 <= answer.status < 500


@pytest.mark.parametrize(
    ("expect", "status"),
    [(b"\xff", 417), (b"\xf0\x9f\x92\xa9", 417), (b"200-ok", 417), (b"100-CONTINUE", 200)],
)
def test_what_a_client_expects(daemon: Daemon, expect: bytes, status: int) -> None:
    """Bad input: an expectation that is not understood is refused with words, whatever its bytes are."""
    head = b"GET /v1/status HTTP/1.1\r\nHost: reflectd\r\nExpect: %s\r\n\r\n" % expect
    answer = clean(raw(daemon.box.socket, head))
    assert answer.status == status
    assert answer.json["api"] == 1


@pytest.mark.shows("I44")
def test_huge_texts_are_not_kept(daemon: Daemon) -> None:
    """Of a title of megabytes the first words are kept, and ids that long are none."""
    huge = "x" * 2_000_000
    words = "a title " * 250_000
    hello(daemon, "huge")
    info = {"id": "ses_huge", "title": words, "parentID": huge, "directory": "/" + huge}
    fine(daemon, "POST", "/v1/events", batch(event("session.updated", info=info), instance="huge"))
    said = event("chat.message", 2, sessionID="ses_huge", messageID=huge, human=True)
    fine(daemon, "POST", "/v1/events", batch(said, instance="huge"))
    found = daemon.session("ses_huge")
    assert found["title"] == "a title " * 62 + "a …"
    assert (found["directory"], found["task"]) == (str(daemon.box.project), "")
    long = {"directory": "/" + huge}
    assert "4096" in refused(daemon, 400, "POST", "/v1/hello", HELLO | long)
    assert "4096" in refused(daemon, 400, "POST", "/v1/switch", {"on": False} | long)


@pytest.mark.shows("I35")
def test_an_event_batch_whose_sender_is_gone(daemon: Daemon) -> None:
    """A batch that came whole counts once, although its sender did not wait for the answer."""
    seq = fine(daemon, "POST", "/v1/events", BATCH)["seq"]
    wire = event("session.created", seq + 1, sessionID="ses_gone", info={"id": "ses_gone", "title": "gone"})
    body = json.dumps(batch(wire)).encode()
    with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as s:
        s.connect(str(daemon.box.socket))
        s.sendall(
            b"POST /v1/events HTTP/1.1\r\nHost: reflectd\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        )
    assert fine(daemon, "POST", "/v1/events", batch(wire))["seq"] == seq + 1
    wait_until(lambda: daemon.session("ses_gone"), "the session")


def test_a_newer_stream_ends_the_older(daemon: Daemon) -> None:
    """Of two order streams for one instance the newer one gets the orders, the older one ends."""
    answer = unfinished(daemon.box.project)
    with WireHost(daemon.box.socket, daemon.box.project, instance="two") as older:
        with WireHost(daemon.box.socket, daemon.box.project, answer, instance="two") as newer:
            assert older._thread is not None
            older._thread.join(PATIENCE_S)
            assert not older._thread.is_alive()
            newer.send(newer.turn("ses_two"))
            wait_until(lambda: "feedback" in newer.kinds(), "feedback", daemon.log)
        assert "ses_two" not in {o["session"] for o in older.orders}


@pytest.mark.shows("I35", "I44")
def test_a_stream_that_is_never_read(daemon: Daemon) -> None:
    """A host that never reads its orders costs bounded memory; when it comes back it is served."""
    with contextlib.ExitStack() as stack:
        hello(daemon, "hangs")
        hanging = stack.enter_context(contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)))
        hanging.connect(str(daemon.box.socket))
        hanging.sendall(b"GET /v1/orders?instance=hangs HTTP/1.1\r\nHost: reflectd\r\n\r\n")
        wait_until(lambda: any(i["instance"] == "hangs" for i in daemon.status()["instances"]), "the stream")
        seq = 0
        for _ in range(14):  # 1,750 turns end: more reads are asked for than the queue holds
            events = []
            for _ in range(125):
                for kind in ("session.created", "session.idle"):
                    seq += 1
                    name = f"ses_{(seq + 1) // 2:05d}_{'x' * 150}"
                    events.append(event(kind, seq, 1, sessionID=name, info={"id": name}))
            assert fine(daemon, "POST", "/v1/events", batch(*events, instance="hangs"))["seq"] == seq
        with WireHost(daemon.box.socket, daemon.box.project, instance="hangs") as back:
            wait_until(lambda: back.orders, "orders after coming back", daemon.log)
