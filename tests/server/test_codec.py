"""Bodies, numbers and names that the real daemon must refuse or survive."""

from __future__ import annotations

import pytest

from harness.machine.reflectd import Daemon
from tests.server.asking import BATCH, HELLO, batch, check_alive, clean, event, fine, refused
from tests.support.hosts.wire import raw, send

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


@pytest.mark.parametrize("wire", [{"seq": 1, "t": 1}, {"seq": 1.5, "t": 1, "kind": "x"}, None], ids=str)
def test_a_wrong_event_refuses_its_batch(daemon: Daemon, wire: object) -> None:
    """Bad input: a batch is taken whole or not at all; nothing of a refused one is kept."""
    before = fine(daemon, "POST", "/v1/events", BATCH)["seq"]
    good = event("session.idle", before + 1, sessionID="ses_whole")
    assert refused(daemon, 400, "POST", "/v1/events", batch(good, wire))
    assert fine(daemon, "POST", "/v1/events", BATCH)["seq"] == before


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
