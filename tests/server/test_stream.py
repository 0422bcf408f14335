"""``GET /v1/stream`` of the real daemon: what comes, when it ends, and that nobody is held up by it."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from daemon.client import stream
from daemon.core.errors import Unavailable, UserError
from daemon.engine.stream import READERS
from harness.machine import processes
from harness.machine.reflectd import Daemon
from harness.machine.sandbox import Sandbox, sandbox
from harness.machine.waiting import PATIENCE_S, wait_until
from tests.support.hosts.wire import WireHost, unfinished


@pytest.fixture
def box() -> Iterator[Sandbox]:
    with sandbox() as box, processes.none_left_over():
        yield box


def raw_stream(box: Sandbox) -> socket.socket:
    """A reader that reads only when told to."""
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    s.settimeout(PATIENCE_S)
    s.connect(str(box.socket))
    s.sendall(b"GET /v1/stream HTTP/1.1\r\nHost: reflectd\r\n\r\n")
    assert s.recv(12) == b"HTTP/1.1 200"
    return s


def test_a_verdict_comes_as_it_is_given(box: Sandbox) -> None:
    """Judging, then the verdict with its feedback, by the shipped client."""
    with Daemon(box) as daemon, WireHost(box.socket, box.project, unfinished(box.project)) as host:
        with contextlib.closing(stream(box.socket, "/v1/stream?session=ses_w")) as lines:
            assert next(lines) is None
            host.send(host.turn("ses_other"))
            host.send(host.turn("ses_watched", title="A title"))
            found: list[dict[str, Any]] = []
            while not found or found[-1]["kind"] != "verdict":
                line = next(lines)
                found += [line] if line is not None else []
        assert {line["session"] for line in found} == {"ses_watched"}
        last = found[-1]
        assert (last["state"], last["feedback_sent"], last["title"]) == ("incomplete", True, "t")
        assert last["feedback"]
        daemon.new_log()


@pytest.mark.shows("I44")
def test_a_reader_that_never_reads_holds_up_nobody(box: Sandbox) -> None:
    """Hundreds of verdicts pass a reader that sleeps; its queue is bounded and the daemon answers."""
    many = 40
    with Daemon(box) as daemon, contextlib.closing(raw_stream(box)):
        text = "x" * 3_000
        with WireHost(box.socket, box.project, unfinished(box.project, final=text, request=text)) as host:
            for n in range(many):
                host.send(host.turn(f"ses_{n:03d}"))
            wait_until(lambda: host.kinds("toast").count("feedback") == many, "feedback", daemon.log)
        assert daemon.status()["verdicts"] == {"incomplete": many}
        daemon.new_log()


@pytest.mark.shows("I45")
def test_the_daemon_stops_while_somebody_watches(box: Sandbox) -> None:
    """Every stream ends with the daemon, whole lines only; the stop is not delayed."""
    with Daemon(box) as daemon, contextlib.closing(stream(box.socket, "/v1/stream")) as lines:
        assert next(lines) is None
        assert daemon.stop() == 0
        assert list(lines) == []


@pytest.mark.shows("I44")
def test_too_many_watch(box: Sandbox) -> None:
    """One too many is told so, and a place that is left is free again."""
    with Daemon(box) as daemon, contextlib.ExitStack() as stack:
        readers = [stack.enter_context(contextlib.closing(raw_stream(box))) for _ in range(READERS)]
        with pytest.raises(Unavailable, match="watching already"):
            next(stream(box.socket, "/v1/stream"))
        readers[0].close()

        def free() -> bool:
            with contextlib.suppress(Unavailable), contextlib.closing(stream(box.socket, "/v1/stream")) as s:
                return next(s) is None
            return False

        # the daemon notices a reader that left with the next thing it says
        with WireHost(box.socket, box.project, unfinished(box.project)) as host:
            host.send(host.turn("ses_news"))
            wait_until(free, "a free place", daemon.log)
        daemon.new_log()


def test_a_stream_that_is_refused(box: Sandbox) -> None:
    """A refusal is told in the daemon's words; no daemon is ``Unavailable``."""
    with pytest.raises(Unavailable, match="reflectd start"):
        next(stream(box.socket, "/v1/stream"))
    with Daemon(box), pytest.raises(UserError, match="directory"):
        next(stream(box.socket, "/v1/stream?directory=x"))
