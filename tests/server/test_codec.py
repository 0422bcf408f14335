"""Bodies, numbers and names that the real daemon must refuse or survive."""

from __future__ import annotations

import contextlib
import socket

import pytest

from harness.machine.reflectd import Daemon
from tests.server.asking import BATCH, HELLO, batch, check_alive, clean, event, fine, hello, refused
from tests.support.hosts.wire import Json, raw, send

LIMIT = 8 * 1024 * 1024


@pytest.mark.parametrize("route", ["/v1/hello", "/v1/events", "/v1/results", "/v1/ask", "/v1/switch"])
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"not json",
        b"\x00",
        b"\xff\xfe{}",
        b"null",
        b"true",
        b"7",
        b'"text"',
        b"[]",
        b"{}",
        b'{"instance": NaN}',
        b'{"instance": "i"} trailing',
        b'{"instance": "\\ud800"}',
        b'{"instance": "\xed\xa0\x80"}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"instance": ' + b"9" * 10_000 + b"}",
    ],
    ids=lambda b: repr(b[:24]),
)
def test_malformed_bodies_are_refused(daemon: Daemon, route: str, body: bytes) -> None:
    """Bad input: what is no JSON, or not the form of the route, is answered 400 with words."""
    assert refused(daemon, 400, "POST", route, body)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (HELLO | {"directory": 1}, "directory"),
        (HELLO | {"directory": "relative/path"}, "absolute"),
        (HELLO | {"directory": ""}, "absolute"),
        (HELLO | {"pid": "1"}, "pid"),
        (HELLO | {"pid": 1.5}, "pid"),
        (HELLO | {"pid": None}, "pid"),
        (HELLO | {"mode": "gui"}, "mode"),
        (HELLO | {"host": "emacs"}, "host"),
        (HELLO | {"api": 2}, "api"),
        (HELLO | {"debug": "yes"}, "debug"),
        (HELLO | {"instance": ""}, "instance"),
        (HELLO | {"instance": "i" * 201}, "instance"),
        ({k: v for k, v in HELLO.items() if k != "mode"}, "mode"),
        (HELLO | {"directroy": "/tmp"}, "`directory`"),
        (HELLO | {"Instance": "x"}, "`instance`"),
        (HELLO | {"zzzzzz": 1}, "Known: "),
    ],
    ids=str,
)
def test_a_wrong_hello_is_told_what_is_wrong(daemon: Daemon, body: Json, words: str) -> None:
    """Bad input: wrong types, missing and unknown fields are refused, with the nearest name."""
    assert words in refused(daemon, 400, "POST", "/v1/hello", body)


@pytest.mark.parametrize(
    ("wire", "words"),
    [
        ({"t": 1, "kind": "x"}, "seq"),
        ({"seq": 1, "kind": "x"}, "`t`"),
        ({"seq": 1, "t": 1}, "kind"),
        ({"seq": "1", "t": 1, "kind": "x"}, "seq"),
        ({"seq": 1.5, "t": 1, "kind": "x"}, "seq"),
        ({"seq": True, "t": 1, "kind": "x"}, "seq"),
        ({"seq": 1, "t": None, "kind": "x"}, ".t"),
        ({"seq": 1, "t": 1, "kind": 5}, "kind"),
        ({"seq": 1, "t": 1, "kind": "x", "dta": {}}, "`data`"),
        ({"seq": 1, "t": 1, "kind": "x", "sqe": 2}, "`seq`"),
        ("x", "object"),
        (None, "object"),
    ],
    ids=str,
)
def test_a_wrong_event_refuses_its_batch(daemon: Daemon, wire: object, words: str) -> None:
    """Bad input: a batch is taken whole or not at all; nothing of a refused one is kept."""
    before = fine(daemon, "POST", "/v1/events", BATCH)["seq"]
    good = event("session.idle", before + 1, sessionID="ses_whole")
    assert words in refused(daemon, 400, "POST", "/v1/events", batch(good, wire))
    assert fine(daemon, "POST", "/v1/events", BATCH)["seq"] == before


@pytest.mark.parametrize(
    ("route", "body", "words"),
    [
        ("/v1/results", {"instance": "known", "id": "x", "status": "ok"}, "status"),
        ("/v1/results", {"instance": "known", "id": 5, "status": "done"}, "id"),
        ("/v1/results", {"instance": "known", "ids": "x", "status": "done"}, "`id`"),
        ("/v1/ask", {"instance": "known", "what": "anything"}, "what"),
        ("/v1/ask", {"instance": "known", "what": "gate", "data": 7}, "data"),
        ("/v1/ask", {"instance": "known", "what": "gate", "data": {"text": 7}}, "text"),
        ("/v1/ask", {"instance": "known", "what": "gate", "data": {"sessionID": "s" * 201}}, "sessionID"),
        ("/v1/ask", {"instance": "known", "what": "gate", "data": {"messageID": "m" * 201}}, "messageID"),
        ("/v1/switch", {"on": "no", "session": "s"}, "on"),
        ("/v1/switch", {"on": True}, "either"),
        ("/v1/switch", {"on": True, "session": "s", "directory": "/tmp"}, "either"),
        ("/v1/switch", {"on": True, "directory": "tmp"}, "absolute"),
        ("/v1/switch", {"on": True, "sesion": "s"}, "`session`"),
    ],
    ids=str,
)
def test_the_other_bodies(daemon: Daemon, route: str, body: Json, words: str) -> None:
    """Bad input: results, questions and switches of a wrong form are refused with words."""
    assert words in refused(daemon, 400, "POST", route, body)


@pytest.mark.parametrize("call", [b'{"output": "\xae"}', b'{"\xb9": 1}', b'"\xed\xa0\x80"'])
def test_a_call_that_is_not_utf_8(daemon: Daemon, call: bytes) -> None:
    """Bad input: the call of a question is kept as JSON, and is refused too when its bytes are no text."""
    hello(daemon, "asks")
    body = b'{"instance": "asks", "what": "reminder", "data": {"call": ' + call + b"}}"
    assert "UTF-8" in refused(daemon, 400, "POST", "/v1/ask", body)


def test_too_many_events_in_a_batch(daemon: Daemon) -> None:
    """Bad input: 501 events are refused, 500 are taken."""
    hello(daemon, "many")
    events = [event("activity", n, sessionID="ses_many", bytes=1) for n in range(1, 502)]
    assert "500" in refused(daemon, 400, "POST", "/v1/events", batch(*events, instance="many"))
    assert fine(daemon, "POST", "/v1/events", batch(*events[:500], instance="many"))["seq"] == 500


@pytest.mark.parametrize("chunked", [False, True])
def test_oversized_bodies(daemon: Daemon, chunked: bool) -> None:
    """Bad input: a body over 8 MiB is refused with 413, whether its length was announced or not."""
    body = b'{"instance": "' + b"x" * LIMIT + b'"}'
    if chunked:
        head = b"POST /v1/events HTTP/1.1\r\nHost: reflectd\r\nTransfer-Encoding: chunked\r\n\r\n"
        answer = raw(daemon.box.socket, head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
    else:
        answer = send(daemon.box.socket, "POST", "/v1/events", body)
    assert clean(answer).status == 413
    assert "too large" in answer.json["error"]


def test_a_body_that_is_said_to_be_huge(daemon: Daemon) -> None:
    """Bad input: an announced length of a terabyte costs nothing and is refused or dropped."""
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with contextlib.closing(s):
        s.connect(str(daemon.box.socket))
        s.sendall(b"POST /v1/events HTTP/1.1\r\nHost: reflectd\r\nContent-Length: 1099511627776\r\n\r\n{")
        check_alive(daemon)


NUMBERS = [-(2**63) - 1, -(2**63), -1, 0, 2**53 + 1, 2**63 - 1, 2**63, 2**64, 10**30]


@pytest.mark.parametrize("field", ["seq", "t", "pid"])
@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_beyond_reason(module_daemon: Daemon, field: str, number: int) -> None:
    """Bad input: a number out of range is stored, ignored or refused; the store goes on for others."""
    daemon = module_daemon
    daemon.mark()
    name = f"n-{field}-{number}"
    body = HELLO | {"instance": name} | ({"pid": number} if field == "pid" else {})
    assert clean(send(daemon.box.socket, "POST", "/v1/hello", body)).status in {200, 400}
    wire = event("session.idle", sessionID=f"ses_{name}") | ({} if field == "pid" else {field: number})
    try:
        answer = send(daemon.box.socket, "POST", "/v1/events", batch(wire, instance=name))
        assert clean(answer).status in {200, 400, 409}
        check_alive(daemon)
        assert len(daemon.call("GET", "/v1/sessions")["sessions"]) > 0
    except (TimeoutError, AssertionError):
        daemon.kill9()  # it answers nobody any more: the next test gets a new one
        daemon.start()
        raise


@pytest.mark.shows("I36")
def test_payloads_that_make_no_sense(daemon: Daemon) -> None:
    """Unknown kinds, empty, nested, broken and mistyped payloads are skipped; the batch is stored."""
    before = fine(daemon, "POST", "/v1/events", BATCH)["seq"]
    data = [
        b"{}",
        b"null",
        b"[]",
        b'"x"',
        b"1e400",
        b'{"sessionID": 5}',
        b'{"sessionID": null}',
        b'{"sessionID": {"a": 1}}',
        b'{"sessionID": "ses_half_\\ud800"}',
        b'{"sessionID": "ses_n", "info": []}',
        b'{"sessionID": "ses_n", "status": "busy", "error": 5, "bytes": -1e300}',
        b'{"sessionID": "ses_n", "x": ' + b"[" * 200 + b"]" * 200 + b"}",
        b'{"sessionID": "ses_n", "sessionID": "ses_doubled"}',
    ]
    kinds = [
        "session.created",
        "session.idle",
        "chat.message",
        "session.status",
        "session.error",
        "made.up",
        "",
    ]
    wires, seq = [], before
    for kind in kinds:
        for payload in data:
            seq += 1
            wires.append(b'{"seq":%d,"t":1,"kind":"%s","data":%s}' % (seq, kind.encode(), payload))
    body = b'{"instance":"known","events":[' + b",".join(wires) + b"]}"
    assert fine(daemon, "POST", "/v1/events", body)["seq"] == seq
