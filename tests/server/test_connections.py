"""Many connections at once to the real daemon: all are served, none is refused."""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support import processes
from tests.support.reflectd import Daemon, call
from tests.support.sandbox import REPO, Sandbox, sandbox
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

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
    async with asyncio.timeout(60):
        return set(await asyncio.gather(*(one(path, n, ready, done) for n in range(MANY))))


@pytest.mark.usefixtures("descriptors")
def test_a_thousand_connections() -> None:
    """Bad input, 1,000 connections: each says hello and sends events at the same time; none is refused."""
    with sandbox() as box, Daemon(box) as daemon:
        assert asyncio.run(storm(box.socket)) == {(200, 200)}
        assert daemon.status()["events"] == 2 * MANY
        assert daemon.status()["degraded"] == ""
        listed = daemon.call("GET", "/v1/sessions?limit=500")["sessions"]
        assert len(listed) == 500
        assert all(s["busy"] for s in listed)
        daemon.new_log()


@pytest.mark.usefixtures("descriptors")
def test_a_thousand_connections_under_a_small_limit() -> None:
    """Bad input, 1,000 connections: also where a shell allows 256 descriptors, as macOS does by default."""
    with sandbox() as box, processes.none_left_over(), (box.root / "small.log").open("wb") as log:
        limit = "import os,resource as r,sys; n=r.RLIMIT_NOFILE; r.setrlimit(n,(256,r.getrlimit(n)[1]))"
        serve = "os.execv(sys.executable,[sys.executable,'-m','daemon','serve'])"
        command = [sys.executable, "-c", f"{limit};{serve}"]
        process = processes.start(command, box.env(PYTHONPATH=str(REPO)), box.home, log, log)
        try:
            wait_until(lambda: answers(box), 20, "an answer")
            assert asyncio.run(storm(box.socket)) == {(200, 200)}
        finally:
            processes.end_group(process)


def answers(box: Sandbox) -> bool:
    try:
        return bool(call(box.socket, "GET", "/v1/status", timeout=2)["pid"])
    except OSError:
        return False
