"""Many connections at once to the real daemon: all are served, none is refused."""

from __future__ import annotations

import asyncio
import contextlib
import json
import resource
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.machine import processes
from harness.machine.reflectd import call
from harness.machine.sandbox import REPO, Sandbox, sandbox
from harness.machine.waiting import PATIENCE_S, wait_until

MANY = 1_000


@pytest.fixture
def descriptors() -> Iterator[None]:
    """This process holds the clients' ends."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MANY * 2 + 500
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"this machine allows {hard} descriptors per process")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def one(path: Path, n: int, ready: asyncio.Barrier, done: asyncio.Barrier) -> tuple[int, int]:
    """One host: connects, waits for all others, says hello and sends a batch; stays until all are through."""
    reader, writer = await asyncio.open_unix_connection(str(path))
    try:
        await ready.wait()
        directory = f"/tmp/project-{n % 50}"
        greeting = {
            "instance": f"c-{n}",
            "host": "opencode",
            "mode": "serve",
            "pid": n,
            "directory": directory,
        }
        first = await ask(reader, writer, "/v1/hello", greeting)
        data = {"sessionID": f"ses_{n:04d}", "info": {"id": f"ses_{n:04d}", "title": "t"}}
        events = [
            {"seq": 1, "t": 1, "kind": "session.created", "data": data},
            {"seq": 2, "t": 2, "kind": "session.status", "data": data | {"status": {"type": "busy"}}},
        ]
        second = await ask(reader, writer, "/v1/events", {"instance": f"c-{n}", "events": events})
        await done.wait()
    finally:
        writer.close()
        await writer.wait_closed()
    return first, second


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, route: str, body: object) -> int:
    data = json.dumps(body).encode()
    writer.write(
        f"POST {route} HTTP/1.1\r\nHost: reflectd\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data
    )
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = int(head.partition("content-length:")[2].split("\r\n")[0])
    await reader.readexactly(length)
    return int(head.split()[1])


async def storm(path: Path) -> set[tuple[int, int]]:
    ready, done = asyncio.Barrier(MANY), asyncio.Barrier(MANY)
    async with asyncio.timeout(PATIENCE_S):
        return set(await asyncio.gather(*(one(path, n, ready, done) for n in range(MANY))))


@contextlib.contextmanager
def limited(limits: str) -> Iterator[Sandbox]:
    """A daemon under these limits of descriptors, soft and hard."""
    with sandbox() as box, processes.none_left_over(), (box.root / "small.log").open("wb") as log:
        limit = f"import os,resource as r,sys; n=r.RLIMIT_NOFILE; r.setrlimit(n,({limits}))"
        serve = "os.execv(sys.executable,[sys.executable,'-m','daemon','serve'])"
        command = [sys.executable, "-c", f"{limit};{serve}"]
        process = processes.start(command, box.env(PYTHONPATH=str(REPO)), box.home, log, log)
        try:
            wait_until(lambda: answers(box), "an answer")
            yield box
        finally:
            processes.end_group(process)


@pytest.mark.usefixtures("descriptors")
def test_a_thousand_connections_under_a_small_limit() -> None:
    """Bad input, 1,000 connections: none is refused, also where a shell allows 256 descriptors."""
    with limited("256,r.getrlimit(n)[1]") as box:
        assert asyncio.run(storm(box.socket)) == {(200, 200)}
        status = call(box.socket, "GET", "/v1/status")
        assert (status["events"], status["degraded"]) == (2 * MANY, "")
        listed = call(box.socket, "GET", "/v1/sessions?limit=500")["sessions"]
        assert (len(listed), all(s["busy"] for s in listed)) == (500, True)
        assert b"Traceback" not in told(box)


@pytest.mark.shows("I44")
def test_out_of_descriptors_it_waits_and_comes_back() -> None:
    """One line says so, what is connected is served, and when connections close it goes on."""
    with limited("128,128") as box, contextlib.ExitStack() as stack:
        new = (socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) for _ in range(400))
        many = [stack.enter_context(contextlib.closing(each)) for each in new]
        first = many[0]
        for each in many:
            each.connect(str(box.socket))
        wait_until(lambda: b"no new connections" in told(box), "the fault")
        first.settimeout(PATIENCE_S)
        first.sendall(b"GET /v1/status HTTP/1.1\r\nHost: reflectd\r\n\r\n")
        assert first.recv(12) == b"HTTP/1.1 200"
        for each in many:
            each.close()
        wait_until(lambda: answers(box), "an answer")
        wait_until(lambda: call(box.socket, "GET", "/v1/status")["degraded"] == "", "all is well")
        assert told(box).count(b"fault=connections") == 2, "it began, and it ended"
        assert b"Traceback" not in told(box)


def told(box: Sandbox) -> bytes:
    return (box.root / "small.log").read_bytes()


def answers(box: Sandbox) -> bool:
    try:
        return bool(call(box.socket, "GET", "/v1/status")["pid"])
    except OSError:
        return False
